"""Groups of the consumer protocol (KIP-848): the broker computes the assignment.

partitions      sets of partitions, packed for storage and unpacked
group           one live group: epochs, target assignment, members
group_writes    what the rules of a group need from all groups
heartbeat       one heartbeat: identifies the member, renews the target, answers
assignors       the assignors `uniform` and `range`
reconcile       one step of a member to its target: revoke, then assign

groups          all live groups; one write at a time for each
table           the durable state of these groups
migration       converts a group from classic to consumer protocol, and back
classic_bridge  classic members in a group of the consumer protocol

pattern         topic names that match a subscribed pattern, with limited work
regex           compiles a regular expression to an automaton without backtracking
"""
