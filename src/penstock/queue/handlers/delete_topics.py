"""DeleteTopics: by name, or by id."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from penstock.queue.call import Call, answer_change, change_catalog
from penstock.queue.core.catalog_changes import Change, TopicDeleted

_NO_ID = UUID(int=0)


def handle_delete_topics(call: Call, request: DeleteTopicsRequest) -> None:
    asked = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    response = DeleteTopicsResponse()

    def plan() -> list[Change]:
        changes: list[Change] = []
        times = Counter((state.name, state.topic_id) for state in asked)
        for (name, topic_id), count in times.items():
            if count > 1:
                twice = DeletableTopicResult(name, topic_id, ErrorCode.INVALID_REQUEST, "named twice in one request")
                response.responses.append(twice)
            else:
                response.responses.append(_plan(call, DeleteTopicState(name, topic_id), changes))
        return changes

    change_catalog(call, plan, answer_change(call, response))


def _plan(call: Call, state: DeleteTopicState, changes: list[Change]) -> DeletableTopicResult:
    catalog = call.host.catalog
    by_id = state.topic_id != _NO_ID
    if by_id and state.name is not None:
        return DeletableTopicResult(
            name=state.name,
            topic_id=state.topic_id,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="give a topic's name or its id, not both",
        )
    topic = catalog.by_id(state.topic_id) if by_id else catalog.topics.get(state.name or "")
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return DeletableTopicResult(
            name=state.name, topic_id=state.topic_id, error_code=code, error_message="there is no such topic"
        )
    deletion = TopicDeleted(topic.topic_id)
    if deletion not in changes:
        changes.append(deletion)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
