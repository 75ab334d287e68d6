"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

member     one member: its protocols, assignment and waiting replies
group      one group: its state, its members, and questions about them
join       JoinGroup: admits a member, and starts a rebalance if needed
rebalance  from one generation to the next: wait, elect, assign
"""
