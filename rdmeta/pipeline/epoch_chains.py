"""The chain of epochs of one partition, made of the changes of leader that several origins saw.

A rise is a change that raised the epoch. Each origin saw some rises, and may have skipped epochs:
then it saw one rise from 3 to 5. All rises of a partition together are a chain:

    one origin       3 ------------> 5 ----> 6
    another one               4 ---> 5
    the chain        3 -----> 4 ---> 5 ----> 6      one row each

An epoch is part of the chain if any origin knows it. A step of the chain is there if a rise spans
it. So its elections are counted once, and only epochs that no origin knows are unseen. The day
before has its own rows: what it has counted is not counted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

# A partition: its topic, the topic's id, and its number.
Thing: TypeAlias = tuple[str, str, int]
# An epoch and its leader.
State: TypeAlias = tuple[int, int | None]


class SeenChange(NamedTuple):
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
        """Old epoch and leader, new epoch and leader."""
        return self[3:7]


class EpochRow(NamedTuple):
    """A row: all but these values are those of the change with that number."""

    number: int
    old_leader: int | None
    new_leader: int | None
    old_leader_epoch: int | None
    new_leader_epoch: int | None
    elections: int | None
    recordings: int
    spread_us: int | None


def row_of(group: Sequence[SeenChange], **values: Any) -> EpochRow:
    """Returns the row of changes that are one: the first of them, but for these values."""
    first = group[0]
    elections = None if first.old is None else first.new - first.old
    row = EpochRow(
        first.number,
        first.old_leader,
        first.leader,
        first.old,
        first.new,
        elections,
        *_sights(group),
    )
    return row._replace(**values) if values else row


def _sights(group: Sequence[SeenChange]) -> tuple[int, int | None]:
    """Returns how many origins saw a change, and the time between the first and the last sight."""
    origins = {each.origin for each in group}
    spread = max(each.us for each in group) - group[0].us
    return len(origins), spread if len(origins) > 1 else None


def _have_epochs_fallen(changes: Iterable[SeenChange]) -> bool:
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


def rows_of(
    changes: Sequence[SeenChange],
    seen: Sequence[SeenChange] | None,
    stood: Mapping[str, State],
    states: Sequence[Sequence[SeenChange]],
) -> Iterator[EpochRow]:
    """Yields the rows of one partition; `stood` is what each origin had at midnight."""
    if not any(states) and (seen is not None or not stood):
        groups = _agreed([*(seen or ()), *changes])
        if groups is not None:
            reported = {each.new for each in seen or ()}
            yield from (row_of(group) for new, group in groups.items() if new not in reported)
            return
    have_fallen = _have_epochs_fallen([*(seen or ()), *changes])

    def is_past(each: SeenChange) -> bool:
        others = [state for origin, state in stood.items() if origin != each.origin]
        if have_fallen or not each.is_rise:
            return (each.new, each.leader) in others
        return seen is None and any(epoch >= each.new for epoch, _ in others)

    left = [each for each in changes if not is_past(each)]
    if have_fallen:
        yield from map(row_of, _by_state(left).values())
    else:
        yield from _chained(left, seen or (), states)


def _agreed(changes: Iterable[SeenChange]) -> dict[int, list[SeenChange]] | None:
    """Returns rises by epoch if origins agree on each of them, else None: most often they do.

    Then no rise lies in another one, and nothing is to be worked out.
    """
    groups: dict[int, list[SeenChange]] = {}
    for each in changes:
        groups.setdefault(each.new, []).append(each)
    last = -1
    for new in sorted(groups):
        group = groups[new]
        old, step = group[0].old, group[0].step
        if old is None or not last <= old < new:
            return None
        if len(group) > 1 and any(each.step != step for each in group):
            return None
        last = new
    return groups


def _by_state(changes: Iterable[SeenChange]) -> dict[State, list[SeenChange]]:
    groups: dict[State, list[SeenChange]] = {}
    for each in changes:
        groups.setdefault((each.new, each.leader), []).append(each)
    return groups


def _chained(
    changes: Sequence[SeenChange],
    seen: Sequence[SeenChange],
    states: Sequence[Sequence[SeenChange]],
) -> Iterator[EpochRow]:
    """Yields the rows of one partition's chain, and those of changes within an epoch.

    `seen` are those of the day before, which has the rows of what they span.
    """
    chain = _EpochChain(changes, seen, states)
    # The day before has these changes, if it has the rises to their epochs.
    reported = {(each.new, each.leader) for each in seen if chain.is_reported(each.new)}
    groups = _by_state(e for e in changes if not e.is_rise or (e.new, e.leader) not in reported)
    yield from chain.rises(groups)
    for (epoch, leader), group in groups.items():
        if chain.has_row(epoch, leader):
            continue
        if not group[0].is_rise:
            yield row_of(group)
            continue
        # Another one saw the rise with another leader: this is what came after it.
        within = [each.old_leader for each in group if not each.is_rise]
        if within or leader is not None:
            old = within[0] if within else chain.risen[epoch]
            yield row_of(group, old_leader=old, old_leader_epoch=epoch, elections=0)


class _EpochChain:
    """What all origins together know of one partition's epochs, up to the end of a day."""

    def __init__(
        self,
        changes: Sequence[SeenChange],
        seen: Sequence[SeenChange],
        states: Sequence[Sequence[SeenChange]],
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
        self._first: dict[int, tuple[int, SeenChange]] = {}
        for old, each in today:
            self._first.setdefault(each.new, (old, each))
        self._reported = {each.new for _, each in earlier}
        self._before = {*self._reported, *(old for old, _ in earlier)}
        for each in (*seen, *(states[0] if states else ())):
            self._before.add(each.new)
        self._epochs = sorted({*self.risen, *self._left, *self._known})
        self._reach = _reach(self._epochs, [*earlier, *today])
        self._reach_before = _reach(self._epochs, earlier)

    def is_reported(self, epoch: int) -> bool:
        """Returns whether a rise to that epoch was seen on the day before."""
        return epoch in self._reported

    def has_row(self, epoch: int, leader: int | None) -> bool:
        """Returns whether the day's row of a rise to that epoch has that leader."""
        if epoch in self._reported or epoch not in self._first:
            return False
        return self._first[epoch][1].leader == leader

    def rises(self, groups: Mapping[State, Sequence[SeenChange]]) -> Iterator[EpochRow]:
        """Yields a row for each step that the day before has not counted.

        If that day counted the elections of a rise, and did not know of an epoch on its way, the
        row of that epoch has no elections.
        """
        shown: SeenChange | None = None
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
            yield row_of(
                [shown] if first is None else groups[new, leader],
                number=shown.number,
                old_leader=found,
                old_leader_epoch=epoch,
                new_leader=leader,
                new_leader_epoch=new,
                elections=0 if is_counted else new - epoch,
            )


def _rises(changes: Iterable[SeenChange]) -> Iterator[tuple[int, SeenChange]]:
    """Yields the changes that raised an epoch, each with the epoch before it."""
    for each in changes:
        if each.old is not None and each.is_rise:
            yield each.old, each


def _reach(epochs: Iterable[int], rises: Iterable[tuple[int, SeenChange]]) -> dict[int, int]:
    """Returns for each epoch up to which one the rises from it, or from one before it, span."""
    to: dict[int, int] = {}
    for old, each in rises:
        to[old] = max(each.new, to.get(old, -1))
    highest, found = -1, {}
    for epoch in epochs:
        highest = max(highest, to.get(epoch, -1))
        found[epoch] = highest
    return found
