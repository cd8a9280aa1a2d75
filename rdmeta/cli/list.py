"""`rdmeta list`: brokers, topics and partitions, from a cluster or a saved state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import click

from rdmeta.cache import Image, MetadataCache, Reading
from rdmeta.cli.clusters import Target, side_by_side
from rdmeta.cli.messages import FINE, UNMET, BadInputError, Messages
from rdmeta.cli.options import Where, connection_options, output_options
from rdmeta.cli.output import Column, Output, Row, Table, json_text
from rdmeta.errors import Error, NotCachedError, UnknownTopicError, error_name
from rdmeta.model import Broker, Partition, Topic, topic_fault

__all__ = ["command"]

_TABLES = ("brokers", "topics", "partitions")


class State(NamedTuple):
    """The state of a cluster; `name` is that of the clusters file, None without -c."""

    name: str | None
    reading: Reading
    error: Exception | None = None


class Wanted(NamedTuple):
    """Which topics and partitions are shown; an empty list restricts nothing."""

    names: Sequence[str]
    patterns: Sequence[re.Pattern[str]]
    brokers: frozenset[int]
    internal: bool | None
    ids: bool

    def topics(self, reading: Reading) -> Iterator[Topic]:
        """Yields the wanted topics that the state has, in the order of their names."""
        if self.names and not self.patterns:
            names: Iterable[str] = sorted(set(self.names))
        else:
            names = sorted(filter(self._is_named, reading.names(allow_stale=True)))
        for name in names:
            topic = reading.topic(name, None, allow_stale=True)
            if topic is not None and self.internal in (None, topic.internal):
                yield topic

    def partitions(self, topic: Topic) -> Iterable[Partition]:
        """Returns the wanted partitions of a topic."""
        if not self.brokers:
            return topic.partitions
        return [
            each
            for each in topic.partitions
            if each.leader in self.brokers or not self.brokers.isdisjoint(each.replicas)
        ]

    def _is_named(self, name: str) -> bool:
        if not self.names and not self.patterns:
            return True
        return name in self.names or any(pattern.search(name) for pattern in self.patterns)


@click.command(
    epilog="""\b
Examples:
  rdmeta list
  rdmeta list -t orders --json
"""
)
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="NAME|/REGEX/",
    multiple=True,
    help="Only this topic, or those with a match for the regular expression. May be repeated.",
)
@click.option(
    "--broker",
    "brokers",
    type=int,
    metavar="ID",
    multiple=True,
    help="Only partitions with a replica on this broker. May be repeated.",
)
@click.option(
    "--internal/--no-internal", default=None, help="Only internal topics, or none of them."
)
@click.option("--ids", is_flag=True, help="Show the ids of topics.")
@click.option(
    "--table",
    "table",
    type=click.Choice(_TABLES),
    help="Print one table. CSV and Parquet hold partitions if this names no other.",
)
@click.option("--image", metavar="FILE", help="Read a saved or published state, and no cluster.")
@connection_options
@output_options
def command(
    where: Where,
    output: Output,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    internal: bool | None,
    ids: bool,
    table: str | None,
    image: str | None,
) -> int:
    """Show brokers, topics and partitions: leader, epoch, replicas, ISR, offline replicas."""
    wanted = Wanted(*_named(topics), frozenset(brokers), internal, ids)
    if image is None:
        states, code = _ask(where, wanted)
    else:
        states, code = [State(None, _opened(where, image))], FINE
    code = max([code, *(_missing(state, wanted, where.messages) for state in states)])
    answered = any(state.error is None for state in states)
    if output.form == "json":
        if answered or where.clusters is not None:
            output.json(_json(states, wanted))
    elif answered:
        chosen = (table,) if table else ("brokers", "partitions")
        output.tables(*(_MAKERS[each](states, wanted) for each in chosen))
    return code


def _named(topics: Sequence[str]) -> tuple[list[str], list[re.Pattern[str]]]:
    """Returns the names and the regular expressions among the values of -t."""
    names, patterns = [], []
    for each in topics:
        if len(each) > 1 and each[0] == each[-1] == "/":
            try:
                patterns.append(re.compile(each[1:-1]))
            except re.error as error:
                raise BadInputError(f"-t {each}: no regular expression: {error}") from None
        elif fault := topic_fault(each):
            raise BadInputError(f"-t {each!r} is no topic's name: {fault}")
        else:
            names.append(each)
    return names, patterns


def _ask(where: Where, wanted: Wanted) -> tuple[list[State], int]:
    """Returns what each cluster answers, and the highest exit code of those that fail."""
    from rdmeta.net.fetch import fetch

    only = wanted.names if wanted.names and not wanted.patterns else None

    def ask(target: Target) -> MetadataCache:
        cache = MetadataCache()
        fetch(cache, topics=only, timeout=where.timeout, **target.arguments())
        return cache

    states, code = [], FINE
    for target, outcome in side_by_side(where.targets(), ask):
        if isinstance(outcome, Exception):
            code = max(code, where.messages.failure(outcome, target.name))
            states.append(State(target.name, MetadataCache(), outcome))
        else:
            states.append(State(target.name, outcome))
    return states, code


def _opened(where: Where, path: str) -> Image:
    """Returns the state in a file; raises BadInputError if it is damaged or other options clash."""
    if where.bootstrap is not None or where.clusters is not None:
        raise BadInputError("--image reads a file and asks no cluster: leave out -b and -c")
    try:
        return Image.open(path)
    except Error as error:
        raise BadInputError(f"{path}: no state can be read: {error}") from error


def _missing(state: State, wanted: Wanted, messages: Messages) -> int:
    """Says which topics and brokers the state lacks, and returns the exit code for that."""
    if state.error is not None:
        return FINE
    code = FINE
    for name in sorted(set(wanted.names)):
        try:
            state.reading.topic(name, allow_stale=True)
        except (UnknownTopicError, NotCachedError):  # the latter: an all-topics answer lacks it
            messages.fault(f"topic {name} is unknown", state.name)
            code = max(code, UNMET)
        except Error as error:
            code = max(code, messages.failure(error, state.name))
    for pattern in wanted.patterns:
        if not any(map(pattern.search, state.reading.names(allow_stale=True))):
            messages.fault(f"no topic matches /{pattern.pattern}/", state.name)
            code = max(code, UNMET)
    for broker in sorted(wanted.brokers):
        known = state.reading.broker(broker, None)
        if known is None and not state.reading.partitions_on(broker, "replica", allow_stale=True):
            messages.fault(f"broker {broker} is unknown", state.name)
            code = max(code, UNMET)
    return code


# ---- tables -------------------------------------------------------------------------------------


def _table(
    states: Sequence[State],
    columns: Sequence[Column],
    rows_of: Callable[[State], Iterable[Row]],
) -> Table:
    """Returns a table of all states, with the column cluster if they have names."""
    if all(state.name is None for state in states):
        return Table(columns, (row for state in states for row in rows_of(state)))
    rows = ((state.name, *row) for state in states for row in rows_of(state))
    return Table([Column("cluster"), *columns], rows)


def _brokers(state: State, wanted: Wanted) -> Iterator[Broker]:
    for broker in state.reading.brokers:
        if not wanted.brokers or broker.id in wanted.brokers:
            yield broker


def _broker_table(states: Sequence[State], wanted: Wanted) -> Table:
    columns = [
        Column("broker", "integer"),
        Column("host"),
        Column("port", "integer"),
        Column("rack"),
        Column("controller", "flag"),
    ]

    def rows(state: State) -> Iterator[Row]:
        controller = state.reading.controller
        for each in _brokers(state, wanted):
            yield each.id, each.host, each.port, each.rack, each.id == controller

    return _table(states, columns, rows)


def _topic_table(states: Sequence[State], wanted: Wanted) -> Table:
    columns = [
        Column("topic"),
        Column("topic_id"),
        Column("internal", "flag"),
        Column("partitions", "integer"),
        Column("error"),
    ]

    def rows(state: State) -> Iterator[Row]:
        for topic in wanted.topics(state.reading):
            count = len(topic.partitions)
            yield topic.name, topic.topic_id, topic.internal, count, _error(topic.error)

    return _table(states, columns, rows)


def _partition_table(states: Sequence[State], wanted: Wanted) -> Table:
    columns = [
        Column("topic"),
        Column("partition", "integer"),
        Column("leader", "integer"),
        Column("epoch", "integer"),
        Column("replicas", "integers"),
        Column("isr", "integers"),
        Column("offline", "integers"),
    ]
    if wanted.ids:
        columns.insert(1, Column("topic_id"))

    def rows(state: State) -> Iterator[Row]:
        for topic in wanted.topics(state.reading):
            head = (topic.name, topic.topic_id) if wanted.ids else (topic.name,)
            for each in wanted.partitions(topic):
                yield (
                    *head,
                    each.partition,
                    each.leader,
                    each.leader_epoch,
                    each.replicas,
                    each.isr,
                    each.offline_replicas,
                )

    return _table(states, columns, rows)


_MAKERS = {"brokers": _broker_table, "topics": _topic_table, "partitions": _partition_table}


def _error(code: int) -> str | None:
    return error_name(code) if code else None


# ---- JSON ---------------------------------------------------------------------------------------


def _json(states: Sequence[State], wanted: Wanted) -> Iterator[str]:
    """Yields the one object in pieces: one for each topic."""
    yield '{"version":1,"command":"list","clusters":['
    yield from _joined(_cluster_object(state) for state in states)
    yield '],"brokers":['
    yield from _joined(
        {**_label(state), **broker._asdict()}
        for state in states
        for broker in _brokers(state, wanted)
    )
    yield '],"topics":['
    yield from _joined(
        _topic_object(state, topic, wanted)
        for state in states
        for topic in wanted.topics(state.reading)
    )
    yield "]}"


def _joined(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    comma = ""
    for each in objects:
        yield comma + json_text(each)
        comma = ","


def _label(state: State) -> dict[str, Any]:
    return {} if state.name is None else {"cluster": state.name}


def _cluster_object(state: State) -> dict[str, Any]:
    return {
        **_label(state),
        "cluster_id": state.reading.cluster_id,
        "controller": state.reading.controller,
        "error": None if state.error is None else str(state.error),
    }


def _topic_object(state: State, topic: Topic, wanted: Wanted) -> dict[str, Any]:
    return {
        **_label(state),
        "name": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.internal,
        "error": _error(topic.error),
        "partitions": [
            {
                "partition": each.partition,
                "leader": each.leader,
                "leader_epoch": each.leader_epoch,
                "replicas": each.replicas,
                "isr": each.isr,
                "offline": each.offline_replicas,
            }
            for each in wanted.partitions(topic)
        ],
    }
