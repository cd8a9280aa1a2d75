"""`rdmeta list`: brokers, topics and partitions, from a cluster or a saved state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import click

from rdmeta import health
from rdmeta.cache import Image, MetadataCache
from rdmeta.cli.log_options import LogChoice, state_options
from rdmeta.cli.messages import FINE, NO_ANSWER, UNMET, BadInputError
from rdmeta.cli.min_isr_asker import KnownMinIsrs
from rdmeta.cli.output import Output, Row, Share, Table, clusters_table, columns, json_text, label
from rdmeta.cli.selection import NEED_MIN_ISR, ClusterState, Selection, conditions, named_topics
from rdmeta.cli.shared_options import (
    Target,
    Where,
    connection_options,
    output_options,
    side_by_side,
    topics_option,
)
from rdmeta.errors import (
    Error,
    UnsupportedVersionError,
    error_name,
)
from rdmeta.model import Partition, Topic, operation_names

# Seconds that a question for the controller may take: a quorum without a leader does not answer.
_CONTROLLER_S = 2.0
_LARGEST = 1 << 20


@click.command(
    epilog="""\b
Examples:
  rdmeta list -t orders
  rdmeta list --leaderless --urp --json
"""
)
@topics_option
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
    "--under-min-isr",
    is_flag=True,
    help="Only those with fewer replicas in sync than min.insync.replicas of the topic.",
)
@click.option("--at-min-isr", is_flag=True, help="Only those with exactly that many.")
@click.option(
    "--if-down",
    type=int,
    metavar="ID",
    multiple=True,
    help="Only those that would lose their last in-sync replica if these brokers failed.",
)
@click.option("--fail", is_flag=True, help="Exit with 1 if such a partition is found.")
@click.option("--skew", is_flag=True, help="Leaders and replicas per broker and rack.")
@click.option("--ids", is_flag=True, help="Show the ids of topics.")
@click.option(
    "--operations", is_flag=True, help="What the user may do with the cluster and its topics."
)
@click.option(
    "--table",
    type=click.Choice(["clusters", "brokers", "topics", "partitions", "racks"]),
    help="Print this table alone; CSV and Parquet hold partitions otherwise, brokers with --skew.",
)
@click.option("--image", metavar="FILE", help="Read a saved or published state, and no cluster.")
@state_options
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
    operations: bool,
    table: str | None,
    image: str | None,
    log: LogChoice | None,
    **flags: bool,
) -> int:
    """Show brokers, topics and partitions: leader, epoch, replicas, ISR, offline replicas.

    --urp, --leaderless, --offline, --nonpreferred, --under-min-isr, --at-min-isr and --if-down
    choose partitions; if several are given, one of them is enough. On KRaft the controller is the
    leader of the quorum (DescribeQuorum), and - if no broker names it. An image has none. --log
    shows any moment of a metadata log, with the min.insync.replicas of that moment.
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
    show = Show(chosen, ids, operations, not NEED_MIN_ISR.isdisjoint(given))
    shown = _shown_tables(table, skew, show, output)
    if fail and not chosen.conditions:
        raise BadInputError("--fail needs a condition, such as --urp")
    if log is not None:
        states, code = [_logged(where, log, image, show)], FINE
    elif image is None:
        if output.form == "json" or (not skew and {"brokers", "clusters"} & set(shown)):
            show = show._replace(controller=True)
        states, code = _ask(where, show, fail)
    else:
        states, code = [ClusterState(None, _opened(where, image, show))], FINE
    code = max([code, *(chosen.missing(state, where.messages) for state in states)])
    if output.form == "json":
        if where.clusters is not None or any(state.error is None for state in states):
            output.json(_skew_json(states, chosen) if skew else _json(states, show))
    elif any(state.error is None for state in states):
        makers = _SKEW_TABLES if skew else _TABLES
        output.tables(*(makers[each](states, show) for each in shown))
    if fail and any(True for state in states for _ in chosen.topics_of(state)):
        return max(code, UNMET)
    return code


class Show(NamedTuple):
    """What is shown: which topics and partitions, and which columns besides the usual ones."""

    chosen: Selection
    ids: bool = False
    operations: bool = False
    min_isr: bool = False
    controller: bool = False


def _shown_tables(table: str | None, skew: bool, show: Show, output: Output) -> list[str]:
    """Returns the names of the tables to print; raises BadInputError for one that is not there."""
    possible = _SKEW_TABLES if skew else _TABLES
    if table is None:
        if skew:
            return ["racks", "brokers"] if output.form == "text" else ["brokers"]
        if show.chosen.conditions:
            return ["partitions"]
        return ["clusters", "topics"] if show.operations else ["brokers", "partitions"]
    if output.form == "json":
        raise BadInputError("--json has every table: leave out --table")
    if table not in possible:
        hint = "needs --skew" if table in _SKEW_TABLES else "contradicts --skew"
        raise BadInputError(f"--table {table} {hint}")
    return [table]


def _ask(where: Where, show: Show, fail: bool) -> tuple[list[ClusterState], int]:
    """Returns what each cluster answers, and the highest exit code of those that fail."""
    targets = where.targets()
    if where.messages.level > 0 or show.min_isr or any("conf" in t.arguments() for t in targets):
        where.messages.log(quietly=True)
    states, code = [], FINE
    for target, outcome in side_by_side(targets, lambda target: _state(target, where, show)):
        if isinstance(outcome, Exception):
            code = max(code, where.messages.failure(outcome, target.name))
            states.append(ClusterState(target.name, MetadataCache(), outcome))
        else:
            state, unknown = outcome
            states.append(state)
            for line in unknown.values():
                where.messages.fault(line, state.name)
            code = max(code, NO_ANSWER if fail and unknown else FINE)
    return states, code


def _state(target: Target, where: Where, show: Show) -> tuple[ClusterState, dict[str, str]]:
    """Returns the state of a cluster, and by the cause a line about topics of unknown min ISR."""
    from rdmeta.net.fetch import fetch

    chosen = show.chosen
    until = time.monotonic() + where.timeout
    cache = MetadataCache()
    applied = fetch(
        cache,
        topics=chosen.names if chosen.names and not chosen.patterns else None,
        timeout=where.timeout,
        operations=show.operations,
        **target.arguments(),
    )
    state = ClusterState(target.name, cache, operations=applied.cluster_operations)
    if show.controller:
        left = min(_CONTROLLER_S, max(0.001, until - time.monotonic()))
        state = state._replace(controller=_controller(target, cache, left))
    if not show.min_isr:
        return state, {}
    answer = _min_isr(target, chosen.names_in(cache), max(0.0, until - time.monotonic()))
    return state._replace(min_isr=answer.known), answer.lines()


def _controller(target: Target, cache: MetadataCache, timeout: float) -> int | None:
    """Returns the leader of a KRaft cluster's quorum; None if it is not known.

    Metadata names the controller of a cluster without a quorum, and a random broker with one.
    """
    try:
        if "conf" not in target.arguments():
            return _leader_at(cache, timeout)
        from rdmeta.client.blocking import Client

        with Client(target.conf) as client:
            return client.quorum(timeout).leader
    except UnsupportedVersionError:
        return cache.controller
    except Error:
        return None


def _leader_at(cache: MetadataCache, timeout: float) -> int | None:
    """Asks the first broker that connects, without the client, which takes long to import."""
    from rdmeta.config.address import Address
    from rdmeta.net import describe_quorum
    from rdmeta.net.blocking_session import Connection, Deadline, Race

    deadline = Deadline(timeout)
    servers = [Address(broker.host, broker.port) for broker in cache.brokers]
    with Race(lambda each: Connection.opening(each, deadline, "rdmeta", _LARGEST), servers) as race:
        while (outcome := race.next()) is not None:
            connection = outcome[1]
            if isinstance(connection, Error):
                continue
            with connection:
                version = connection.session.version_for(
                    describe_quorum.DESCRIBE_QUORUM, describe_quorum.LOWEST, describe_quorum.HIGHEST
                )
                body = describe_quorum.encode_request(version)
                answer = connection.request(
                    describe_quorum.DESCRIBE_QUORUM, version, body, deadline
                )
            return describe_quorum.parse_response(answer, version).leader
    return None


def _min_isr(target: Target, names: Sequence[str], timeout: float) -> KnownMinIsrs:
    """Returns the min ISR of topics."""
    from rdmeta.client.blocking import Client

    try:
        with Client(target.conf) as client:
            found = client.describe_configs(names, [health.MIN_ISR], timeout=timeout)
    except UnsupportedVersionError as error:
        raise UnsupportedVersionError(f"{health.MIN_ISR} is unknown: {error}") from error
    return KnownMinIsrs.of(found)


def _opened(where: Where, path: str, show: Show) -> Image:
    """Returns the state in a file; raises BadInputError if it is damaged or other options clash."""
    if where.bootstrap is not None or where.clusters is not None:
        raise BadInputError("--image reads a file and asks no cluster: leave out -b and -c")
    if show.min_isr:
        raise BadInputError(f"--image has no {health.MIN_ISR}: ask the cluster")
    try:
        return Image.open(path)
    except Error as error:
        raise BadInputError(f"--image: {error}") from error


def _logged(where: Where, log: LogChoice, image: str | None, show: Show) -> ClusterState:
    """Returns a state of a metadata log; raises BadInputError if it has none, or options clash."""
    if where.bootstrap is not None or where.clusters is not None or image is not None:
        raise BadInputError("--log reads files and asks no cluster: leave out -b, -c and --image")
    if show.operations:
        raise BadInputError("--log has no operations: ask the cluster")
    from rdmeta.cli.log_opening import chosen_state, min_isr

    state = chosen_state(log, where.messages)
    least = min_isr(state) if show.min_isr else {}
    if show.min_isr and (unknown := len(state.topics) - len(least)):
        where.messages.note(f"the log has no {health.MIN_ISR}, or no number, of {unknown} topics")
    return ClusterState(None, state.image(), min_isr=least, controller=state.leader)


# ---- tables -------------------------------------------------------------------------------------


def _table(
    states: Sequence[ClusterState],
    names: str,
    rows_of: Callable[[ClusterState], Iterable[Row]],
) -> Table:
    """Returns a table of all states; the names of its columns are those of columns()."""
    return clusters_table(columns(names), [(state.name, rows_of(state)) for state in states])


def _cluster_table(states: Sequence[ClusterState], show: Show) -> Table:
    tail = " operations:texts" if show.operations else ""

    def rows(state: ClusterState) -> Iterator[Row]:
        if state.error is None:
            reading = state.reading
            row = (reading.cluster_id, state.controller, len(reading.brokers))
            yield (*row, _names(state.operations)) if show.operations else row

    return _table(states, f"cluster_id controller:integer brokers:integer{tail}", rows)


def _broker_table(states: Sequence[ClusterState], show: Show) -> Table:
    def rows(state: ClusterState) -> Iterator[Row]:
        controller = state.controller
        for each in show.chosen.brokers_of(state):
            leads = None if controller is None else each.id == controller
            yield each.id, each.host, each.port, each.rack, leads

    return _table(states, "broker:integer host port:integer rack controller:flag", rows)


def _topic_table(states: Sequence[ClusterState], show: Show) -> Table:
    tail = " operations:texts" if show.operations else ""

    def rows(state: ClusterState) -> Iterator[Row]:
        for topic, _ in show.chosen.topics_of(state):
            count = len(topic.partitions)
            row = (topic.name, topic.topic_id, topic.internal, count, _error(topic))
            yield (*row, _names(topic.operations)) if show.operations else row

    return _table(states, f"topic topic_id internal:flag partitions:integer error{tail}", rows)


def _partition_table(states: Sequence[ClusterState], show: Show) -> Table:
    names = "topic topic_id" if show.ids else "topic"
    least = " min_isr:integer" if show.min_isr else ""
    fields = ("topic", *(["topic_id"] if show.ids else []), *_SHOWN_FIELDS)
    cells = itemgetter(*map(Partition._fields.index, fields))

    def rows(state: ClusterState) -> Iterator[Row]:
        for topic, partitions in show.chosen.topics_of(state):
            tail = (state.min_isr.get(topic.name),) if show.min_isr else ()
            for each in partitions:
                yield cells(each._replace(leader=None) if each.leaderless else each) + tail

    shown = f"{names} partition:integer leader:integer epoch:integer"
    return _table(states, f"{shown} replicas:integers isr:integers offline:integers{least}", rows)


_SHOWN_FIELDS = ("partition", "leader", "leader_epoch", "replicas", "isr", "offline_replicas")

_TABLES = {
    "clusters": _cluster_table,
    "brokers": _broker_table,
    "topics": _topic_table,
    "partitions": _partition_table,
}


def _names(operations: int | None) -> tuple[str, ...] | None:
    """Returns the names of a bit field; None if the broker did not tell it."""
    return None if operations is None else operation_names(operations)


def _leader(partition: Partition) -> int | None:
    """Returns the leader; None also where a state that is past its deadline has the last one."""
    return None if partition.leaderless else partition.leader


def _error(topic: Topic) -> str | None:
    return error_name(topic.error) if topic.error else None


# ---- skew ---------------------------------------------------------------------------------------

_LOAD = "leaders:integer leaders_above:share replicas:integer replicas_above:share"


def _skew(state: ClusterState, chosen: Selection) -> health.Skew:
    if chosen.has_everything:
        found = state.reading.health(allow_stale=True)
        return health.skew(state.reading.brokers, found.leaders, found.replicas_on)
    partitions = (each for _, found in chosen.topics_of(state) for each in found)
    return health.skew(state.reading.brokers, *health.counts(partitions))


def _broker_loads(states: Sequence[ClusterState], show: Show) -> Table:
    names = f"broker:integer rack {_LOAD}"
    return _table(states, names, lambda state: map(_load_row, _skew(state, show.chosen).brokers))


def _rack_loads(states: Sequence[ClusterState], show: Show) -> Table:
    names = f"rack brokers:integer {_LOAD}"
    return _table(states, names, lambda state: map(_load_row, _skew(state, show.chosen).racks))


def _load_row(load: health.BrokerLoad | health.RackLoad) -> Row:
    return [Share(cell) if isinstance(cell, float) else cell for cell in load]


_SKEW_TABLES = {"brokers": _broker_loads, "racks": _rack_loads}


# ---- JSON ---------------------------------------------------------------------------------------


def _json(states: Sequence[ClusterState], show: Show) -> Iterator[str]:
    """Yields the one object in pieces: one for each topic."""
    chosen = show.chosen
    yield from _head(states, show.operations)
    yield '],"brokers":['
    yield from _joined(
        {**label(state.name), **broker._asdict()}
        for state in states
        for broker in chosen.brokers_of(state)
    )
    yield '],"topics":['
    yield from _joined(
        _topic_object(state, topic, partitions, show)
        for state in states
        for topic, partitions in chosen.topics_of(state)
    )
    yield "]}"


def _skew_json(states: Sequence[ClusterState], chosen: Selection) -> Iterator[str]:
    skews = [(label(state.name), _skew(state, chosen)) for state in states]
    yield from _head(states)
    yield '],"skew":{"brokers":['
    yield from _joined({**head, **load._asdict()} for head, skew in skews for load in skew.brokers)
    yield '],"racks":['
    yield from _joined({**head, **load._asdict()} for head, skew in skews for load in skew.racks)
    yield "]}}"


def _head(states: Sequence[ClusterState], operations: bool = False) -> Iterator[str]:
    yield '{"version":1,"command":"list","clusters":['
    yield from _joined(
        {
            **label(state.name),
            "cluster_id": state.reading.cluster_id,
            "controller": state.controller,
            "error": None if state.error is None else str(state.error),
            **({"operations": _names(state.operations)} if operations else {}),
        }
        for state in states
    )


def _joined(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    comma = ""
    for each in objects:
        yield comma + json_text(each)
        comma = ","


def _topic_object(
    state: ClusterState, topic: Topic, partitions: Iterable[Partition], show: Show
) -> dict[str, Any]:
    return {
        **label(state.name),
        "name": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.internal,
        "error": _error(topic),
        **({"operations": _names(topic.operations)} if show.operations else {}),
        **({"min_isr": state.min_isr.get(topic.name)} if show.min_isr else {}),
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
