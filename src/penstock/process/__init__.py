"""What a process needs from its machine: the app's code, files, ports, log lines, its parent.

lifeline           ends a process with its parent, or cleanly on SIGTERM
supervisor_orders  the lines that the supervisor writes to a child's standard input
run_spec_file      writes and reads the run spec, readable by its owner only
app_loader         imports the app that a user names
type_texts         lets PySpark read the text of a type while no JVM runs
log_lines          structured log lines on standard error

cache              the cache folder, and a lock for it
file_handles       raises the limit of open files
free_port          picks ports that no other process uses
"""
