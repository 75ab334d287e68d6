"""Whether a topic is still the one that an app made: a topic that is deleted and made again has another id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from penstock.errors import PenstockError

_ANSWER_S = 4.0


def topic_ids(admin: AdminClient, names: Sequence[str]) -> dict[str, str]:
    """The id of each of these topics that the queue has; PenstockError if it does not answer. Blocks."""
    found = {}
    for name, future in admin.describe_topics(TopicCollection(list(names)), request_timeout=_ANSWER_S).items():
        try:
            found[name] = str(future.result(_ANSWER_S).topic_id)
        except (KafkaException, TimeoutError) as error:
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            raise PenstockError(f"the queue does not describe the topic {name}") from None
    return found


def identity_errors(made: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str]:
    """A sentence for each topic that is not the one that the app made; both map names to ids."""
    errors = {}
    for name, topic_id in made.items():
        if name not in there:
            errors[name] = (
                f"the topic {name} was deleted while the app runs: start the app again, which makes the topic with the "
                "settings of its guarantee. A query that had read it then names the checkpoint to remove"
            )
        elif there[name] != topic_id:
            errors[name] = (
                f"the topic {name} was deleted and made again by another client, and may not keep its guarantee: "
                f"delete it and start the app again, or start the app with --adopt {name}"
            )
    return errors


def checkpoint_error(kept: Mapping[str, str], there: Mapping[str, str], files: Sequence[Path]) -> str | None:
    """Why a query cannot go on: a topic that its checkpoint points into was made again. None if it can.

    `files` are those of the checkpoint.
    """
    for name, topic_id in kept.items():
        if name in there and there[name] != topic_id:
            return (
                f"the topic {name} was deleted and made again since the query's last start: its checkpoint points into "
                f"the topic before. To begin at the start, remove {' and '.join(map(str, files))}, or give the query "
                "another name"
            )
    return None
