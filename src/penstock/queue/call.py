"""A request on its way to an answer."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.header import RequestHeader, encode_response_header
from penstock.kafka.wire.message import Message, encode
from penstock.queue.core.connection import Slot
from penstock.queue.core.host import Host
from penstock.queue.core.metadata_log import Finish, Plan
from penstock.queue.groups.coordinator import Coordinator as Groups
from penstock.queue.transactions.coordinator import Coordinator as Transactions


class Call:
    """Who asked what; `reply` answers, now or later."""

    __slots__ = ("groups", "header", "host", "now_ms", "slot", "transactions")

    def __init__(
        self, host: Host, groups: Groups, transactions: Transactions, slot: Slot, header: RequestHeader, now_ms: int
    ) -> None:
        self.host = host
        self.groups = groups
        self.transactions = transactions
        self.slot = slot
        self.header = header
        self.now_ms = now_ms

    def reply(self, response: Message, version: int | None = None) -> None:
        """Answer with a message of the request's version."""
        header = self.header
        version = header.api_version if version is None else version
        try:
            body = encode(response, version)
        except ValueError as error:
            # Our fault, but only this client's loss: no state hangs on the bytes of an answer.
            self.host.notes.note("error", "an answer could not be encoded", api=self.api.name, reason=str(error))
            self.host.replies.close(
                self.slot.connection, "our_fault", f"no answer to {self.api.name} version {version}"
            )
            return
        head = encode_response_header(header.api_key, version, header.correlation_id)
        self.host.replies.answer(self.slot, [(len(head) + len(body)).to_bytes(4, "big"), head, body])

    @property
    def client_host(self) -> str:
        """Where the client is, as Kafka writes it."""
        return f"/{self.slot.connection.peer.rpartition(':')[0]}"

    @property
    def api(self) -> ApiKey:
        return ApiKey(self.header.api_key)


def change_catalog(call: Call, plan: Plan, finish: Finish) -> None:
    """Make a durable change of the catalog: plan it when it is its turn, answer when it is true."""
    if not call.host.changes.submit(plan, finish, call.now_ms):
        close_for_changes(call)


def close_for_changes(call: Call) -> None:
    """More changes wait than the broker keeps: the connection is closed."""
    why = "too many changes of topics are waiting (metadata_queue_max)"
    call.host.replies.close(call.slot.connection, "limit", why)


def answer_change(call: Call, response: Message) -> Callable[[ErrorCode], None]:
    """What ends a change of the catalog: the response as planned, or all of it failed."""

    def finish(code: ErrorCode) -> None:
        if code:
            _fail(response, code, "the metadata log could not be written")
        call.reply(response)

    return finish


def _fail(response: Message, code: ErrorCode, why: str) -> None:
    """Turn every success in a response to a change into this failure."""
    for attribute in ("topics", "results", "responses", "partitions"):
        for part in getattr(response, attribute, ()):
            _fail(part, code, why)
    if getattr(response, "error_code", None) == ErrorCode.NONE:
        response.error_code = code  # type: ignore[attr-defined]  # just looked at
        if hasattr(response, "error_message"):
            response.error_message = why
