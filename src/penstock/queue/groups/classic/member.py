"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Callable, Container

from penstock.errors import broken
from penstock.kafka.wire.messages.join_group import JoinGroupResponse
from penstock.kafka.wire.messages.sync_group import SyncGroupResponse
from penstock.queue.core.deadlines import Alarm
from penstock.queue.groups.changes import StoredMember

OnJoined = Callable[[JoinGroupResponse], None]
OnSynced = Callable[[SyncGroupResponse], None]


class Member:
    """Who it is, what it understands, what it was given, and what it waits for."""

    __slots__ = (
        "alarm",
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "on_joined",
        "on_synced",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(self, member_id: str, instance_id: str | None, client_id: str, client_host: str) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = 0
        self.rebalance_timeout_ms = 0
        self.protocols: dict[str, bytes] = {}
        self.assignment = b""
        self.is_new = True
        self.alarm = Alarm()
        self.on_joined: OnJoined | None = None
        self.on_synced: OnSynced | None = None

    @property
    def protocol_bytes(self) -> int:
        return sum(map(len, self.protocols.values()))

    @property
    def is_excused(self) -> bool:
        """Whether its silence is fine: it waits for us. A newcomer may have gone away and come back by another name."""
        return not self.is_new and (self.on_joined is not None or self.on_synced is not None)

    def vote(self, candidates: Container[str]) -> str:
        """The protocol it likes best of those that all understand."""
        choice = next((name for name in self.protocols if name in candidates), None)
        if choice is None:
            broken("a member understands what all members understand")
        return choice

    def stored(self, protocol: str | None, assignment: bytes) -> StoredMember:
        return StoredMember(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.session_timeout_ms,
            self.rebalance_timeout_ms,
            self.protocols.get(protocol or "", b""),
            assignment,
        )


def restored_member(stored: StoredMember, protocol: str | None) -> Member:
    """A member as it was when its generation became durable."""
    member = Member(stored.member_id, stored.instance_id, stored.client_id, stored.client_host)
    member.session_timeout_ms = stored.session_timeout_ms
    member.rebalance_timeout_ms = stored.rebalance_timeout_ms
    member.protocols = {protocol or "": stored.subscription}
    member.assignment = stored.assignment
    member.is_new = False
    return member
