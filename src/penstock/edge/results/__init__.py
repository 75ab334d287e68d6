"""The result of one event: a request that waits for it by ?wait=, and GET /results.

query_paths       which queries an event of a topic can reach
rules             parses ?wait= and its parameters; the answers
routes            holds a request until its result arrives; serves GET /results
followed_outputs  follows output topics and query progress; looks up stored results
waits             decides when a waiting request gets a result, or none
"""
