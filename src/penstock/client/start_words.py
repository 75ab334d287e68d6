"""The words for both ends of a topic, wherever a user says where to begin. Kafka's words mean the same."""

from __future__ import annotations

from typing import Literal

Word = Literal["beginning", "end"]
BEGINNING: Word = "beginning"
END: Word = "end"
START_WORDS: dict[str, Word] = {
    "beginning": BEGINNING,
    "earliest": BEGINNING,
    "end": END,
    "latest": END,
    "now": END,
}


def start_word(text: str) -> Word | None:
    """The end of the topic that a word names; None if it is not one of the words."""
    return START_WORDS.get(text)
