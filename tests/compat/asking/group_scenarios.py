"""The same questions about groups at every version of an API: good ones, and ones that must be refused."""

from __future__ import annotations

from uuid import UUID

from asking.connection import Connection, Patient
from asking.groups import SYNC, commit, commit_request, form, join, join_request, sync_request
from asking.requests import create_topic
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.kafka.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.kafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.kafka.wire.messages.join_group import JoinGroupResponse
from penstock.kafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from penstock.kafka.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.kafka.wire.messages.offset_commit import OffsetCommitResponse
from penstock.kafka.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from penstock.kafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from penstock.kafka.wire.messages.sync_group import SyncGroupResponse

STRANGER = UUID(int=0x5EED)


def ask_find_coordinator(connection: Connection, version: int, topic: str) -> list[Message]:
    """One group, and from version 4 on several."""
    asking = Patient(connection)
    request = FindCoordinatorRequest(topic)
    if version >= 4:
        request = FindCoordinatorRequest(coordinator_keys=[topic, f"{topic}-2"])
    return [asking.ask(request, version, FindCoordinatorResponse)]


def ask_join_group(connection: Connection, version: int, group: str) -> list[Message]:
    """Bad names, timeouts, ids and protocols; a newcomer; the same member once more; a static one that returns."""
    asking = Patient(connection)

    def asked(*said: str, **more: object) -> JoinGroupResponse:
        request = join_request(*said, **more, version=version)  # type: ignore[arg-type]  # passed on
        return asking.ask(request, version, JoinGroupResponse)

    answers: list[Message] = [
        asked(""),
        asked(group, session_ms=5_999),
        asked(group, session_ms=1_800_001),
        asked(group, "nobody"),
        asked(group, protocols=()),
        asked(group, protocol_type=""),
        first := asked(group),
    ]
    if version >= 4:
        answers.append(first := asked(group, first.member_id))
    answers += [asked(group, first.member_id), asked(group, "nobody"), asked(group, protocol_type="connect")]
    answers.append(asked(group, protocols=("sticky",)))
    asking.ask(sync_request(group, first, first.member_id), SYNC, SyncGroupResponse)
    answers.append(asked(group, first.member_id, protocols=("roundrobin", "range")))
    if version >= 5:
        other = f"{group}-static"
        answers.append(static := asked(other, instance_id="one"))
        asking.ask(sync_request(other, static, static.member_id), SYNC, SyncGroupResponse)
        answers += [asked(other, instance_id="one"), asked(other, static.member_id, instance_id="one")]
        answers.append(asked(other, static.member_id, instance_id="two"))
    return answers


def ask_sync_group(connection: Connection, version: int, group: str) -> list[Message]:
    """A leader that assigns, asks again, is of another generation, is nobody, or is in no group."""
    asking = Patient(connection)
    joined = join(asking, group)

    def asked(name: str, *, generation: int | None = None, member: str | None = None) -> SyncGroupResponse:
        request = sync_request(name, joined, joined.member_id, version=version)
        request.generation_id = joined.generation_id if generation is None else generation
        request.member_id = joined.member_id if member is None else member
        return asking.ask(request, version, SyncGroupResponse)

    answers: list[Message] = [asked(group, generation=7), asked(group, member="nobody"), asked(f"{group}-2")]
    answers += [asked(""), asked(group), asked(group), asked(group, generation=0)]
    if version >= 5:
        request = sync_request(group, joined, version=version)
        request.protocol_name = "sticky"
        answers.append(asking.ask(request, version, SyncGroupResponse))
    return answers


def ask_heartbeat(connection: Connection, version: int, group: str) -> list[Message]:
    """While a generation is handed out, when it is stable, from another one, from nobody."""
    asking = Patient(connection)
    joined = join(asking, group)

    def asked(name: str, generation: int, member: str) -> HeartbeatResponse:
        return asking.ask(HeartbeatRequest(name, generation, member), version, HeartbeatResponse)

    me, now = joined.member_id, joined.generation_id
    answers: list[Message] = [asked(group, now, me)]
    asking.ask(sync_request(group, joined, me), SYNC, SyncGroupResponse)
    answers += [asked(group, now, me), asked(group, now + 1, me), asked(group, now - 1, me)]
    answers += [asked(group, now, "nobody"), asked(f"{group}-2", now, me), asked("", now, me)]
    if version >= 3:
        request = HeartbeatRequest(group, now, me, "one")
        answers.append(asking.ask(request, version, HeartbeatResponse))
    return answers


def ask_leave_group(connection: Connection, version: int, group: str) -> list[Message]:
    """A member, a stranger, a member that has left, and a group that does not exist."""
    asking = Patient(connection)
    joined = form(asking, group)
    answers: list[Message] = []
    for name, member_id in (
        (group, "nobody"),
        (group, joined.member_id),
        (group, joined.member_id),
        (f"{group}-2", "x"),
    ):
        if version < 3:
            request = LeaveGroupRequest(name, member_id)
        else:
            request = LeaveGroupRequest(name, members=[MemberIdentity(member_id), MemberIdentity("", "no-such")])
        answer = asking.ask(request, version, LeaveGroupResponse)
        for member in answer.members:
            member.member_id = member.member_id.replace(joined.member_id, "the member")
        answers.append(answer)
    answers.append(asking.ask(LeaveGroupRequest(""), version, LeaveGroupResponse))
    if version >= 3:
        form(asking, f"{group}-static", instance_id="one")
        request = LeaveGroupRequest(f"{group}-static", members=[MemberIdentity("", "one")])
        answers.append(asking.ask(request, version, LeaveGroupResponse))
    return answers


def ask_offset_commit(connection: Connection, version: int, topic: str) -> list[Message]:
    """From a tool, a member, a member of another generation; unknown places; too much metadata."""
    asking = Patient(connection)
    topic_id = create_topic(connection, topic, 2)
    group = topic
    joined = form(asking, f"{group}-2")
    stranger = form(asking, f"{group}-3")
    stranger.generation_id += 5
    requests = [
        commit_request(group, topic, 3, 4, version=version),
        commit_request(group, topic, 1, metadata=None, version=version),
        commit_request(group, topic, 1, 2, 3, version=version),
        commit_request(group, topic, 1, metadata="x" * 5_000, version=version),
        commit_request(group, f"{topic}-unknown", 1, version=version),
        commit_request(group, topic, 1, joined=joined, version=version),
        commit_request(f"{group}-2", topic, 1, joined=joined, version=version),
        commit_request(f"{group}-2", topic, 1, version=version),
        commit_request(f"{group}-3", topic, 1, joined=stranger, version=version),
        commit_request(f"{group}-4", topic, 1, joined=joined, version=version),
    ]
    for request in requests:
        if version >= 10:
            request.topics[0].topic_id = STRANGER if request.topics[0].name.endswith("unknown") else topic_id
    return [asking.ask(request, version, OffsetCommitResponse) for request in requests]


def ask_offset_fetch(connection: Connection, version: int, topic: str) -> list[Message]:
    """What was committed, what was not, all of it, and of a group that nobody knows."""
    asking = Patient(connection)
    topic_id = create_topic(connection, topic, 3)
    commit(asking, topic, topic, 5, 6)
    answers: list[Message] = []
    for group, name, indexes in ((topic, topic, [0, 1, 2, 7]), (topic, f"{topic}-x", [0]), (f"{topic}-no", topic, [1])):
        wanted = [OffsetFetchRequestTopic(name, indexes)]
        request = OffsetFetchRequest(group, wanted)
        if version >= 8:
            known = topic_id if name == topic else STRANGER
            topics = [OffsetFetchRequestTopics(name, known if version >= 10 else UUID(int=0), indexes)]
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=topics)])
        answers.append(asking.ask(request, version, OffsetFetchResponse))
    if version >= 8:
        everything = [OffsetFetchRequestGroup(group, topics=None) for group in (topic, f"{topic}-no")]
        answers.append(asking.ask(OffsetFetchRequest(groups=everything), version, OffsetFetchResponse))
    elif version >= 2:
        answers.append(asking.ask(OffsetFetchRequest(topic, None), version, OffsetFetchResponse))
    return answers


def ask_offset_delete(connection: Connection, version: int, topic: str) -> list[Message]:
    """Positions that are there and not, in an unknown topic, of an unknown group, of a group with members."""
    asking = Patient(connection)
    create_topic(connection, topic, 2)
    commit(asking, topic, topic, 5, 6)
    form(asking, f"{topic}-2")
    form(asking, f"{topic}-3", protocol_type="connect")
    answers: list[Message] = []
    for group, name in (
        (topic, topic),
        (topic, f"{topic}-x"),
        (f"{topic}-no", topic),
        (f"{topic}-2", topic),
        (f"{topic}-3", topic),
    ):
        wanted = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index) for index in (1, 0)])]
        answers.append(asking.ask(OffsetDeleteRequest(group, wanted), version, OffsetDeleteResponse))
    answers.append(
        asking.ask(OffsetFetchRequest(topic, [OffsetFetchRequestTopic(topic, [0, 1])]), 5, OffsetFetchResponse)
    )
    return answers


def ask_list_groups(connection: Connection, version: int, topic: str) -> list[Message]:
    """A group with a member, one with positions only; by state and by type."""
    asking = Patient(connection)
    create_topic(connection, topic)
    form(asking, f"{topic}-stable")
    commit(asking, f"{topic}-simple", topic, 1)
    requests = [ListGroupsRequest()]
    if version >= 4:
        requests += [ListGroupsRequest(["Stable"]), ListGroupsRequest(["empty"]), ListGroupsRequest(["Dead"])]
    if version >= 5:
        requests += [ListGroupsRequest([], ["classic"]), ListGroupsRequest([], ["Consumer"])]
    answers: list[Message] = []
    for request in requests:
        answer = asking.ask(request, version, ListGroupsResponse)
        answer.groups = [group for group in answer.groups if group.group_id.startswith(topic)]
        answers.append(answer)
    return answers


def ask_describe_groups(connection: Connection, version: int, topic: str) -> list[Message]:
    """Stable, handing out, empty, and unknown."""
    asking = Patient(connection)
    create_topic(connection, topic)
    form(asking, f"{topic}-stable", instance_id="one")
    join(asking, f"{topic}-completing")
    commit(asking, f"{topic}-simple", topic, 1)
    names = [f"{topic}-{kind}" for kind in ("stable", "completing", "simple", "unknown")]
    return [asking.ask(DescribeGroupsRequest(names), version, DescribeGroupsResponse)]


def ask_delete_groups(connection: Connection, version: int, topic: str) -> list[Message]:
    """Empty, with a member, unknown; and the first once more."""
    asking = Patient(connection)
    create_topic(connection, topic)
    form(asking, f"{topic}-stable")
    commit(asking, f"{topic}-simple", topic, 1)
    names = [f"{topic}-{kind}" for kind in ("stable", "simple", "unknown")]
    return [asking.ask(DeleteGroupsRequest(names), version, DeleteGroupsResponse) for _ in range(2)]
