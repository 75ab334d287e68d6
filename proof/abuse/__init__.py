"""Sends malformed frames and opens slow connections, and measures the latency of a normal client beside them.

abuse_test        the abuse test: its phases and its verdict
malformed_frames  mutated requests of every API, and false counts
raw_client        a socket that sends any bytes
latency_probe     measures a normal client and the disk, in another process
"""
