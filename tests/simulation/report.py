"""The readable trace of a seed: what happened, one line each."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from network import Answer, Link

from rdmeta.client.actions import Action, Close, Connect, Finish, Node, OtherRequest, Send
from rdmeta.model import Applied, Request

if TYPE_CHECKING:
    from world import World


class Report:
    """Keeps the last lines of a run."""

    def __init__(self, lines: int | None = 80) -> None:
        self.lines: deque[str] = deque(maxlen=lines)

    def note(self, world: World, *what: object) -> None:
        self._add(world, " ".join(_shown(each) for each in what))

    def action(self, world: World, action: Action) -> None:
        """Notes an action of the policy."""
        if isinstance(action, Connect):
            text = f"-> connect link {action.link} to {_shown(action.node)}"
        elif isinstance(action, Send):
            hedge = " (hedge)" if action.hedge else ""
            text = (
                f"-> send {action.number} on link {action.link}: {action.kind.value}"
                f" {_shown(action.request)} for {action.reason!r}{hedge}"
            )
        elif isinstance(action, Close):
            text = f"-> close link {action.link}: {action.cause}"
        else:
            assert isinstance(action, Finish)
            text = f"-> finish {action.waiter}: {action.error or 'ok'}"
        self._add(world, text)

    def _add(self, world: World, text: str) -> None:
        self.lines.append(f"{world.now - 1000:10.4f}  {text}")


def _shown(what: object) -> str:
    if isinstance(what, float):
        return f"{what:.4f}"
    if isinstance(what, Request):
        topics = what.topics
        return "all topics" if not isinstance(topics, tuple | list) else f"{list(topics)}"
    if isinstance(what, OtherRequest):
        return f"API {what.api_key}"
    if isinstance(what, Node):
        return f"{what.id} at {what.host}"
    if isinstance(what, Link):
        return f"link {what.number} ({_shown(what.node)})"
    if isinstance(what, Send):
        return f"to {what.number}:"
    if isinstance(what, Answer):
        topics = ", ".join(
            str(t.name)
            + (f" error {t.error}" if t.error else "")
            + "".join(f" {p.leader}@{p.epoch}" for p in t.partitions)
            for t in what.topics
        )
        return f"v{what.version} {len(what.body)} bytes [{topics}]"
    if isinstance(what, Applied):
        return f"changed {what.changed}, advice {what.advice!r}"
    return str(what)
