"""One partition on disk: batches appended, synced, read and recovered through the disk port.

layout               names of folders and files
point                a batch boundary: offset, segment, position
segment              one file of batches, with its index
index                sparse index of a segment: offset, position, time, aborted transactions
log                  stages batches, writes them as a group, tracks what is durable

producers            the last batches of each producer, to detect duplicates
producer_snapshot    the state of producers as a file
open_transactions    open transactions of a partition, and the last stable offset
transaction_batches  appends transactional batches and markers
aborted_ranges       ranges of aborted transactions in a segment

durable_point        encodes the durable point: a lower bound of what was acknowledged
durable_point_file   the file of the durable point, in three slots

reading              reads whole batches from an offset; finds offsets by time
retention            which segments exceed the retention time or size
scan                 reads the batches of a file, and finds damage
recovery             opens a partition after any stop
inspection           reports damage in a partition without changing it
small_file           writes one small file
"""
