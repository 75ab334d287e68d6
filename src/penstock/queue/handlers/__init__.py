"""The handlers of Kafka's APIs: a request and the host of a node in, a reply out.

One file an API, named as Kafka names it. `queue/dispatch` is their table; `queue/node` calls Produce and Fetch itself.

produce_fast  Produce without decoding, by comparison with an earlier request
"""
