"""Changes of leader that several recordings saw, joined to one chain of epochs.

A rise of an epoch is a change that raised it. Each recording saw some rises, and may have skipped
epochs: then it saw one rise from 3 to 5. All rises of a partition together are a chain:

    one recording     3 ------------> 5 ----> 6
    another one                4 ---> 5
    the chain         3 -----> 4 ---> 5 ----> 6      one row each

An epoch is part of the chain if any recording knows it. A step of the chain is there if a rise
spans it. So its epochs are counted once, and only those that no recording knows are unseen.

The day before has its own rows. What it has counted is not counted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.pipeline.tables import SCHEMAS

__all__ = ["SCHEMA", "SEEN", "Baseline", "Past", "Thing", "joined", "past_of", "seen_in", "skipped"]

_SPREAD = "spread_us"
# The rows of one origin, as a fold gives them.
SCHEMA = pa.schema([each for each in SCHEMAS["leader_change"] if each.name != _SPREAD])

_THING = ("topic", "topic_id", "partition")
_STEP = ("old_leader_epoch", "old_leader", "new_leader_epoch", "new_leader")
# What is needed of changes of the day before, and of states.
_ORDER = ("observed_at", "origin", "version")
SEEN = pa.schema([SCHEMA.field(name) for name in (*_THING, *_STEP, *_ORDER)])

_STATES = ("topic_added", "topic_recreated", "partitions_added", "leader_epoch_changed")

# A partition: its topic, the topic's id, and its number.
Thing: TypeAlias = tuple[str, str, int]
# For each origin that came over a midnight: the epoch and the leader there of each partition.
Past = dict[str, dict[Thing, tuple[int, int | None]]]


def past_of(pieces: pa.Table) -> dict[Thing, tuple[int, int | None]]:
    """Returns the epochs and leaders that stood at the midnight at which these pieces begin."""
    stood = pieces.filter(pc.equal(pieces["began_by"], "midnight"))
    return _states(stood, "leader_epoch", "leader")


class Baseline:
    """Reads the epochs and leaders of a recording's baseline, if it begins at that midnight.

    A state that a change ends at the midnight itself makes no piece, so that only its baseline
    tells it.
    """

    def __init__(self, midnight: int) -> None:
        self._midnight = midnight
        self._version: int | None = None
        self.is_over = False

    def states(self, rows: pa.RecordBatch) -> dict[Thing, tuple[int, int | None]]:
        """Returns what the recording's next rows tell; the baseline may be over then."""
        if rows.num_rows == 0 or self.is_over:
            return {}
        if self._version is None:
            self._version = rows["version"][0].as_py()
            if rows["kind"][0].as_py() != "observed_from":
                self.is_over = True
                return {}
        at_begin = pc.and_(
            pc.equal(rows["version"], self._version),
            pc.equal(pc.cast(rows["observed_at"], pa.int64()), self._midnight),
        )
        self.is_over = not at_begin[-1].as_py()
        is_state = pc.and_(pc.equal(rows["kind"], "topic_added"), pc.is_valid(rows["partition"]))
        return _states(rows.filter(pc.and_(at_begin, is_state)), "new_leader_epoch", "new_leader")


def _states(rows: pa.Table | pa.RecordBatch, *names: str) -> dict[Thing, tuple[int, int | None]]:
    columns = (rows[each].to_pylist() for each in (*_THING, *names))
    return {
        (topic, topic_id, partition): (epoch, leader)
        for topic, topic_id, partition, epoch, leader in zip(*columns, strict=True)
        if topic_id is not None and epoch is not None
    }


def seen_in(rows: pa.RecordBatch, origin: str, ids: pa.Array | None = None) -> pa.Table:
    """Returns the changes of leader among the rows of an origin, as SEEN, if all is known.

    With ids of topics it returns the states of their partitions that no change of leader tells.
    """
    if ids is None:
        is_known = pc.equal(rows["kind"], "leader_changed")
    else:
        is_known = pc.is_in(rows["kind"].cast(pa.string()), pa.array(_STATES))
        is_known = pc.and_(is_known, pc.is_in(rows["topic_id"].cast(pa.string()), ids))
    for name in (*_THING, "new_leader_epoch"):
        is_known = pc.and_(is_known, pc.is_valid(rows[name]))
    found = pa.Table.from_batches([rows.filter(is_known)])
    found = found.append_column("origin", pa.repeat(origin, found.num_rows))
    return found.select(SEEN.names).cast(SEEN)


def skipped(*found: pa.Table) -> pa.Array:
    """Returns the ids of topics of which an origin saw a rise that skipped epochs."""
    ids = []
    for rows in found:
        rise = pc.subtract(rows["new_leader_epoch"], rows["old_leader_epoch"])
        ids += rows["topic_id"].filter(pc.greater(rise, 1)).drop_null().chunks
    return pc.unique(pa.chunked_array(ids, pa.string()))


def joined(
    rows: pa.Table,
    counts: Mapping[str, tuple[int, int] | None],
    past: Past,
    before: pa.Table | None = None,
    states: Sequence[pa.Table] = (),
) -> pa.Table:
    """Returns the changes of leader of a day: one row for each epoch, at its first sight.

    `rows` are the changes that every origin saw, `counts` is the time for which each one counts.
    If topic id and epoch are known, rows of several origins are one change, and `recordings` is the
    number of origins; `spread_us` is the time between their first and their last sight, null for
    one origin. Otherwise only the origin that counts tells of it.

    `before` are the changes that origins saw on the day before, as SEEN. A rise that one of them
    saw is not of this day. If that day has no input, one whose epoch another origin had at midnight
    is not. Any other change is not if another origin had its epoch and leader at midnight.

    `states` are those of the day before and of the day, as SEEN, if a rise skipped epochs.
    """
    # One origin's rows lie in this order already. A day has many rows, so it makes no copy of them.
    ordered = _in_order(rows) if len(counts) > 1 else rows
    same = pc.and_(pc.is_valid(ordered["topic_id"]), pc.is_valid(ordered["new_leader_epoch"]))
    wanted = pc.or_(same, _counted(ordered, counts))
    if not pc.all(wanted).as_py():
        ordered, same = ordered.filter(wanted), same.filter(wanted)
    if len(counts) == 1 and before is None and not _has_repeats(ordered.filter(same)):
        return ordered.append_column(_SPREAD, pa.nulls(ordered.num_rows, pa.int64()))
    earlier = _by_thing(before)
    stated = [_by_thing(each) for each in states]
    now: dict[Thing, list[_Change]] = {}
    made: list[_Made] = []
    for change, is_same in zip(_changes(ordered), same.to_pylist(), strict=True):
        if is_same:
            now.setdefault(change.thing, []).append(change)
        else:
            made.append(_as_it_is([change]))
    for thing, changes in now.items():
        stood = {origin: states[thing] for origin, states in past.items() if thing in states}
        seen = None if before is None else earlier.get(thing, [])
        made += _of_thing(changes, seen, stood, [each.get(thing, []) for each in stated])
    return _table(ordered, sorted(made, key=lambda row: (row.number, row.new_leader_epoch or 0)))


def _in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in _ORDER])


class _Change(NamedTuple):
    """A change as one origin saw it; `number` is its place among those of its day."""

    number: int
    thing: Thing
    us: int
    old: int | None
    old_leader: int | None
    new: int
    leader: int | None
    origin: str

    @property
    def is_rise(self) -> bool:
        return self.old is not None and self.old < self.new

    @property
    def step(self) -> tuple[int | None, ...]:
        return self.old, self.old_leader, self.new, self.leader


def _by_thing(rows: pa.Table | None) -> dict[Thing, list[_Change]]:
    found: dict[Thing, list[_Change]] = {}
    for change in _changes(_in_order(rows)) if rows is not None else ():
        found.setdefault(change.thing, []).append(change)
    return found


class _Made(NamedTuple):
    """A row: all but these values are those of the change with that number."""

    number: int
    old_leader: int | None
    new_leader: int | None
    old_leader_epoch: int | None
    new_leader_epoch: int | None
    elections: int | None
    recordings: int
    spread_us: int | None


def _changes(rows: pa.Table) -> Iterator[_Change]:
    """Yields changes in their order; the names of topics and origins are shared."""
    times = pc.cast(rows["observed_at"], pa.int64()).to_pylist()
    topics, ids, origins = (_shared(rows[name]) for name in ("topic", "topic_id", "origin"))
    things = zip(topics, ids, rows["partition"].to_pylist(), strict=True)
    steps = (rows[name].to_pylist() for name in _STEP)
    yield from map(_Change, range(rows.num_rows), things, times, *steps, origins)


def _shared(column: pa.ChunkedArray) -> list[Any]:
    """Returns a column's texts; equal ones are one object."""
    codes = pc.dictionary_encode(column.combine_chunks())
    texts = codes.dictionary.to_pylist()
    return [None if code is None else texts[code] for code in codes.indices.to_pylist()]


def _as_it_is(group: Sequence[_Change], **values: Any) -> _Made:
    """Returns the row of changes that are one: the first of them, but for these values."""
    first = group[0]
    elections = None if first.old is None else first.new - first.old
    row = _Made(
        first.number,
        first.old_leader,
        first.leader,
        first.old,
        first.new,
        elections,
        *_sights(group),
    )
    return row._replace(**values)


def _sights(group: Sequence[_Change]) -> tuple[int, int | None]:
    """Returns how many origins saw a change, and the time between the first and the last sight."""
    origins = {each.origin for each in group}
    times = [each.us for each in group]
    return len(origins), max(times) - min(times) if len(origins) > 1 else None


def _is_rewound(changes: Iterable[_Change]) -> bool:
    """Returns whether a partition's epochs fell, so that an epoch does not tell which rise it is.

    Its topic may have come back with the same id, or brokers lost a part of the metadata.
    """
    highest: dict[str, int] = {}
    steps: set[tuple[Any, ...]] = set()
    for each in changes:
        if each.old is None or each.old == each.new or (each.origin, *each.step) in steps:
            continue
        if each.old > each.new or each.old < highest.get(each.origin, -1):
            return True
        highest[each.origin] = each.new
        steps.add((each.origin, *each.step))
    return False


def _of_thing(
    changes: Sequence[_Change],
    seen: Sequence[_Change] | None,
    stood: Mapping[str, tuple[int, int | None]],
    states: Sequence[Sequence[_Change]],
) -> Iterator[_Made]:
    """Yields the rows of one partition; `stood` is what each origin had at midnight."""
    is_rewound = _is_rewound([*(seen or ()), *changes])
    told = {(each.new, each.leader) for each in seen or ()}

    def is_past(each: _Change) -> bool:
        others = [state for origin, state in stood.items() if origin != each.origin]
        if is_rewound or not each.is_rise:
            return (each.new, each.leader) in others
        if seen is not None:
            return (each.new, each.leader) in told
        return any(epoch >= each.new for epoch, _ in others)

    left = [each for each in changes if not is_past(each)]
    if is_rewound:
        yield from map(_as_it_is, _by_state(left).values())
    else:
        yield from _chained(left, seen or (), states)


def _by_state(changes: Iterable[_Change]) -> dict[tuple[int, int | None], list[_Change]]:
    groups: dict[tuple[int, int | None], list[_Change]] = {}
    for each in changes:
        groups.setdefault((each.new, each.leader), []).append(each)
    return groups


def _chained(
    changes: Sequence[_Change], seen: Sequence[_Change], states: Sequence[Sequence[_Change]]
) -> Iterator[_Made]:
    """Yields the rows of one partition's chain, and those of changes within an epoch.

    `seen` are those of the day before, which has the rows of what they span.
    """
    chain = _Chain(changes, seen, states)
    groups = _by_state(changes)
    yield from chain.rises(groups)
    for (epoch, leader), group in groups.items():
        if chain.has_row(epoch, leader):
            continue
        if not group[0].is_rise:
            yield _as_it_is(group)
            continue
        # Another one saw the rise with another leader: this is what came after it.
        within = [each.old_leader for each in group if not each.is_rise]
        if within or leader is not None:
            old = within[0] if within else chain.risen[epoch]
            yield _as_it_is(group, old_leader=old, old_leader_epoch=epoch, elections=0)


class _Chain:
    """What all origins together know of one partition's epochs, up to the end of a day."""

    def __init__(
        self,
        changes: Sequence[_Change],
        seen: Sequence[_Change],
        states: Sequence[Sequence[_Change]],
    ) -> None:
        earlier, today = list(_rises(seen)), list(_rises(changes))
        # By epoch: the leader that the first rise to it had, the one from which a rise began, the
        # first one that was known without a rise, and the last one.
        self.risen: dict[int, int | None] = {}
        self._left: dict[int, int | None] = {}
        self._known: dict[int, int | None] = {}
        self._last: dict[int, int | None] = {}
        for old, each in (*earlier, *today):
            self.risen.setdefault(each.new, each.leader)
            if self._left.get(old) is None:
                self._left[old] = each.old_leader
        for each in (state for found in states for state in found):
            self._known.setdefault(each.new, each.leader)
            self._last.setdefault(each.new, each.leader)
        for each in (*seen, *changes):
            if each.leader is not None or not each.is_rise:
                self._last[each.new] = each.leader
            if not each.is_rise:
                leader = each.old_leader if each.old == each.new else each.leader
                self._known.setdefault(each.new, leader)
        self._first: dict[int, tuple[int, _Change]] = {}
        for old, each in today:
            self._first.setdefault(each.new, (old, each))
        self._told = {each.new for _, each in earlier}
        self._before = {*self._told, *(old for old, _ in earlier)}
        for each in (*seen, *(states[0] if states else ())):
            self._before.add(each.new)
        self._epochs = sorted({*self.risen, *self._left, *self._known})
        self._reach = _reach(self._epochs, [*earlier, *today])
        self._reach_before = _reach(self._epochs, earlier)

    def has_row(self, epoch: int, leader: int | None) -> bool:
        """Returns whether the day's row of a rise to that epoch has that leader."""
        if epoch in self._told or epoch not in self._first:
            return False
        return self._first[epoch][1].leader == leader

    def rises(self, groups: Mapping[tuple[int, int | None], Sequence[_Change]]) -> Iterator[_Made]:
        """Yields a row for each step that the day before has not counted.

        If that day counted the elections of a rise, and did not know of an epoch on its way, the
        row of that epoch has no elections.
        """
        shown: _Change | None = None
        for epoch, new in reversed(list(pairwise(self._epochs))):
            old, first = self._first.get(new, (None, None))
            shown = first or shown  # what shows a later epoch shows this one, too
            is_counted = self._reach_before[epoch] >= new
            is_late = is_counted and first is not None and new not in self._before
            if shown is None or self._reach[epoch] < new or (is_counted and not is_late):
                continue
            leader = self._known.get(new, self._left.get(new)) if first is None else first.leader
            own = first.old_leader if first is not None and old == epoch else None
            found = self._left.get(epoch) if own is None else own
            if found is None and old != epoch:
                found = self._last.get(epoch)
            yield _as_it_is(
                [shown] if first is None else groups[new, leader],
                number=shown.number,
                old_leader=found,
                old_leader_epoch=epoch,
                new_leader=leader,
                new_leader_epoch=new,
                elections=0 if is_counted else new - epoch,
            )


def _rises(changes: Iterable[_Change]) -> Iterator[tuple[int, _Change]]:
    """Yields the changes that raised an epoch, each with the epoch before it."""
    for each in changes:
        if each.old is not None and each.is_rise:
            yield each.old, each


def _reach(epochs: Iterable[int], rises: Iterable[tuple[int, _Change]]) -> dict[int, int]:
    """Returns for each epoch up to which one the rises from it, or from one before it, span."""
    to: dict[int, int] = {}
    for old, each in rises:
        to[old] = max(each.new, to.get(old, -1))
    highest, found = -1, {}
    for epoch in epochs:
        highest = max(highest, to.get(epoch, -1))
        found[epoch] = highest
    return found


def _table(rows: pa.Table, made: Sequence[_Made]) -> pa.Table:
    found = rows.take(pa.array([each.number for each in made], pa.int64()))
    for name in _Made._fields[1:]:
        field = SCHEMAS["leader_change"].field(name)
        values = pa.array([getattr(each, name) for each in made], field.type)
        place = found.schema.get_field_index(name)
        if place < 0:
            found = found.append_column(field, values)
        else:
            found = found.set_column(place, found.schema.field(place), values)
    return found


def _has_repeats(rows: pa.Table) -> bool:
    """Returns whether two rows may be one change: grouping by texts takes much longer."""
    codes = pc.dictionary_encode(rows["topic_id"]).combine_chunks()
    indices = codes.indices if isinstance(codes, pa.DictionaryArray) else codes.chunk(0).indices
    columns = [
        indices,
        rows["partition"].combine_chunks(),
        rows["new_leader_epoch"].combine_chunks(),
    ]
    keys = pa.table(columns, names=["topic", "partition", "epoch"])
    ordered = keys.sort_by([(name, "ascending") for name in keys.column_names])
    equal = [
        pc.equal(column.slice(1), column.slice(0, max(len(column) - 1, 0)))
        for column in ordered.combine_chunks().columns
    ]
    return bool(pc.any(pc.and_(pc.and_(equal[0], equal[1]), equal[2])).as_py())


def _counted(rows: pa.Table, counts: Mapping[str, tuple[int, int] | None]) -> Any:
    """Returns for each row whether its origin counts at its time."""
    times = pc.cast(rows["observed_at"], pa.int64())
    found: Any = pa.chunked_array([pa.array([False] * rows.num_rows, pa.bool_())])
    for origin, span in counts.items():
        if span is not None:
            inside = pc.and_(pc.greater_equal(times, span[0]), pc.less_equal(times, span[1]))
            found = pc.or_(found, pc.and_(pc.equal(rows["origin"], origin), inside))
    return found
