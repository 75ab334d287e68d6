"""Requests and responses to bytes and back; pure.

types          Reader and Writer of Kafka's primitive types
fields         declares the fields of a message: type and versions
message        compiles the codec of a message for each version
messages/      the messages, one file an API
apis           the table of APIs with their messages and served versions
header         headers of requests and responses

raw            primitives for the hand-written codecs
produce        hand-written codec of Produce
fetch          hand-written codec of Fetch
produce_shape  recognizes a produce request by comparing bytes with an earlier one
"""
