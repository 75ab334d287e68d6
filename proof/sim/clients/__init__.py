"""Simulated clients of a node.

producer          sends batches, and repeats those without an answer
consumer          reads partitions from the beginning
committed_reader  a consumer of committed records
rereader          reads old records at random offsets
admin             creates, alters and deletes topics; deletes records
member            a member of a classic group
consumer_member   a member of a KIP-848 group
transactor        a transactional producer
"""
