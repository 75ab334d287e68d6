"""POST /ingest/<path>: from a request to stored events and the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from penstock.connect import responses as answers
from penstock.connect.asgi import GoneError, LateError, Receive, Scope, Send, header, next_chunk, reply
from penstock.connect.not_stored import TOO_LARGE
from penstock.connect.responses import Answer
from penstock.connectors.http.bodies import BadBodyError, read_events
from penstock.connectors.http.line_stream import LineStream
from penstock.edge.admission import Admission, RefusedError
from penstock.edge.intake import Intake, fresh_ids, now_ms
from penstock.edge.memory_budget import EVENT_OVERHEAD_BYTES
from penstock.edge.results.followed_outputs import Results
from penstock.edge.results.routes import Pending, Waiting
from penstock.edge.results.rules import Asked
from penstock.events.event import Event
from penstock.events.formats import ACCEPTED, Form, form_of

PREFIX = "/ingest/"
ONE_ONLY = "wait is for a request with one event"


class IngestDoors:
    """Every door of an edge; an ASGI application, since a request object an event costs more than the event."""

    def __init__(
        self,
        collector: Intake,
        results: Results,
        is_checked: Callable[[], bool] | None = None,
        topic_errors: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Nothing is taken before `is_checked`: an app that cannot run should not have said 202.

        `topic_errors` names the topics that are not as the app made them, with the reason.
        """
        self._is_checked = is_checked
        self._topic_errors = topic_errors
        self._collector = collector
        self._counters = collector.counters
        self._waiting = Waiting(collector, results)

    def stop(self) -> None:
        """Answer everybody who waits for a result."""
        self._waiting.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive)
        except GoneError:
            self._counters.refused["gone"] += 1
            return
        except LateError:
            self._counters.refused["late"] += 1
            answer = answers.too_late()
        await reply(send, answer)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        path = scope["path"][len(PREFIX) :]
        admission = self._collector.admissions.get(path)
        if admission is None:
            return self._refuse("unknown_path", answers.unknown_path(path, self._collector.admissions))
        if scope["method"] != "POST":
            return self._refuse("method", answers.wrong_method(scope["method"], "POST"))
        if self._is_checked is not None:
            if not self._is_checked():
                return self._refuse("unchecked", answers.overloaded(False, "the app's queries are still being checked"))
            self._is_checked = None
        if error := self._topic_errors().get(admission.topic):
            return self._refuse("topic", answers.topic_unavailable(error))
        content_type = header(scope, b"content-type").decode("latin-1")
        form = form_of(content_type, bool(header(scope, b"ce-specversion")))
        encoding = header(scope, b"content-encoding")
        if form is None or encoding not in (b"", b"identity"):
            said = content_type if form is None else f"{content_type} as {encoding.decode('latin-1')}"
            return self._refuse("type", answers.wrong_type(said, ACCEPTED))
        try:
            asked = self._waiting.asked(admission.topic, scope["query_string"]) if scope["query_string"] else None
        except ValueError as wrong:
            return self._refuse("wait", answers.failure(400, str(wrong)))
        if form is Form.LINES:
            if asked is not None:
                return self._refuse("wait", answers.failure(400, ONE_ONLY))
            return await LineStream(self._collector, admission).run(scope, receive)
        found = await self._take_whole(scope, receive, admission, form, asked)
        return found if isinstance(found, Answer) else await self._waiting.result(found)

    def _refuse(self, reason: str, answer: Answer) -> Answer:
        self._counters.refused[reason] += 1
        return answer

    async def _take_whole(
        self, scope: Scope, receive: Receive, admission: Admission, form: Form, asked: Asked | None
    ) -> Answer | Pending:
        """A body that is taken as a whole: all of its events are admitted before one is stored, and have room until."""
        room, held = self._collector.room, 0
        body = bytearray()
        try:
            more = True
            while more:
                chunk, more = await next_chunk(scope, receive)
                if len(body) + len(chunk) > self._collector.config.body_bytes_max:
                    return self._refuse("size", self._too_large())
                if not room.take(len(chunk)):
                    return self._overloaded(admission.topic)
                held += len(chunk)
                body += chunk
            began = time.perf_counter()
            try:
                events = self._admit(scope, bytes(body), admission, form)
            except BadBodyError as wrong:
                return self._refuse("event", answers.bad_event(wrong.reason, wrong.event, wrong.status))
            if asked is not None and len(events) > 1:
                return self._refuse("wait", answers.failure(400, ONE_ONLY))
            overhead = EVENT_OVERHEAD_BYTES * len(events)
            if not room.take(overhead):
                return self._overloaded(admission.topic)
            held += overhead
            if asked is None:
                return await self._collector.store_all(admission.topic, events, began)
            return await self._waiting.store(admission.topic, events[0], began, asked)
        finally:
            room.give(held)

    def _admit(self, scope: Scope, body: bytes, admission: Admission, form: Form) -> list[Event]:
        incoming, listed = read_events(form, body, scope["headers"], self._collector.config.body_events_max)
        ready, now = [], now_ms()
        for number, event in enumerate(incoming):
            try:
                key, identity = admission.admit(event.value, now)
            except RefusedError as wrong:
                raise BadBodyError(str(wrong), number if listed else None, wrong.status) from None
            ready.append(Event(event.value, key, identity or event.id, event.headers))
        if not ready[0].id:  # none has one, then: they are all of one form
            ready = [event._replace(id=id) for event, id in zip(ready, fresh_ids(len(ready)), strict=True)]
        for number, fault in self._collector.oversized(admission.topic, ready):
            raise BadBodyError(fault, number if listed else None, TOO_LARGE)
        return ready

    def _overloaded(self, topic: str) -> Answer:
        return self._refuse(
            "overload", answers.overloaded(self._collector.drops(topic), "too many events wait for the queue")
        )

    def _too_large(self) -> Answer:
        return answers.too_large(
            f"a body that is taken as a whole has at most {self._collector.config.body_bytes_max} bytes: send NDJSON"
        )
