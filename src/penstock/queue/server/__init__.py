"""The broker's process: event loop, sockets, real disk, clock, threads.

process          `run_broker`: locks the data folder, listens, runs the loop
event_loop       polls sockets, passes events to the node, performs its effects

transport        bytes of one client, as a socket carries them
channel          cuts bytes into frames, and sends replies
new_connections  accepts connections; serves unidentified clients a few a turn
timeouts         closes clients that are too slow or idle
close_log        log lines about closed connections, limited in rate
http_endpoints   GET /metrics, /health and /ready
http_clients     the HTTP connections of the loop, limited in number

disk             files and folders on the real disk; the folder lock
durable_extent   which bytes of a file are durable with their metadata
sync_pool        runs syncs: inline, in the kernel, or in threads
kernel_sync      syncs by Linux AIO
shared_flush     one disk flush for several files (ADR 13)
read_pool        threads that read old records
open_pool        threads that check large compressed batches
clock            epoch milliseconds that follow the monotonic clock
"""
