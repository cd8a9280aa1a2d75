"""All that a metadata log says at one point: topics, partitions, brokers, and facts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rdmeta._core import KraftReplay
from rdmeta._moments import nearest_moment
from rdmeta.cache import Image, MetadataCache
from rdmeta.errors import ArgumentError, NoBrokersError
from rdmeta.kraft.log_files import KraftError

if TYPE_CHECKING:
    import pyarrow as pa


# The kinds of facts that users name, and the records that have them.
FACT_KINDS = {
    "configs": ("CONFIG_RECORD",),
    "features": ("FEATURE_LEVEL_RECORD",),
    "acls": ("ACCESS_CONTROL_ENTRY_RECORD", "ACCESS_CONTROL_RECORD"),
    "quotas": ("CLIENT_QUOTA_RECORD",),
    "credentials": ("USER_SCRAM_CREDENTIAL_RECORD",),
    "tokens": ("DELEGATION_TOKEN_RECORD",),
    "controllers": ("REGISTER_CONTROLLER_RECORD",),
    "producer_ids": ("PRODUCER_IDS_RECORD",),
    "migration": ("ZK_MIGRATION_STATE_RECORD",),
    "kraft_version": ("KRAFT_VERSION",),
    "voters": ("KRAFT_VOTERS",),
}
_KIND_OF = {record: kind for kind, records in FACT_KINDS.items() for record in records}

Table = Literal["brokers", "topics", "partitions", "replicas", "configs"]


def as_json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


class RecordMark(NamedTuple):
    """The record that made something what it is.

    With `at_or_before` a snapshot says it: that record, or an earlier one. `epoch` is None if it is
    not known.
    """

    offset: int
    time: datetime
    epoch: int | None
    at_or_before: bool


class LoggedTopic(NamedTuple):
    """A topic, with the number of its partitions."""

    name: str
    topic_id: str
    partitions: int
    mark: RecordMark


class LoggedPartition(NamedTuple):
    """A partition with all that the log says of it.

    `leader` is None if it is leaderless. `recovering` says that its leader was elected uncleanly.
    `directories` has one id for each replica; it is empty where the log does not say them.
    """

    topic: str
    topic_id: str
    partition: int
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    recovering: bool
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    directories: tuple[str, ...]
    mark: RecordMark


class LoggedBroker(NamedTuple):
    """A registered broker. `registration` has the fields of its last RegisterBroker record.

    `cordoned` are log directories that get no new replicas, None where the log does not say it.
    """

    id: int
    epoch: int
    fenced: bool
    shutting_down: bool
    rack: str | None
    log_dirs: tuple[str, ...]
    cordoned: tuple[str, ...] | None
    registration: dict[str, Any]
    mark: RecordMark


class Fact(NamedTuple):
    """What is no topic, partition or broker: the fields of the last record about it."""

    kind: str
    data: dict[str, Any]
    mark: RecordMark


class Difference(NamedTuple):
    """What differs between two states; None: it is not there.

    `kind` is topic, partition, broker, or a kind of facts; `key` names one. `fields` are those that
    differ between what both have, also if they are secrets, which look alike here.
    """

    kind: str
    key: tuple[Any, ...]
    before: Any
    after: Any
    fields: tuple[str, ...]


def _mark(mark: tuple[int, int, int | None, bool]) -> RecordMark:
    offset, us, epoch, at_or_before = mark
    return RecordMark(offset, nearest_moment(us), epoch, at_or_before)


class KraftState:
    """All that a log says before the offset `offset`. `KraftLog.state()` makes it.

        state = log.state(datetime(2026, 11, 26, 9, 30, tzinfo=timezone.utc))
        state.partition("orders", 3).isr, state.brokers[2].fenced, state.facts("acls")

    `time` is that of the last record, None without one; `epoch` and `leader` are the controllers'
    then. `proven` says whether all of it is committed. `partial` says that records were unknown or
    passed over; `faults` names what was passed over. `transaction` is the offset at which a
    transaction began that has not ended: the state lacks its records. One thread at a time may use
    a state.
    """

    def __init__(
        self,
        replay: KraftReplay,
        cluster_id: str | None = None,
        proven: int = 0,
        show_secrets: bool = False,
        faults: Iterable[str] = (),
    ) -> None:
        self._replay = replay
        self._show_secrets = show_secrets
        info = replay.info()
        self.cluster_id = cluster_id
        self.offset: int = info["next"]
        us = info["latest_us"]
        self.time: datetime | None = None if us is None else nearest_moment(us)
        self.epoch: int | None = info["epoch"]
        self.leader: int | None = info["leader"]
        self.transaction: int | None = info["transaction"]
        self.proven = self.offset <= proven
        self.faults = tuple(faults)
        self.partial = bool(self.faults)

    def __repr__(self) -> str:
        notes = ("" if self.proven else ", unproven") + (", partial" if self.partial else "")
        return f"<KraftState at {self.offset}: {len(self.topics)} topics{notes}>"

    @cached_property
    def topics(self) -> dict[str, LoggedTopic]:
        """The topics by name, in the order of their names' bytes."""
        return {
            name: LoggedTopic(name, id, count, _mark(mark))
            for name, id, count, mark in self._replay.topics()
        }

    @cached_property
    def brokers(self) -> dict[int, LoggedBroker]:
        """The registered brokers by id, fenced ones too."""
        found = {}
        for id, epoch, fenced, leaving, dirs, cordoned, text, mark in self._replay.brokers():
            data = json.loads(text)
            found[id] = LoggedBroker(
                id, epoch, fenced, leaving, data.get("rack"), dirs, cordoned, data, _mark(mark)
            )
        return found

    def partition(self, topic: str, partition: int) -> LoggedPartition | None:
        """Returns a partition, None if there is none."""
        row = self._replay.partition(topic, partition)
        return None if row is None else _partition(self.topics[topic], row)

    def partitions(self, topic: str | None = None) -> Iterator[LoggedPartition]:
        """Yields the partitions of a topic in the order of their ids, or those of all topics."""
        for each in self.topics.values() if topic is None else [self.topics.get(topic)]:
            if each is not None:
                yield from (_partition(each, row) for row in self._replay.partitions(each.name))

    def facts(self, kind: str | None = None) -> list[Fact]:
        """Returns the facts of a kind, or all, in the order of their keys.

            state.facts("configs"), state.facts("acls"), state.facts("voters")

        Kinds are configs, features, acls, quotas, credentials, tokens, controllers, producer_ids,
        migration, kraft_version and voters. Secrets are "***", unless the log was opened with
        `show_secrets`. ArgumentError for another kind.
        """
        if kind is not None and kind not in FACT_KINDS:
            raise ArgumentError(f"no kind of facts: {kind!r}; there are {', '.join(FACT_KINDS)}")
        return self._facts(self._show_secrets, kind)

    def _facts(self, show_secrets: bool, kind: str | None = None) -> list[Fact]:
        return [
            Fact(found, json.loads(text), _mark(mark))
            for type, text, mark in self._replay.facts(show_secrets=show_secrets)
            if (found := _KIND_OF.get(str(type), str(type))) == kind or kind is None
        ]

    def image(self, listener: str | None = None) -> Image:
        """Returns what a broker that has caught up would answer to Metadata, as an image.

        It is taken at the state's time, in 1970 without one. Brokers are those that are not fenced,
        at the endpoint of `listener`, by default at their first one. KraftError if there are
        topics, and no such broker.
        """
        cache = MetadataCache(clock=_StandingClock(self.time))
        try:
            cache.apply(self._replay.answer(listener), 12)
        except NoBrokersError:
            if self.topics:
                where = "" if listener is None else f" with a listener {listener!r}"
                raise KraftError(
                    f"no broker{where} was unfenced at offset {self.offset}: none could answer"
                ) from None
        return cache.image()

    def diff(self, other: KraftState) -> list[Difference]:
        """Returns what differs from this state to `other`, of the same log or of another one.

        The records that made things so do not count, nor what a snapshot says in another form.
        Topics are compared by name, then brokers and facts.
        """
        return [found for pair in self._pairs(other) for found in _compared(*pair)]

    def _pairs(self, other: KraftState) -> Iterator[tuple[str, tuple[Any, ...], Any, Any]]:
        """Yields the kind and the key of all that may differ, and what both states have there."""
        for name in dict.fromkeys((*self.topics, *other.topics)):
            before, after = self.topics.get(name), other.topics.get(name)
            yield "topic", (name,), before, after
            ours, theirs = (
                {row[0]: row[:-1] for row in state._replay.partitions(name)}
                for state in (self, other)
            )
            if ours != theirs:
                for id in dict.fromkeys((*ours, *theirs)):
                    if ours.get(id) != theirs.get(id):
                        pair = self.partition(name, id), other.partition(name, id)
                        yield ("partition", (name, id), *pair)
        for id in dict.fromkeys((*self.brokers, *other.brokers)):
            yield "broker", (id,), self.brokers.get(id), other.brokers.get(id)
        ones, others = self._by_key(), other._by_key()
        for key in dict.fromkeys((*ones, *others)):
            yield (*key, ones.get(key), others.get(key))

    def _by_key(self) -> dict[tuple[str, tuple[Any, ...]], tuple[Fact, Fact]]:
        """Returns each fact as it is and as it is shown, by its kind and its key."""
        pairs = zip(self._facts(True), self.facts(), strict=True)
        return {(whole.kind, _key(whole)): (whole, fact) for whole, fact in pairs}

    def to_arrow(self, table: Table) -> pa.Table:
        """Returns one of the tables brokers, topics, partitions, replicas, configs as Arrow.

        Raises MissingExtraError without pyarrow, and ArgumentError for another table.
        """
        if table not in _ROWS:
            raise ArgumentError(f"no table {table!r}; there are {', '.join(_ROWS)}")
        from rdmeta.kraft.log_tables import table_of

        return table_of(table, _ROWS[table](self))


class _StandingClock:
    """A clock that stands at the time of a state."""

    def __init__(self, time: datetime | None) -> None:
        self._seconds = 0.0 if time is None else time.timestamp()

    def time(self) -> float:
        return self._seconds

    monotonic = time


def _partition(topic: LoggedTopic, row: tuple[Any, ...]) -> LoggedPartition:
    id, leader, *rest = row
    rest[-1] = _mark(rest[-1])
    leading = None if leader < 0 else leader
    return LoggedPartition(topic.name, topic.topic_id, id, leading, *rest)


# A snapshot writes a broker's registration anew; its row has what is true of these.
_OF_ROW = ("brokerEpoch", "fenced", "inControlledShutdown", "logDirs", "cordonedLogDirs")


def fields_of(row: Any) -> dict[str, Any]:
    """Returns the fields of a row or of a fact; a broker's registration is a part of them."""
    found: dict[str, Any] = dict(row.data) if isinstance(row, Fact) else row._asdict()
    found.pop("mark", None)
    registration = found.pop("registration", {})
    return {**found, **{key: registration[key] for key in registration if key not in _OF_ROW}}


def _compared(kind: str, key: tuple[Any, ...], before: Any, after: Any) -> Iterator[Difference]:
    """Yields a difference, unless two rows are alike; of facts, each is given whole and shown."""
    ours, theirs = before, after
    if tuple in (type(before), type(after)):
        (ours, before), (theirs, after) = (each or (None, None) for each in (before, after))
    if ours is None or theirs is None:
        yield Difference(kind, key, before, after, ())
    elif ours[:-1] != theirs[:-1] and (fields := _differing(fields_of(ours), fields_of(theirs))):
        yield Difference(kind, key, before, after, fields)


def _differing(ones: dict[str, Any], others: dict[str, Any]) -> tuple[str, ...]:
    """Returns the names of the fields that differ."""
    names = dict.fromkeys((*ones, *others))
    if -1 in (ones.get("brokerId"), others.get("brokerId")):
        # A snapshot does not say for whom the last producer ids were taken.
        names = dict.fromkeys(["nextProducerId"])
    return tuple(n for n in names if _in_order(ones.get(n)) != _in_order(others.get(n)))


def _in_order(value: Any) -> Any:
    """Returns a value without what differs by the form: order of objects, nulls and defaults."""
    if isinstance(value, dict):
        shown = {key: _in_order(each) for key, each in value.items()}
        return {key: each for key, each in sorted(shown.items()) if each is not None}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sorted(map(_in_order, value), key=as_json)
    return None if value is False or value in ((), []) else value


# The fields that name a fact; of other kinds there is one alone.
_KEYS = {
    "configs": ("resourceType", "resourceName", "name"),
    "features": ("name",),
    "acls": ("id",),
    "quotas": ("entity", "key"),
    "credentials": ("name", "mechanism"),
    "tokens": ("tokenId",),
    "controllers": ("controllerId",),
}


def _key(fact: Fact) -> tuple[Any, ...]:
    """Returns what names a fact that has its secrets; of a token, which is one, a digest."""
    found = tuple(fact.data.get(name) for name in _KEYS.get(fact.kind, ()))
    if fact.kind == "tokens":
        return (sha256(str(found[0]).encode()).hexdigest()[:12],)
    return tuple(entity_name(each) if isinstance(each, list) else each for each in found)


_ENTITIES = {"client-id": "clientId"}


def entity_name(entity: Iterable[Mapping[str, Any]]) -> str:
    """Returns the name of a quota's entity as Kafka's shell writes it: clientId(c)_user(ann)."""
    pairs = [(_ENTITIES.get(e["entityType"], e["entityType"]), e["entityName"]) for e in entity]
    return "_".join(f"{kind}({_escaped(name or '')})" for kind, name in sorted(pairs))


def _escaped(name: str) -> str:
    return re.sub(r"([\\()])", r"\\\1", name)


# ---- rows of tables ----------------------------------------------------------------------


def _origin(mark: RecordMark) -> tuple[Any, ...]:
    return mark.offset, mark.time, mark.at_or_before


def _topics(state: KraftState) -> Iterator[tuple[Any, ...]]:
    return ((*row[:-1], *_origin(row.mark)) for row in state.topics.values())


def _partitions(state: KraftState) -> Iterator[tuple[Any, ...]]:
    # There may be a million: times stay numbers, which Arrow takes as well.
    for topic in state.topics.values():
        name, topic_id = topic.name, topic.topic_id
        for id, leader, *rest, mark in state._replay.partitions(name):
            leading = None if leader < 0 else leader
            yield (name, topic_id, id, leading, *rest, mark[0], mark[1], mark[3])


def _replicas(state: KraftState) -> Iterator[tuple[Any, ...]]:
    for row in _partitions(state):
        leader, replicas, isr, directories = row[3], row[7], row[8], row[13]
        for place, broker in enumerate(replicas):
            directory = directories[place] if directories else None
            yield (*row[:3], broker, place, broker == leader, broker in isr, directory)


def _brokers(state: KraftState) -> Iterator[tuple[Any, ...]]:
    for row in state.brokers.values():
        yield (*row[:-2], as_json(row.registration), *_origin(row.mark))


def _configs(state: KraftState) -> Iterator[tuple[Any, ...]]:
    names = ("resourceType", "resourceName", "name", "value")
    for fact in state.facts("configs"):
        yield (*map(fact.data.get, names), *_origin(fact.mark))


_ROWS: dict[str, Callable[[KraftState], Iterator[tuple[Any, ...]]]] = {
    "topics": _topics,
    "partitions": _partitions,
    "replicas": _replicas,
    "brokers": _brokers,
    "configs": _configs,
}
