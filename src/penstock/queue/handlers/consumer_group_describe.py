"""ConsumerGroupDescribe: groups of the newer protocol, with what each member has and shall have."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from penstock.queue.call import Call
from penstock.queue.groups.changes import ConsumerMember
from penstock.queue.groups.consumer.group import ConsumerGroup
from penstock.queue.groups.consumer.partitions import Packed

_CLASSIC, _CONSUMER = 0, 1


def handle_consumer_group_describe(call: Call, request: ConsumerGroupDescribeRequest) -> None:
    groups = [_describe(call, group_id) for group_id in dict.fromkeys(request.group_ids)]
    call.reply(ConsumerGroupDescribeResponse(groups=groups))


def _describe(call: Call, group_id: str) -> DescribedGroup:
    group = call.groups.consumers.groups.get(group_id)
    if group is None:
        is_classic = group_id in call.groups.groups
        why = f"Group {group_id} is not a consumer group." if is_classic else f"Group {group_id} not found."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, why, group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor or "uniform",
        members=[_member(call, group, member) for member in group.members.values()],
    )


def _member(call: Call, group: ConsumerGroup, member: ConsumerMember) -> Member:
    return Member(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        list(member.topics),
        member.pattern or "",
        _assignment(call, member.assigned),
        _assignment(call, group.targets.get(member.member_id, ())),
        _CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(call: Call, parts: Packed) -> Assignment:
    found = []
    for topic_id, indexes in parts:
        topic = call.host.catalog.by_id(topic_id)
        if topic is not None:
            found.append(TopicPartitions(topic_id, topic.name, list(indexes)))
    return Assignment(found)
