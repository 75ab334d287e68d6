"""NEXMark, the benchmark of an auction house: 23 queries over persons, auctions and bids.

app     the topics and the queries
events  the events of an auction house, from a seed
"""
