"""`rdmeta list`: brokers, topics and partitions, from a cluster or a saved state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click

from rdmeta import health
from rdmeta.cache import Image, MetadataCache
from rdmeta.cli.clusters import Target, side_by_side
from rdmeta.cli.messages import FINE, UNMET, BadInputError
from rdmeta.cli.options import Where, connection_options, output_options
from rdmeta.cli.output import Column, Output, Row, Share, Table, json_text
from rdmeta.cli.selection import Selection, State, conditions, named_topics
from rdmeta.errors import Error, error_name
from rdmeta.model import Partition, Topic

__all__ = ["command"]


@click.command(
    epilog="""\b
Examples:
  rdmeta list -t orders
  rdmeta list --leaderless --urp --json
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
@click.option("--urp", is_flag=True, help="Only partitions with a replica that is not in sync.")
@click.option("--leaderless", is_flag=True, help="Only partitions without a leader.")
@click.option("--offline", is_flag=True, help="Only partitions with an offline replica.")
@click.option("--nonpreferred", is_flag=True, help="Only those that another replica leads.")
@click.option(
    "--if-down",
    type=int,
    metavar="ID",
    multiple=True,
    help="Only those that would lose their last in-sync replica without this broker, or brokers.",
)
@click.option("--fail", is_flag=True, help="Exit with 1 if such a partition is found.")
@click.option("--skew", is_flag=True, help="Leaders and replicas per broker and rack.")
@click.option("--ids", is_flag=True, help="Show the ids of topics.")
@click.option(
    "--table",
    type=click.Choice(["brokers", "topics", "partitions", "racks"]),
    help="Print this table alone; CSV and Parquet hold partitions otherwise, brokers with --skew.",
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
    if_down: tuple[int, ...],
    fail: bool,
    skew: bool,
    ids: bool,
    table: str | None,
    image: str | None,
    **flags: bool,
) -> int:
    """Show brokers, topics and partitions: leader, epoch, replicas, ISR, offline replicas.

    --urp, --leaderless, --offline, --nonpreferred and --if-down choose partitions; if several are
    given, one of them is enough.
    """
    names, patterns = named_topics(topics)
    given = [flag for flag, is_given in flags.items() if is_given]
    chosen = Selection(
        names,
        patterns,
        frozenset(brokers),
        internal,
        conditions(given, if_down=if_down),
        frozenset(if_down),
    )
    shown = _shown_tables(table, skew, bool(chosen.conditions), output)
    if fail and not chosen.conditions:
        raise BadInputError("--fail needs a condition, such as --urp")
    if image is None:
        states, code = _ask(where, chosen)
    else:
        states, code = [State(None, _opened(where, image))], FINE
    code = max([code, *(chosen.missing(state, where.messages) for state in states)])
    if output.form == "json":
        if where.clusters is not None or any(state.error is None for state in states):
            output.json(_skew_json(states, chosen) if skew else _json(states, chosen))
    elif any(state.error is None for state in states):
        makers = _SKEW_TABLES if skew else _TABLES
        output.tables(*(makers[each](states, chosen, ids) for each in shown))
    if fail and any(True for state in states for _ in chosen.topics_of(state)):
        return max(code, UNMET)
    return code


def _shown_tables(table: str | None, skew: bool, has_conditions: bool, output: Output) -> list[str]:
    """Returns the names of the tables to print; raises BadInputError for one that is not there."""
    possible = _SKEW_TABLES if skew else _TABLES
    if table is None:
        if skew:
            return ["racks", "brokers"] if output.form == "text" else ["brokers"]
        return ["partitions"] if has_conditions else ["brokers", "partitions"]
    if output.form == "json":
        raise BadInputError("--json has every table: leave out --table")
    if table not in possible:
        hint = "needs --skew" if table in _SKEW_TABLES else "contradicts --skew"
        raise BadInputError(f"--table {table} {hint}")
    return [table]


def _ask(where: Where, chosen: Selection) -> tuple[list[State], int]:
    """Returns what each cluster answers, and the highest exit code of those that fail."""
    from rdmeta.net.fetch import fetch

    only = chosen.names if chosen.names and not chosen.patterns else None

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
        raise BadInputError(f"--image: {error}") from error


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


def _broker_table(states: Sequence[State], chosen: Selection, ids: bool) -> Table:
    columns = [
        Column("broker", "integer"),
        Column("host"),
        Column("port", "integer"),
        Column("rack"),
        Column("controller", "flag"),
    ]

    def rows(state: State) -> Iterator[Row]:
        controller = state.reading.controller
        for each in chosen.brokers_of(state):
            yield each.id, each.host, each.port, each.rack, each.id == controller

    return _table(states, columns, rows)


def _topic_table(states: Sequence[State], chosen: Selection, ids: bool) -> Table:
    columns = [
        Column("topic"),
        Column("topic_id"),
        Column("internal", "flag"),
        Column("partitions", "integer"),
        Column("error"),
    ]

    def rows(state: State) -> Iterator[Row]:
        for topic, _ in chosen.topics_of(state):
            count = len(topic.partitions)
            yield topic.name, topic.topic_id, topic.internal, count, _error(topic)

    return _table(states, columns, rows)


def _partition_table(states: Sequence[State], chosen: Selection, ids: bool) -> Table:
    columns = [
        Column("topic"),
        Column("partition", "integer"),
        Column("leader", "integer"),
        Column("epoch", "integer"),
        Column("replicas", "integers"),
        Column("isr", "integers"),
        Column("offline", "integers"),
    ]
    if ids:
        columns.insert(1, Column("topic_id"))

    def rows(state: State) -> Iterator[Row]:
        for topic, partitions in chosen.topics_of(state):
            head = (topic.name, topic.topic_id) if ids else (topic.name,)
            for each in partitions:
                yield (
                    *head,
                    each.partition,
                    _leader(each),
                    each.leader_epoch,
                    each.replicas,
                    each.isr,
                    each.offline_replicas,
                )

    return _table(states, columns, rows)


_TABLES = {"brokers": _broker_table, "topics": _topic_table, "partitions": _partition_table}


def _leader(partition: Partition) -> int | None:
    """Returns the leader; None also where a state that is past its deadline has the last one."""
    return None if partition.leaderless else partition.leader


def _error(topic: Topic) -> str | None:
    return error_name(topic.error) if topic.error else None


# ---- skew ---------------------------------------------------------------------------------------

_LOAD = (
    Column("leaders", "integer"),
    Column("leaders_above", "share"),
    Column("replicas", "integer"),
    Column("replicas_above", "share"),
)


def _skew(state: State, chosen: Selection) -> health.Skew:
    partitions = (each for _, found in chosen.topics_of(state) for each in found)
    return health.skew(state.reading.brokers, *health.counts(partitions))


def _broker_loads(states: Sequence[State], chosen: Selection, ids: bool) -> Table:
    columns = [Column("broker", "integer"), Column("rack"), *_LOAD]
    return _table(states, columns, lambda state: map(_load_row, _skew(state, chosen).brokers))


def _rack_loads(states: Sequence[State], chosen: Selection, ids: bool) -> Table:
    columns = [Column("rack"), Column("brokers", "integer"), *_LOAD]
    return _table(states, columns, lambda state: map(_load_row, _skew(state, chosen).racks))


def _load_row(load: health.BrokerLoad | health.RackLoad) -> Row:
    return [Share(cell) if isinstance(cell, float) else cell for cell in load]


_SKEW_TABLES = {"brokers": _broker_loads, "racks": _rack_loads}


# ---- JSON ---------------------------------------------------------------------------------------


def _json(states: Sequence[State], chosen: Selection) -> Iterator[str]:
    """Yields the one object in pieces: one for each topic."""
    yield from _head(states)
    yield '],"brokers":['
    yield from _joined(
        {**_label(state), **broker._asdict()}
        for state in states
        for broker in chosen.brokers_of(state)
    )
    yield '],"topics":['
    yield from _joined(
        _topic_object(state, topic, partitions)
        for state in states
        for topic, partitions in chosen.topics_of(state)
    )
    yield "]}"


def _skew_json(states: Sequence[State], chosen: Selection) -> Iterator[str]:
    skews = [(state, _skew(state, chosen)) for state in states]
    yield from _head(states)
    yield '],"skew":{"brokers":['
    yield from _joined(
        {**_label(s), **load._asdict()} for s, skew in skews for load in skew.brokers
    )
    yield '],"racks":['
    yield from _joined({**_label(s), **load._asdict()} for s, skew in skews for load in skew.racks)
    yield "]}}"


def _head(states: Sequence[State]) -> Iterator[str]:
    yield '{"version":1,"command":"list","clusters":['
    yield from _joined(
        {
            **_label(state),
            "cluster_id": state.reading.cluster_id,
            "controller": state.reading.controller,
            "error": None if state.error is None else str(state.error),
        }
        for state in states
    )


def _joined(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    comma = ""
    for each in objects:
        yield comma + json_text(each)
        comma = ","


def _label(state: State) -> dict[str, Any]:
    return {} if state.name is None else {"cluster": state.name}


def _topic_object(state: State, topic: Topic, partitions: Iterable[Partition]) -> dict[str, Any]:
    return {
        **_label(state),
        "name": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.internal,
        "error": _error(topic),
        "partitions": [
            {
                "partition": each.partition,
                "leader": _leader(each),
                "leader_epoch": each.leader_epoch,
                "replicas": each.replicas,
                "isr": each.isr,
                "offline": each.offline_replicas,
            }
            for each in partitions
        ],
    }
