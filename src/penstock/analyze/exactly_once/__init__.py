"""Writes the results of a batch and the token of the batch in one transaction.

batch_tokens        identifies a batch, and decides whether it is committed already
transactional_sink  the transactional producer of one query
"""
