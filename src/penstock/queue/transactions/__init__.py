"""Transactions: producers fenced by epoch, partitions and groups added, commit and abort.

changes        durable changes of transactions, as records
rules          the next state of a transaction for each request, or the error
table          the durable state of all transactions
coordinator    all transactions of a node: initialized, extended, ended, timed out
produce_entry  adds the partitions of a produce request to its transaction
markers        writes the markers that end a transaction
recovery       resolves differences between an opened partition and the coordinator
"""
