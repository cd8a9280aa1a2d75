"""Silver by naive walks: every table of one cluster, from the rows and footers of its recordings.

Each recording is walked alone from its first row to its last. What counts, and which changes of
leader are one, is worked out by comparing every recording with every other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from fleet import DAY_US, EPOCH
from fold_model import COLUMNS, Row, piece_of, walk

from rdmeta import history

__all__ = ["INTERVALS", "made_silver", "model_silver", "states"]

INTERVALS = tuple(COLUMNS)
_NOT_CHANGES = ("observed_from", "observed_to", "resync", "leader_changed")
_STATES = ("topic_added", "topic_recreated", "partitions_added", "leader_epoch_changed")
_CHANGE = (
    *("kind", "topic", "topic_id", "partition", "broker", "observed_at", "source", "old_isr"),
    *("new_isr", "old_replicas", "new_replicas", "old_offline", "new_offline", "detail"),
    *("unseen_us", "origin", "version"),
)
_LEADER = (
    *("topic", "topic_id", "partition", "observed_at", "old_leader", "new_leader"),
    *("old_leader_epoch", "new_leader_epoch", "elections", "source", "unseen_us", "origin"),
    *("version", "recordings", "spread_us"),
)
_OBSERVATION = ("origin", "seen_from", "seen_to", "counts_from", "counts_to", "ended_by")


class Origin(NamedTuple):
    """A recording with its rows; `counts` is None if other ones tell of all its time."""

    session: str
    begin: int
    end: int
    counts: tuple[int, int] | None
    ended_by: str
    continues: bool
    rows: list[Row]


def micros(when: datetime) -> int:
    return (when - EPOCH) // timedelta(microseconds=1)


def plain(row: Row) -> Row:
    """Returns a row with times as microseconds and lists as tuples."""
    return {
        name: micros(value)
        if isinstance(value, datetime)
        else tuple(value)
        if isinstance(value, list)
        else value
        for name, value in row.items()
    }


def origins(directory: Path, cluster_id: str) -> list[Origin]:
    """Returns a cluster's recordings in the order of their begin, with the time that counts."""
    found: list[Origin] = []
    recordings = [r for r in history.recordings(directory) if r.cluster_id == cluster_id]
    for each in sorted(recordings, key=lambda r: (r.observed_from, r.session)):
        begin, end = micros(each.observed_from), micros(each.observed_to)
        covered = max([begin, *(other.end for other in found)])
        rows = history.read(directory, cluster_id=cluster_id, session=each.session).to_pylist()
        found.append(
            Origin(
                each.session,
                begin,
                end,
                (covered, end) if covered == begin or covered < end else None,
                each.ended_by or "open",
                each.continues is not None,
                [{**plain(row), "origin": each.session} for row in rows],
            )
        )
    return found


def days_of(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the parts of a time that midnights cut; each one has a length, or is the only one."""
    at = begin
    while at == begin or at < end:
        midnight = (at // DAY_US + 1) * DAY_US
        yield at, min(end, midnight)
        at = midnight


def model_silver(directory: Path, cluster_id: str) -> dict[str, list[Any]]:
    """Returns the rows that each table must have."""
    found = origins(directory, cluster_id)
    tables: dict[str, list[Any]] = {name: [] for name in INTERVALS}
    for each in found:
        if each.counts is None:
            continue
        by = each.ended_by if each.ended_by in ("open", "midnight") else "gap"
        for piece in walk(each.rows, each.end, by, each.counts[0]):
            name = piece.key[0]
            table = name if name in COLUMNS else f"{name}_interval"
            tables[table].append((*piece, each.session))
    tables["change"] = [
        {name: row[name] for name in _CHANGE} for each in found for row in _changes(each)
    ]
    tables["leader_change"] = [{name: row[name] for name in _LEADER} for row in _leaders(found)]
    tables["observation"] = [
        dict(zip(_OBSERVATION, values, strict=True)) for each in found for values in _observed(each)
    ]
    return tables


def _observed(origin: Origin) -> Iterator[tuple[Any, ...]]:
    for begin, end in days_of(origin.begin, origin.end):
        low, high = origin.counts or (end + 1, end)
        low, high = max(low, begin), min(high, end)
        is_counted = low < high or (low == high == origin.begin)
        counts = (low, high) if is_counted else (None, None)
        by = origin.ended_by if end == origin.end else "midnight"
        yield origin.session, begin, end, *counts, by


def _changes(origin: Origin) -> Iterator[Row]:
    for row in origin.rows:
        is_change = row["kind"] not in _NOT_CHANGES and not _is_baseline(origin, row)
        if is_change and _is_told(origin, row):
            is_unclean = row["kind"] == "unclean_election"
            yield {**row, "broker": row["new_leader"]} if is_unclean else row


def _is_baseline(origin: Origin, row: Row) -> bool:
    """Returns whether a row tells the state that the recording began with.

    A min ISR that is told later has the same version.
    """
    first = origin.rows[0]
    return bool((row["version"], row["observed_at"]) == (first["version"], first["observed_at"]))


def _is_told(origin: Origin, row: Row) -> bool:
    return origin.counts is not None and origin.counts[0] <= row["observed_at"]


def _leaders(found: list[Origin]) -> Iterator[Row]:
    """Yields the changes of leader, day by day and partition by partition."""
    for origin in found:
        for row in origin.rows:
            if _is_leader_change(row) and not _is_same(row) and _is_told(origin, row):
                yield _as_one([row])
    for day in sorted({day for origin in found for day in _days(origin)}):
        now = [(each, seen) for each in found for seen in _observed(each) if _day(seen) == day]
        last = [seen for each in found for seen in _observed(each) if _day(seen) == day - 1]
        has_before = bool(last) and (len(now) > 1 or any(s[1:3] != s[3:5] for s in last))
        today, before = _rows_on(found, day), _rows_on(found, day - 1) if has_before else []
        for thing in {_thing(row) for row in today if _is_leader_change(row)}:
            stood = {each.session: _state_at(each, day * DAY_US, thing) for each, _ in now}
            mine, seen = ([r for r in rows if _thing(r) == thing] for rows in (today, before))
            yield from _of_thing(mine, seen if has_before else None, stood)


def _is_leader_change(row: Row) -> bool:
    return row["kind"] == "leader_changed" and row["partition"] is not None


def _is_same(row: Row) -> bool:
    return row["topic_id"] is not None and row["new_leader_epoch"] is not None


def _is_rise(row: Row) -> bool:
    old = row["old_leader_epoch"]
    return _is_leader_change(row) and old is not None and old < row["new_leader_epoch"]


def _thing(row: Row) -> tuple[Any, ...]:
    return row["topic"], row["topic_id"], row["partition"]


def _day(seen: tuple[Any, ...]) -> int:
    return int(seen[1] // DAY_US)


def _days(origin: Origin) -> list[int]:
    return [_day(seen) for seen in _observed(origin)]


def _rows_on(found: list[Origin], day: int) -> list[Row]:
    """Returns what recordings said of leaders on a day, in the order of time."""
    rows = [
        row
        for origin in found
        for row in origin.rows
        if (_is_leader_change(row) or row["kind"] in _STATES)
        and row["partition"] is not None
        and _is_same(row)
        and min(row["observed_at"] // DAY_US, max(_days(origin))) == day
    ]
    return sorted(rows, key=lambda row: (row["observed_at"], row["origin"], row["version"]))


def _of_thing(mine: list[Row], seen: list[Row] | None, stood: dict[str, Any]) -> Iterator[Row]:
    """Yields the rows of one partition on one day; `seen` are those of the day before."""
    changes = [row for row in mine if _is_leader_change(row)]
    before = [row for row in seen or [] if _is_leader_change(row)]
    is_rewound = _is_rewound(before + changes)
    left = []
    for row in changes:
        state = (row["new_leader_epoch"], row["new_leader"])
        others = [s for origin, s in stood.items() if origin != row["origin"] and s is not None]
        if is_rewound or not _is_rise(row):
            is_past = state in others
        else:
            is_past = seen is None and any(epoch >= state[0] for epoch, _ in others)
        left += [] if is_past else [row]
    risen = {_epoch(row) for row in before if _is_rise(row)}
    told = {(_epoch(row), row["new_leader"]) for row in before if _epoch(row) in risen}
    groups: dict[Any, list[Row]] = {}
    for row in left:
        state = (row["new_leader_epoch"], row["new_leader"])
        if is_rewound or not _is_rise(row) or state not in told:
            groups.setdefault(state, []).append(row)
    if is_rewound:
        yield from map(_as_one, groups.values())
    else:
        states = [row for row in (*(seen or []), *mine) if not _is_leader_change(row)]
        yield from _chained(left, before, states, {_epoch(row) for row in seen or []}, groups)


def _epoch(row: Row) -> int:
    return int(row["new_leader_epoch"])


def _chained(
    left: list[Row], before: list[Row], states: list[Row], known_before: set[int], groups: Any
) -> Iterator[Row]:
    every = [*before, *left]
    rises, earlier, today = (list(filter(_is_rise, rows)) for rows in (every, before, left))
    known_before = known_before | {row["old_leader_epoch"] for row in earlier}
    epochs = known_before | {e for r in rises for e in (_epoch(r), r["old_leader_epoch"])}
    epochs |= {_epoch(row) for row in (*states, *every)}
    told = {_epoch(row) for row in earlier}
    for new in epochs:
        old = max((epoch for epoch in epochs if epoch < new), default=-1)
        spans = [row for row in rises if row["old_leader_epoch"] <= old and new <= _epoch(row)]
        is_counted = any(row in earlier for row in spans)
        first = next((row for row in today if _epoch(row) == new), None)
        if not spans or (is_counted and (first is None or new in known_before)):
            continue
        next_one = min(_epoch(row) for row in today if _epoch(row) >= new)
        shown = next(row for row in today if _epoch(row) == next_one)
        leader = _leader_at(new, every, states) if first is None else first["new_leader"]
        group = [shown] if first is None else groups[new, leader]
        yield {
            **_as_one(group),
            **{k: v for k, v in shown.items() if k in _LEADER},
            "old_leader": _leader_before(old, first, every, states),
            "old_leader_epoch": old,
            "new_leader": leader,
            "new_leader_epoch": new,
            "elections": 0 if is_counted else new - old,
        }
    for (epoch, leader), group in groups.items():
        ups = [row for row in today if _epoch(row) == epoch]
        if ups and epoch not in told and ups[0]["new_leader"] == leader:
            continue
        if not _is_rise(group[0]):
            yield _as_one(group)
            continue
        within = [row["old_leader"] for row in group if not _is_rise(row)]
        if within or leader is not None:
            first = next(row for row in rises if _epoch(row) == epoch)
            old_leader = (within or [first["new_leader"]])[0]
            known = {"old_leader": old_leader, "old_leader_epoch": epoch, "elections": 0}
            yield {**_as_one(group), **known}


def _leader_at(epoch: int, every: list[Row], states: list[Row]) -> Any:
    """Returns the leader with which an epoch began, as far as other rows than a rise to it tell."""
    found = [row["new_leader"] for row in states if _epoch(row) == epoch]
    for row in every:
        if _epoch(row) == epoch and not _is_rise(row):
            is_within = row["old_leader_epoch"] == epoch
            found.append(row["old_leader"] if is_within else row["new_leader"])
    return found[0] if found else _leader_left(epoch, every)


def _leader_left(epoch: int, every: list[Row]) -> Any:
    from_it = [r["old_leader"] for r in every if _is_rise(r) and r["old_leader_epoch"] == epoch]
    return next((leader for leader in from_it if leader is not None), None)


def _leader_before(epoch: int, rise: Row | None, every: list[Row], states: list[Row]) -> Any:
    """Returns the leader from which a rise from an epoch began."""
    is_own = rise is not None and rise["old_leader_epoch"] == epoch
    if rise is not None and is_own and rise["old_leader"] is not None:
        return rise["old_leader"]
    if is_own or _leader_left(epoch, every) is not None:
        return _leader_left(epoch, every)
    ends = [
        row["new_leader"]
        for row in every
        if _epoch(row) == epoch and not (_is_rise(row) and row["new_leader"] is None)
    ]
    begins = [row["new_leader"] for row in states if _epoch(row) == epoch]
    return ends[-1] if ends else begins[0] if begins else None


def _is_rewound(changes: list[Row]) -> bool:
    """Returns whether epochs fell, or one recording saw them rise twice in different ways."""
    names = ("old_leader_epoch", "old_leader", "new_leader_epoch", "new_leader")
    for number, row in enumerate(changes):
        old = row["old_leader_epoch"]
        if old is None:
            continue
        if old > _epoch(row):
            return True
        for other in changes[:number]:
            is_mine = other["origin"] == row["origin"] and _is_rise(other) and _is_rise(row)
            if is_mine and old < _epoch(other) and any(row[n] != other[n] for n in names):
                return True
    return False


def _as_one(group: list[Row]) -> Row:
    """Returns the row of changes that are one, as it was seen first."""
    first = group[0]
    old, new = first["old_leader_epoch"], first["new_leader_epoch"]
    number = len({row["origin"] for row in group})
    times = [row["observed_at"] for row in group]
    return {
        **first,
        "elections": None if old is None or new is None else new - old,
        "recordings": number,
        "spread_us": max(times) - min(times) if number > 1 else None,
    }


def _state_at(origin: Origin, midnight: int, thing: tuple[Any, ...]) -> tuple[int, Any] | None:
    """Returns a partition's epoch and leader at the midnight over which an origin came."""
    is_over = origin.begin < midnight < origin.end
    if not is_over and not (origin.begin == midnight and origin.continues):
        return None
    found: dict[tuple[Any, ...], tuple[int, Any]] = {}
    for row in origin.rows:
        if not _is_baseline(origin, row) and row["observed_at"] >= midnight:
            break
        if row["partition"] is None:
            if row["kind"] in ("topic_absent", "topic_removed", "topic_recreated", "topic_error"):
                found = {k: v for k, v in found.items() if k[0] != row["topic"]}
        elif row["new_leader_epoch"] is not None:
            found[_thing(row)] = (row["new_leader_epoch"], row["new_leader"])
    return found.get(thing)


def made_silver(out: Path, cluster_id: str) -> dict[str, list[Any]]:
    """Returns the rows that each table has, in the form of `model_silver`."""
    tables: dict[str, list[Any]] = {}
    names: dict[str, Callable[[Row], Any]] = {
        **{name: partial(_piece, name) for name in COLUMNS},
        "change": lambda row: {name: row[name] for name in _CHANGE},
        "leader_change": lambda row: {name: row[name] for name in _LEADER},
        "observation": lambda row: {name: row[name] for name in _OBSERVATION},
    }
    for table, shown in names.items():
        tables[table] = []
        for path in sorted(out.glob(f"silver/v1/{table}/cluster={cluster_id}/*/part-*.parquet")):
            tables[table] += [shown(plain(row)) for row in pq.ParquetFile(path).read().to_pylist()]
    return tables


def _piece(table: str, row: Row) -> tuple[Any, ...]:
    return (*piece_of(table, row), row["origin"])


def states(tables: dict[str, list[Any]], at: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Returns the state that the tables give for a moment, with the origin of each row."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for table in INTERVALS:
        for key, state, began_at, ended_at, *_, origin in tables[table]:
            if began_at <= at < ended_at:
                assert key not in found, f"{key} has two states at {at}"
                found[key] = (*state, origin)
    return found
