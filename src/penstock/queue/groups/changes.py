"""Durable changes of groups: one record each in the group log."""

from __future__ import annotations

from enum import Enum
from uuid import UUID

import msgspec

from penstock.errors import StorageError
from penstock.queue.groups.consumer.partitions import Packed


class StoredMember(msgspec.Struct, frozen=True, array_like=True):
    """A member of a classic group, as its last generation had it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupStored(msgspec.Struct, frozen=True, tag="group"):
    """A generation of a classic group; without members it is empty since `since_ms`."""

    group_id: str
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[StoredMember, ...]
    since_ms: int


class GroupGone(msgspec.Struct, frozen=True, tag="gone"):
    """The group, with its positions."""

    group_id: str


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far a group has come in a partition."""

    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int | None = None  # asked for by clients before version 5 of OffsetCommit


class OffsetsCommitted(msgspec.Struct, frozen=True, tag="offsets"):
    group_id: str
    positions: tuple[Position, ...]


class OffsetsForgotten(msgspec.Struct, frozen=True, tag="forgotten"):
    group_id: str
    partitions: tuple[tuple[UUID, int], ...]


class OffsetsHeld(msgspec.Struct, frozen=True, tag="held"):
    """Positions that become true with a transaction of this producer, which has this epoch."""

    producer_id: int
    epoch: int
    group_id: str
    positions: tuple[Position, ...]


class OffsetsReleased(msgspec.Struct, frozen=True, tag="released"):
    """The transaction has ended, and so has every earlier one of this producer."""

    producer_id: int
    epoch: int
    is_commit: bool


class Phase(Enum):
    """Where a member of the newer protocol is on its way to what it shall have."""

    STABLE = "stable"
    REVOKING = "revoking"  # it has to give partitions back first
    WAITING = "waiting"  # others have not given back yet what it shall have


class ClassicSide(msgspec.Struct, frozen=True, array_like=True):
    """What a member that speaks the classic protocol has said in it."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerEpoch(msgspec.Struct, frozen=True, tag="epoch"):
    """A new epoch of a group of the newer protocol: its members, or the topics they want, are not what they were."""

    group_id: str
    epoch: int
    topics: tuple[tuple[UUID, int], ...]  # with the number of their partitions
    since_ms: int


class ConsumerTarget(msgspec.Struct, frozen=True, tag="target"):
    """What everybody shall have in an epoch."""

    group_id: str
    epoch: int
    assignor: str
    targets: tuple[tuple[str, Packed], ...]


class ConsumerMember(msgspec.Struct, frozen=True, tag="member"):
    """A member of the newer protocol: what it wants, and how far it is."""

    group_id: str
    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topics: tuple[str, ...]
    pattern: str | None
    assignor: str | None
    epoch: int
    previous_epoch: int
    phase: Phase
    assigned: Packed
    revoking: Packed
    classic: ClassicSide | None = None


class ConsumerMemberGone(msgspec.Struct, frozen=True, tag="memberless"):
    group_id: str
    member_id: str


class Restarted(msgspec.Struct, frozen=True, tag="snapshot"):
    """All groups follow in this batch: forget what was before."""


ConsumerChange = ConsumerEpoch | ConsumerTarget | ConsumerMember | ConsumerMemberGone
Change = (
    GroupStored
    | GroupGone
    | OffsetsCommitted
    | OffsetsForgotten
    | OffsetsHeld
    | OffsetsReleased
    | ConsumerChange
    | Restarted
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Change] = msgspec.json.Decoder(Change)


def encode_change(change: Change) -> bytes:
    return _encoder.encode(change)


def decode_change(data: bytes) -> Change:
    """StorageError when the record is of no kind this version knows."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as wrong:
        raise StorageError(f"the group log holds a record that cannot be read: {wrong}") from None
