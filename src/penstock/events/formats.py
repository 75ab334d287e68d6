"""The forms in which events may come, told by the headers of a request. Pure."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Form(Enum):
    """How a body holds events."""

    JSON = "a JSON object, or an array of them"
    LINES = "NDJSON: a JSON object a line"
    CE_BINARY = "a CloudEvent whose attributes are headers"
    CE_STRUCTURED = "a CloudEvent as one JSON object"
    CE_BATCH = "an array of CloudEvents"


class MediaType(NamedTuple):
    """A Content-Type without its parameters but for the charset."""

    name: str
    charset: str


ACCEPTED = (
    "application/json, application/x-ndjson, application/cloudevents+json, application/cloudevents-batch+json, "
    "or application/json with ce-* headers"
)
_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")


def media_type(text: str) -> MediaType:
    """What a Content-Type header says."""
    name, *parameters = text.split(";")
    charset = ""
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    return MediaType(name.strip().lower(), charset)


def is_json(media: str) -> bool:
    """Whether a media type is JSON (RFC 6839: or ends in +json)."""
    return media in ("application/json", "text/json") or media.endswith("+json")


def form_of(content_type: str, has_ce_headers: bool) -> Form | None:
    """The form that a request announces; None if it is none of ours."""
    if content_type == "application/json" and not has_ce_headers:
        return Form.JSON
    media = media_type(content_type)
    if media.charset not in ("", "utf-8", "utf8", "us-ascii"):
        return None
    if media.name == "application/cloudevents+json":
        return Form.CE_STRUCTURED
    if media.name == "application/cloudevents-batch+json":
        return Form.CE_BATCH
    if media.name in _LINES:
        return Form.LINES
    if is_json(media.name) or (has_ce_headers and not media.name):  # a CloudEvent need not say what its data is
        return Form.CE_BINARY if has_ce_headers else Form.JSON
    return None
