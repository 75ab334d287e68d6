"""Members of a classic group as coroutines: each says just what the protocol asks for."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from bench.wire_client import frame
from penstock.errors import ErrorCode, PenstockError
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.header import decode_response_header
from penstock.kafka.wire.message import Message, decode, encode
from penstock.kafka.wire.messages.consumer_protocol import (
    AssignedPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from penstock.kafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from penstock.kafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

M = TypeVar("M", bound=Message)

_SESSION_MS, _REBALANCE_MS = 45_000, 300_000  # the defaults of Kafka's consumer
_RETRY_S = 0.05
# While Kafka makes and loads the topic that its groups live in.
_LOADING, _NOT_COORDINATOR = 14, 16
_NOT_YET = (_LOADING, _NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_MEMBER_ID)
_SENSE_OF_PROTOCOL = b"\0\0"  # version 0 of what consumers tell each other


class AsyncClient:
    """One connection that asks and waits, beside many others in one process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, address: str) -> AsyncClient:
        host, port = address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, key: ApiKey, version: int, request: Message, answer: type[M]) -> M:
        self._writer.write(frame(key, version, encode(request, version)))
        data = await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4), "big"))
        _, at = decode_response_header(data, key, version)
        return decode(answer, data, version, at)

    def close(self) -> None:
        self._writer.close()


class GroupMember:
    """One member; whoever leads hands partition n to the n-th."""

    def __init__(self, client: AsyncClient, group: str, topic: str) -> None:
        self._client, self._group, self._topic = client, group, topic
        self._id = ""
        self.generation = -1

    async def join(self) -> None:
        """Until it has its assignment in a generation; again where the group moved on meanwhile."""
        while True:
            joined = await self._client.ask(ApiKey.JOIN_GROUP, 5, self._joining(), JoinGroupResponse)
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._id = joined.member_id
                continue
            if joined.error_code in _NOT_YET:
                self._id = ""
                await asyncio.sleep(_RETRY_S)
                continue
            _check(joined.error_code, "JoinGroup")
            self._id, self.generation = joined.member_id, joined.generation_id
            request = SyncGroupRequest(self._group, self.generation, self._id, assignments=self._shares(joined))
            synced = await self._client.ask(ApiKey.SYNC_GROUP, 3, request, SyncGroupResponse)
            if synced.error_code == ErrorCode.NONE:
                return
            if synced.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                _check(synced.error_code, "SyncGroup")

    async def is_called_back(self) -> bool:
        """Ask with a heartbeat whether the group rebalances."""
        request = HeartbeatRequest(self._group, self.generation, self._id)
        answer = await self._client.ask(ApiKey.HEARTBEAT, 3, request, HeartbeatResponse)
        if answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            _check(answer.error_code, "Heartbeat")
        return answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS

    async def leave(self) -> None:
        request = LeaveGroupRequest(self._group, self._id)
        _check((await self._client.ask(ApiKey.LEAVE_GROUP, 1, request, LeaveGroupResponse)).error_code, "LeaveGroup")
        self._client.close()

    def _joining(self) -> JoinGroupRequest:
        subscription = _SENSE_OF_PROTOCOL + encode(ConsumerProtocolSubscription([self._topic]), 0)
        protocols = [JoinGroupRequestProtocol("range", subscription)]
        return JoinGroupRequest(self._group, _SESSION_MS, _REBALANCE_MS, self._id, None, "consumer", protocols)

    def _shares(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        if joined.leader != self._id:
            return []
        return [
            SyncGroupRequestAssignment(
                member.member_id,
                _SENSE_OF_PROTOCOL + encode(ConsumerProtocolAssignment([AssignedPartition(self._topic, [number])]), 0),
            )
            for number, member in enumerate(joined.members)
        ]


def _check(code: int, name: str) -> None:
    if code != ErrorCode.NONE:
        raise PenstockError(f"{name} was refused: error {code}")


async def settle(members: list[GroupMember]) -> None:
    """Until all have joined the same generation."""
    waiting = members
    while waiting:
        await asyncio.gather(*(member.join() for member in waiting))
        newest = max(member.generation for member in members)
        waiting = [member for member in members if member.generation < newest]


async def find_coordinator(address: str, group: str) -> None:
    """Wait until the broker looks after the group: Kafka makes a topic for that first."""
    client = await AsyncClient.open(address)
    request = FindCoordinatorRequest(group)
    while (await client.ask(ApiKey.FIND_COORDINATOR, 2, request, FindCoordinatorResponse)).error_code:
        await asyncio.sleep(_RETRY_S)
    client.close()
