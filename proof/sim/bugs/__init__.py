"""Injected bugs, each with the invariants that must detect it.

bugs          the table of all bugs, and those of log and node
groups        bugs of groups
transactions  bugs of transactions
loads         bugs of disk reads
"""
