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
from fold_model import Piece, Row, walk

from rdmeta import history

__all__ = ["INTERVALS", "made_silver", "model_silver", "states"]

INTERVALS = ("partition_interval", "topic_interval", "broker_interval", "config_interval")
_NOT_CHANGES = ("observed_from", "observed_to", "resync", "leader_changed")
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
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "partition_interval": (
        ("topic", "partition"),
        ("topic_id", "leader", "leader_epoch", "isr", "replicas", "offline", "min_isr", "racks"),
    ),
    "topic_interval": (("topic",), ("topic_id", "partitions")),
    "broker_interval": (("broker",), ("host", "port", "rack")),
    "config_interval": (("resource_type", "resource", "key"), ("value",)),
}


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
            tables[f"{piece.key[0]}_interval"].append((*piece, each.session))
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
            yield row


def _is_baseline(origin: Origin, row: Row) -> bool:
    """Returns whether a row tells the state that the recording began with.

    A min ISR that is told later has the same version.
    """
    first = origin.rows[0]
    return bool((row["version"], row["observed_at"]) == (first["version"], first["observed_at"]))


def _is_told(origin: Origin, row: Row) -> bool:
    return origin.counts is not None and origin.counts[0] <= row["observed_at"]


def _leaders(found: list[Origin]) -> Iterator[Row]:
    """Yields the changes of leader: of those with the same key in a day the first one."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for origin in found:
        for number, row in enumerate(origin.rows):
            if row["kind"] != "leader_changed" or row["partition"] is None:
                continue
            day = row["observed_at"] // DAY_US
            epoch = row["new_leader_epoch"]
            if row["topic_id"] is None or epoch is None:
                if _is_told(origin, row):
                    groups[origin.session, number] = [row]
                continue
            thing = (row["topic_id"], row["partition"])
            others = [other for other in found if other is not origin]
            if any(_epoch_at(other, day * DAY_US, thing) >= epoch for other in others):
                continue
            groups.setdefault((day, *thing, epoch, row["new_leader"]), []).append(row)
    for group in groups.values():
        first = min(group, key=lambda row: (row["observed_at"], row["origin"], row["version"]))
        old, new = first["old_leader_epoch"], first["new_leader_epoch"]
        elections = None if old is None or new is None else new - old
        number = len({row["origin"] for row in group})
        times = [row["observed_at"] for row in group]
        spread = max(times) - min(times) if number > 1 else None
        known = {"elections": elections, "recordings": number, "spread_us": spread}
        yield {**first, **known}


def _epoch_at(origin: Origin, midnight: int, thing: tuple[str, int]) -> int:
    """Returns a partition's epoch at the midnight over which an origin came; -1 without one."""
    is_over = origin.begin < midnight < origin.end
    if not is_over and not (origin.begin == midnight and origin.continues):
        return -1
    epochs: dict[tuple[Any, Any], tuple[str, int]] = {}
    for row in origin.rows:
        if not _is_baseline(origin, row) and row["observed_at"] >= midnight:
            break
        if row["partition"] is None:
            if row["kind"] in ("topic_absent", "topic_removed", "topic_recreated", "topic_error"):
                epochs = {k: v for k, v in epochs.items() if v[0] != row["topic"]}
        elif row["new_leader_epoch"] is not None:
            epochs[row["topic_id"], row["partition"]] = (row["topic"], row["new_leader_epoch"])
    return epochs.get(thing, ("", -1))[1]


def made_silver(out: Path, cluster_id: str) -> dict[str, list[Any]]:
    """Returns the rows that each table has, in the form of `model_silver`."""
    tables: dict[str, list[Any]] = {}
    names: dict[str, Callable[[Row], Any]] = {
        **{name: partial(_piece, name) for name in INTERVALS},
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
    keys, values = _KEYS[table]
    key = (table.removesuffix("_interval"), *(row[name] for name in keys))
    rest = (row[name] for name in Piece._fields[2:])
    return (key, tuple(row[name] for name in values), *rest, row["origin"])


def states(tables: dict[str, list[Any]], at: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Returns the state that the tables give for a moment, with the origin of each row."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for table in INTERVALS:
        for key, state, began_at, ended_at, *_, origin in tables[table]:
            if began_at <= at < ended_at:
                assert key not in found, f"{key} has two states at {at}"
                found[key] = (*state, origin)
    return found
