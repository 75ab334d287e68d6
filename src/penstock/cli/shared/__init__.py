"""What several commands share: the broker they talk to, their arguments, and how they print data.

broker_link    the --broker option, a reachable broker, errors as sentences
names          click types for names of topics, groups and transactional ids
start_offsets  the option where to start reading, resolved to offsets of each partition
output         prints tables, facts and JSON; asks for confirmation

record_text    a record as one line of text or as JSON
group_offsets  positions, lag and members of a group
query_reports  the last report of each query
"""
