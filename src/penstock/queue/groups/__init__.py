"""Consumer groups: their members, assignments and committed positions.

coordinator   all groups of a node: finds, creates, restores and ends them
changes       durable changes of groups, as records
table         the durable state of all groups, and its log
expiry        which positions have expired or belong to deleted topics

classic/      groups of the classic protocol
consumer/     groups of the consumer protocol (KIP-848)
subscription  decodes subscriptions and assignments of classic consumers
"""
