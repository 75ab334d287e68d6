"""What all handlers of a node build on: events, partitions, the catalog, waiting requests, limits.

events            events into a node, and effects out of it
host              the parts of a node that handlers use
connection        one client, and the order of its replies
replies           answers requests in order, and sends the replies of a step
memory_budget     limits the request and reply bytes that clients hold

partition         one partition: its log, waiting acknowledgements and fetches
partitions        opens, removes and trims the partitions of a node
sync_jobs         syncs in flight, and partitions whose durable point moved

waiting_request   the interface of a request that waits
pending_produce   a produce request that waits until its batches are durable
produce_template  the layout of a client's produce requests, to recognize the next one
batch_openings    produce requests that wait until their large batches are checked
waiting_fetch     fetches that wait for records, the disk or a timeout

catalog           topics by name and id
catalog_changes   durable changes of the catalog, as records
metadata_log      the log of catalog changes, one at a time
table_log         the log of a table's changes, compacted while the node runs
log_values        reads the values of a node's own logs
producer_ids      gives out producer ids, each once

deadlines         a heap of deadlines that often move
counters          counters of a node, as metrics
notes             log lines of a node, as effects
"""
