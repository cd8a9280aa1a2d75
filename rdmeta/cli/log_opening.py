"""What the words of `rdmeta log` share: the request, and the log or the state that it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rdmeta import health
from rdmeta.cli.log_options import LogChoice, LogPoint
from rdmeta.cli.messages import BadInputError, Messages
from rdmeta.cli.output import Output, Table
from rdmeta.kraft import KraftError, KraftLog, KraftState

_OF_TOPIC = 2
_OF_BROKERS = (4, "")


class LogRequest(NamedTuple):
    """The words and the options of one command line."""

    word: str
    arguments: list[str]
    output: Output
    messages: Messages
    at: LogPoint | None = None
    since: LogPoint | None = None
    until: LogPoint | None = None
    types: tuple[str, ...] = ()
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    batches: bool = False
    recordings: str | None = None
    listener: str | None = None
    proven: bool = False
    skip_corrupt: bool = False
    show_secrets: bool = False

    def head(self) -> dict[str, Any]:
        """Returns the first members of what --json prints."""
        return {"version": 1, "command": "log", "word": self.word}

    def answer(self, found: Mapping[str, object], *tables: Table) -> None:
        """Prints the members of an object as JSON, or in the other forms tables."""
        self.output.answer({**self.head(), **found}, *tables)

    def log(self, paths: Sequence[str]) -> KraftLog:
        """Returns the log at some paths. Raises KraftError."""
        return KraftLog(
            paths,
            proven=self.proven,
            skip_corrupt=self.skip_corrupt,
            show_secrets=self.show_secrets,
        )

    def state(self, log: KraftLog, at: LogPoint | None) -> KraftState:
        """Returns the state at a point, and says on stderr what is not sure about it."""
        state = log.state(at)
        doubts(self.messages, log, state.offset, state.faults)
        return state


def doubts(messages: Messages, log: KraftLog, end: int, faults: Sequence[str] = ()) -> None:
    """Says which part of an answer that reaches to an offset is not proven, or not whole."""
    for fault in log.unread:
        messages.note(f"a copy is left out: {fault}")
    if log.epochs and not log.end:
        messages.note("nothing of the log is proven to be committed, so there is nothing to show")
    if end > log.proven:
        messages.note(f"offsets {log.proven} to {end - 1} are not proven to be committed")
    for fault in faults:
        messages.note(f"passed over: {fault}")
    if faults:
        messages.note("the answer is partial: the log has records that could not be used")


def chosen_state(choice: LogChoice, messages: Messages) -> KraftState:
    """Returns the state that --log, --at and --proven choose. Raises BadInputError."""
    try:
        log = KraftLog(choice.paths, proven=choice.is_proven)
        state = log.state(choice.at)
    except KraftError as error:
        raise BadInputError(str(error)) from error
    doubts(messages, log, state.offset, state.faults)
    return state


def min_isr(state: KraftState) -> dict[str, int]:
    """Returns min.insync.replicas of the topics of which a log says it, or of all brokers.

    One that is no number is not known.
    """
    found: dict[tuple[int, str], int | None] = {
        (fact.data["resourceType"], fact.data["resourceName"]): _number(fact.data["value"])
        for fact in state.facts("configs")
        if fact.data["name"] == health.MIN_ISR
    }
    known = {name: found.get((_OF_TOPIC, name), found.get(_OF_BROKERS)) for name in state.topics}
    return {name: value for name, value in known.items() if value is not None}


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
