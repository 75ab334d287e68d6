"""Judges a recorded history of clients against what the queue promises; pure.

history             the events of a history, and their JSON lines
evidence            what a history says about one partition
group_evidence      what a history says about transactions, groups and their positions

checker             `check`: reads a history once, runs all checks, returns the verdict
log_checks          promises of one partition: no loss, no duplicate, no reordering
group_checks        promises of groups: no missed record, no lost or reverted position
transaction_checks  promises of transactions: read_committed consumers see all or nothing

verdict             valid, invalid or unknown, with named findings and doubts
report              a verdict as lines of text and as JSON values
"""
