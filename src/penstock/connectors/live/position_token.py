"""The resume token: where a client stands in each partition of its topics, as text that a person can read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

Place = tuple[str, int]
Positions = dict[Place, int]  # the offset that comes next

LENGTH_MAX = 64 * 1024
_PARTITION_MAX, _OFFSET_MAX = 2**31 - 1, 2**63 - 1
_TOPIC = re.compile(r"([A-Za-z0-9._-]{1,249})=([0-9:,]+)")
_PAIR = re.compile(r"([0-9]{1,10}):([0-9]{1,19})")


def encode_topic(topic: str, next_offsets: Mapping[int, int]) -> str:
    """'decisions=0:124,1:456' from {0: 124, 1: 456}."""
    return f"{topic}={','.join([f'{partition}:{offset}' for partition, offset in next_offsets.items()])}"


def encode_token(positions: Mapping[Place, int]) -> str:
    """'decisions=0:124,1:456;purchases=0:7': what comes next, for each topic and partition."""
    by_topic: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        by_topic.setdefault(topic, {})[partition] = offset
    return ";".join(encode_topic(topic, offsets) for topic, offsets in by_topic.items())


def decode_token(text: str, topics: Iterable[str]) -> Positions:
    """The positions in a token for a stream of `topics`; ValueError says what is wrong."""
    known = set(topics)
    if len(text) > LENGTH_MAX:
        raise ValueError(f"a resume token has at most {LENGTH_MAX} characters")
    found: Positions = {}
    for part in text.split(";"):
        match = _TOPIC.fullmatch(part)
        if match is None:
            raise ValueError(f"a resume token looks like TOPIC=0:124,1:456, not {part[:100]!r}")
        if match[1] not in known:
            raise ValueError(f"this resume token is of topic {match[1]}, which is not delivered here")
        for partition, offset in decode_offsets(match[2]).items():
            if (match[1], partition) in found:
                raise ValueError(f"this resume token names partition {partition} of {match[1]} twice")
            found[match[1], partition] = offset
    return found


def decode_offsets(text: str) -> dict[int, int]:
    """{0: 124, 1: 456} from '0:124,1:456'; ValueError says what is wrong."""
    found: dict[int, int] = {}
    for pair in text.split(","):
        match = _PAIR.fullmatch(pair)
        if match is None or int(match[1]) > _PARTITION_MAX or int(match[2]) > _OFFSET_MAX:
            raise ValueError(f"offsets look like PARTITION:OFFSET, as in 0:124,1:456, not {pair[:100]!r}")
        if int(match[1]) in found:
            raise ValueError(f"partition {match[1]} is named twice")
        found[int(match[1])] = int(match[2])
    return found
