"""Invariants by name: after each event, and on each reply.

invariants    log, catalog and memory, after each event; the table of these checks
replies       every reply, when the node sends it; the table of these checks
groups        groups, after each event and on each reply
transactions  transactions, after each event, on each reply, at the end
loads         fetches that wait for the disk
"""
