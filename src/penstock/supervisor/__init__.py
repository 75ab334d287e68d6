"""Starts the processes of a run, watches them, and restarts them.

run           `penstock run`: plans the app, locks the folder, starts the supervisor
options       the options of a run, from file, environment and flags
supervisor    runs broker, edge and analyze until the run ends
child         one child process: its output, its end, its restarts
lease_keeper  renews the lease of the app in a thread
"""
