"""Record batches in Kafka's format 2: header, framing, compression, records.

batch        the batch header: decodes, checks and patches it; the records stay opaque
framing      checks the lengths and count of the records in a batch
compression  decompresses a batch, with a limit on the output
opening      decompresses a produced batch and checks its framing

record       decodes and encodes single records
marker       control batches that end a transaction
size         the size of a batch that holds one record
"""
