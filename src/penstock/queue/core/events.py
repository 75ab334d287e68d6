"""What happens to a node, and what it wants done."""

from __future__ import annotations

from typing import NamedTuple

from penstock.kafka.records.batch import Refusal
from penstock.ports import Buffer, File


class Connected(NamedTuple):
    """A client has connected."""

    connection: int
    peer: str


class Received:
    """A whole frame, without its length; the node may write into it, and it is gone after the step."""

    __slots__ = ("connection", "frame")  # one for every request, and a tuple with names is dear to make

    def __init__(self, connection: int, frame: memoryview) -> None:
        self.connection = connection
        self.frame = frame


class Drained(NamedTuple):
    """All bytes replied to a client have left."""

    connection: int


class Disconnected(NamedTuple):
    """A client is gone."""

    connection: int


class Synced(NamedTuple):
    """A sync has ended; `error` says why it failed."""

    job: int
    error: str | None


class Loaded(NamedTuple):
    """What a Load asked for is at hand, or could not be had: reading it tells."""

    job: int


class Opened(NamedTuple):
    """The batches of an Open are checked; why each must not be stored, or None, in their order."""

    job: int
    refusals: list[Refusal | None]


Event = Connected | Received | Drained | Disconnected | Synced | Loaded | Opened


class Reply:
    """Send these bytes to a client, in this order; if `is_large`, say Drained when they have left."""

    __slots__ = ("chunks", "connection", "is_large")

    def __init__(self, connection: int, chunks: list[Buffer], is_large: bool) -> None:
        self.connection = connection
        self.chunks = chunks
        self.is_large = is_large


class Close(NamedTuple):
    """Close a connection, once what was replied before has been sent; the reason goes to the log."""

    connection: int
    reason: str


class Sync(NamedTuple):
    """Make files, then folders, durable, and say so with Synced. Never twice for the same job."""

    job: int
    files: list[File]
    folders: list[str]


class Part(NamedTuple):
    """A part of a file."""

    file: File
    position: int
    length: int


class Load(NamedTuple):
    """Bring parts of files into memory while others go on, and say so with Loaded."""

    job: int
    parts: list[Part]


class Open(NamedTuple):
    """Open these batches and check their records while others go on, and say so with Opened."""

    job: int
    batches: list[memoryview]


class Pause(NamedTuple):
    """Stop reading from a client until Resume: it has too much unanswered."""

    connection: int


class Resume(NamedTuple):
    """Read from a client again."""

    connection: int


class Note(NamedTuple):
    """Something an operator should find in the log."""

    level: str
    event: str
    details: dict[str, object]


Effect = Reply | Close | Sync | Load | Open | Pause | Resume | Note
