"""The fraud app that `penstock demo` runs, with simulated payment terminals.

app        the app: the query that decides each purchase
purchases  generates the stream of purchases from a seed
terminals  threads that send purchases over HTTP
"""
