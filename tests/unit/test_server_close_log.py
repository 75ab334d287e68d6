"""What the log says of connections that were closed: every kind, and none too often."""

from __future__ import annotations

from penstock.queue.server.close_log import KINDS_MAX, LINES_EACH, WINDOW_MS, CloseLog


class Page:
    """A log to be read: one text a line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, level: str, event: str, **details: object) -> None:
        self.lines.append(" ".join([level, event, *(f"{key}={value}" for key, value in details.items())]))


def test_a_flood_of_one_kind_is_some_lines_and_a_count() -> None:
    """Reasons that differ in their numbers are of one kind; the count comes with the end of the second."""
    page = Page()
    closings = CloseLog(page.write)
    for number in range(LINES_EACH + 412):
        closings.tell("warning", "connection closed", f"{number} bytes wanted", 1000, peer="someone")
    assert page.lines == [
        f"warning connection closed peer=someone reason={number} bytes wanted" for number in range(LINES_EACH)
    ]
    assert closings.is_holding
    closings.settle(1000 + WINDOW_MS - 1)
    assert len(page.lines) == LINES_EACH
    closings.settle(1000 + WINDOW_MS)
    assert page.lines[LINES_EACH:] == [
        f"warning connection closed, and more like it count=412 reason={LINES_EACH + 411} bytes wanted"
    ]
    assert not closings.is_holding


def test_another_kind_is_told_in_the_midst_of_a_flood() -> None:
    """Its reason is not lost among the others."""
    page = Page()
    closings = CloseLog(page.write)
    for _ in range(1000):
        closings.tell("warning", "connection closed", "a TLS greeting", 1000)
    closings.tell("info", "connection closed", "silent for too long", 1000)
    assert page.lines[-1] == "info connection closed reason=silent for too long"


def test_each_second_begins_anew() -> None:
    """What was told enough a second ago is told again, and what was left out is told first."""
    page = Page()
    closings = CloseLog(page.write)
    for _ in range(LINES_EACH + 1):
        closings.tell("warning", "connection closed", "nonsense", 1000)
    closings.tell("warning", "connection closed", "nonsense", 1000 + WINDOW_MS)
    assert page.lines[LINES_EACH:] == [
        "warning connection closed, and more like it count=1 reason=nonsense",
        "warning connection closed reason=nonsense",
    ]


def test_kinds_without_end_are_bounded() -> None:
    """Whoever makes up a new reason each time gets no line for each, and every one of them is counted."""
    page = Page()
    closings = CloseLog(page.write)
    for number in range(KINDS_MAX + LINES_EACH + 50):
        closings.tell("warning", "connection closed", "x" * number, 1000)
    assert len(page.lines) == KINDS_MAX + LINES_EACH
    closings.flush()
    assert "count=50" in page.lines[-1]
