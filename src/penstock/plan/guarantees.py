"""The guarantee of each topic: its own, or what it inherits from the topics behind it."""

from __future__ import annotations

from penstock.app import App
from penstock.guarantee import Guarantee, weakest
from penstock.plan.inputs import queries_of


def promises(app: App) -> dict[str, Guarantee]:
    """The guarantee of every topic: its own; else, if a query writes it, the weakest of what that reads."""
    found = {topic.name: topic.guarantee for topic in app.topics if topic.guarantee is not None}
    writer = {query.writes: query for query in queries_of(app)}

    def promise(name: str, behind: tuple[str, ...]) -> Guarantee:
        if name not in found:
            reads = writer[name].reads if name in writer and name not in behind else ()  # a cycle is told by itself
            before = [promise(read, (*behind, name)) for read in reads]
            found[name] = weakest(*before) if before else Guarantee()
        return found[name]

    for name in [*(topic.name for topic in app.topics), *writer]:
        promise(name, ())
    return found
