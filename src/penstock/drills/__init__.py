"""Breaks a running app or broker on purpose: processes to kill, a proxy, and clients that record.

app_process        `penstock run` in a child process; kills and restarts its parts
broker_process     `penstock broker` in a child process; kills, pauses and limits it
proxy              a TCP proxy that cuts, delays, loses and holds back frames
proxy_process      the proxy in a child process
recording_clients  producers and consumers that record a history
exit_status        the exit status for each verdict of a drill
"""
