"""The fraud desk that `penstock demo` runs: its app, a stream of purchases, and the terminals that send them.

Reading order: app, purchases, terminals.
"""
