"""Naive models of broker_day, topic_life, config_change and controller, from rows of silver.

Time is cut wherever any row begins or ends. `broker_day` looks at each piece between two cuts and
counts what stands in it. The others walk the intervals of one thing in the order of time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import pyarrow as pa

__all__ = ["broker_day", "config_change", "controller", "topic_life"]

Row = dict[str, Any]
Silver = Mapping[str, pa.Table]
_DAY = timedelta(days=1)
_REMOVALS = ("topic_removed", "topic_recreated", "topic_absent")


class Broker(NamedTuple):
    """What silver says about a broker in a piece."""

    fenced: bool | None
    shutting_down: bool | None


@dataclass
class Piece:
    """The state of a cluster between two cuts; `waits` are brokers that do not lead all theirs."""

    begin: datetime
    end: datetime
    brokers: dict[int, Broker] = field(default_factory=dict)
    placed: set[int] = field(default_factory=set)
    preferred: set[int] = field(default_factory=set)
    waits: set[int] = field(default_factory=set)
    away: set[int] = field(default_factory=set)
    follows: bool = False
    is_of_log: bool = False

    @property
    def us(self) -> int:
        return (self.end - self.begin) // timedelta(microseconds=1)

    @property
    def is_told(self) -> bool:
        return self.is_of_log or any(b.fenced is not None for b in self.brokers.values())

    def is_up(self, broker: int) -> bool:
        return broker in self.brokers and not self.brokers[broker].fenced


@dataclass
class Sums:
    """What a day of a broker adds up to."""

    up: int = 0
    fenced: int = 0
    shutting_down: int = 0
    away: int = 0
    unclean: list[bool | None] = field(default_factory=list)
    waited: list[int | None] = field(default_factory=list)


def _rows(silver: Silver, table: str) -> list[Row]:
    return silver[table].to_pylist() if table in silver else []


def _day(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _month(at: datetime) -> datetime:
    return _day(at).replace(day=1)


def _stands(row: Row, at: datetime, names: tuple[str, str] = ("began_at", "ended_at")) -> bool:
    return bool(row[names[0]] <= at < row[names[1]])


def _pieces(
    seen: list[Row], brokers: list[Row], partitions: list[Row], terms: list[Row]
) -> list[Piece]:
    """Returns the observed pieces of a cluster's time."""
    cuts = {row[name] for row in seen for name in ("counts_from", "counts_to")}
    cuts |= {row[name] for row in brokers + partitions + terms for name in ("began_at", "ended_at")}
    cuts |= {_day(at) for at in cuts}
    found: list[Piece] = []
    for begin, end in pairwise(sorted(cuts)):
        if not any(_stands(row, begin, ("counts_from", "counts_to")) for row in seen):
            continue
        piece = Piece(begin, end)
        piece.follows = bool(found) and found[-1].end == begin
        piece.is_of_log = any(_stands(row, begin) for row in terms)
        for row in brokers:
            if _stands(row, begin):
                piece.brokers[row["broker"]] = Broker(row["fenced"], row["shutting_down"])
        for row in partitions:
            replicas = row["replicas"]
            if _stands(row, begin) and replicas:
                piece.placed.update(replicas)
                piece.preferred.add(replicas[0])
                if row["leader"] != replicas[0] and replicas[0] not in (row["adding"] or ()):
                    piece.waits.add(replicas[0])
        found.append(piece)
    return found


def _unclean(pieces: list[Piece], number: int, broker: int) -> bool | None:
    """Returns whether a broker that is back in a piece went without a controlled shutdown."""
    since = _day(pieces[number].begin) - _DAY
    is_whole, at = True, number
    flags: list[bool | None] = []
    while at > 0 and pieces[at - 1].begin >= since:
        is_whole = is_whole and pieces[at].follows
        at -= 1
        if pieces[at].is_up(broker):
            if True in flags:
                return False
            last = pieces[at].brokers[broker].shutting_down
            is_known = is_whole and bool(flags) and None not in flags and last is not None
            return not last if is_known else None
        if broker in pieces[at].brokers:
            flags.append(pieces[at].brokers[broker].shutting_down)
        else:
            is_whole = False
    return False if True in flags else None


def _waited(pieces: list[Piece], number: int, broker: int) -> int | None:
    """Returns the microseconds until a broker leads all partitions that prefer it."""
    back = pieces[number].begin
    for place, piece in enumerate(pieces[number:]):
        is_on = place == 0 or piece.follows
        if not is_on or not piece.is_up(broker) or _month(piece.begin) != _month(back):
            return None
        if broker not in piece.waits:
            return (piece.begin - back) // timedelta(microseconds=1)
    return None


def broker_day(silver: Silver) -> list[Row]:
    """Returns the rows that the measure must have, in its order."""
    found: list[Row] = []
    seen = [r for r in _rows(silver, "observation") if r["counts_from"] != r["counts_to"]]
    for cluster_id in sorted({row["cluster_id"] for row in seen}):

        def of(rows: list[Row], cluster_id: str = cluster_id) -> list[Row]:
            return [r for r in rows if r["cluster_id"] == cluster_id and r.get("us") != 0]

        names = ("broker_interval", "partition_interval", "controller")
        rows = [of(_rows(silver, name)) for name in names]
        found += _of_cluster(cluster_id, _pieces(of(seen), *rows))
    return found


def _of_cluster(cluster_id: str, pieces: list[Piece]) -> Iterator[Row]:
    sums: dict[tuple[datetime, int], Sums] = defaultdict(Sums)
    was_up: set[tuple[datetime, int]] = set()
    known = {broker for piece in pieces for broker in {*piece.brokers, *piece.placed}}
    for number, piece in enumerate(pieces):
        day = _day(piece.begin)
        for broker in known:
            key = day, broker
            if piece.is_up(broker):
                was_up.add(key)
                sums[key].up += piece.us
                sums[key].shutting_down += piece.us * bool(piece.brokers[broker].shutting_down)
                if piece.follows and broker in pieces[number - 1].away:
                    sums[key].unclean.append(_unclean(pieces, number, broker))
                    if broker in piece.preferred:
                        sums[key].waited.append(_waited(pieces, number, broker))
                continue
            if broker in piece.brokers:
                sums[key].fenced += piece.us
            if broker in piece.placed or key in was_up:
                piece.away.add(broker)
                sums[key].away += piece.us
    for (day, broker), each in sorted(sums.items()):
        yield {"cluster_id": cluster_id, "day": day, "broker": broker} | _shown(
            each, [piece for piece in pieces if _day(piece.begin) == day]
        )


def _shown(sums: Sums, pieces: list[Piece]) -> Row:
    told = sum(piece.us for piece in pieces if piece.is_told)
    observed = sum(piece.us for piece in pieces)
    return {
        "up": sums.up / 60e6,
        "fenced": sums.fenced / 60e6 if told else None,
        "shutting_down": sums.shutting_down / 60e6 if told else None,
        "unknown_fenced": (observed - told) / 60e6,
        "away": sums.away / 60e6,
        "restarts": len(sums.unclean),
        "unclean_restarts": sums.unclean.count(True) if told else None,
        "unknown_restarts": sums.unclean.count(None),
        "preferred_seconds": sorted(us / 1e6 for us in sums.waited if us is not None),
        "preferred_open": sums.waited.count(None),
        "observed": observed / 60e6,
    }


def _groups(rows: Iterable[Row], *names: str) -> Iterator[list[Row]]:
    """Yields the rows of each thing in the order of time."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)

    def order(row: Row) -> tuple[Any, ...]:
        times = row["began_at"], row["ended_at"], row["version"], row["origin"]
        return (*key(row), *times)

    for _, group in groupby(sorted(rows, key=order), key):
        yield list(group)


def topic_life(silver: Silver) -> list[Row]:
    """Returns the rows that the measure must have, in its order."""
    found: list[Row] = []
    for rows in _groups(_rows(silver, "topic_interval"), "cluster_id", "topic"):
        for month in sorted({_month(row["began_at"]) for row in rows}):
            before = [r for r in rows if r["us"] > 0 and r["ended_at"] == month]
            inside = [r for r in rows if _month(r["began_at"]) == month]
            found += _lives(before, inside)

    def order(row: Row) -> tuple[Any, ...]:
        names = ("cluster_id", "began_at", "topic", "topic_id", "last_seen_at")
        return tuple((row[name] is not None, row[name]) for name in names)

    return sorted(found, key=order)


def _lives(before: list[Row], inside: list[Row]) -> Iterator[Row]:
    lives: list[list[Row]] = []
    for row in [*before, *inside]:
        if lives and _is_same(lives[-1], row):
            lives[-1].append(row)
        else:
            lives.append([row])
    for number, life in enumerate(lives):
        own = [row for row in life if not any(row is each for each in before)]
        if not own:
            continue
        last = life[-1]
        then = lives[number + 1][0]["began_at"] if number + 1 < len(lives) else None
        ended_by = last["ended_by"] if last["ended_by"] in _REMOVALS else None
        if ended_by is None and then == last["ended_at"]:
            ended_by = "topic_recreated"
        counts = [row["partitions"] for row in life]
        created = own[0] is life[0] and own[0]["began_by"] in ("topic_added", "topic_recreated")
        yield {
            "cluster_id": last["cluster_id"],
            "topic": last["topic"],
            "topic_id": _id_of(life),
            "began_at": own[0]["began_at"],
            "last_seen_at": last["ended_at"],
            "ended_at": None if ended_by is None else last["ended_at"],
            "ended_by": ended_by,
            "partitions": counts[-1],
            "partitions_added": max(counts) - counts[0],
            "begin_seen": created,
            "end_seen": ended_by is not None,
        }


def _id_of(life: list[Row]) -> str | None:
    ids = [row["topic_id"] for row in life if row["topic_id"] is not None]
    return ids[-1] if ids else None


def _is_same(life: list[Row], row: Row) -> bool:
    """Returns whether an interval tells of the topic whose life this is."""
    last = life[-1]
    if last["ended_by"] in _REMOVALS or row["began_by"] == "topic_recreated":
        return row["topic_id"] is not None and row["topic_id"] == last["topic_id"]
    known = _id_of(life)
    return known is None or row["topic_id"] is None or row["topic_id"] == known


def config_change(silver: Silver) -> list[Row]:
    """Returns the rows that the measure must have, in its order."""
    found = []
    names = ("cluster_id", "resource_type", "resource", "key")
    for rows in _groups(_rows(silver, "config_interval"), *names):
        thing = {name: rows[0][name] for name in names}
        for number, row in enumerate(rows):
            last = rows[number - 1] if number else None
            is_next = last is not None and last["ended_at"] == row["began_at"]
            by = row["began_by"]
            if last is not None and is_next:
                is_other = last["ended_by"] in (*_REMOVALS, "topic_error")
                is_set = by == "config_changed" and last["ended_by"] != "gap"
                if not is_other and (is_set or last["value"] != row["value"]):
                    found.append(_change(thing, row["began_at"], last["value"], row["value"]))
            elif by == "config_changed" and row["offset"] is not None:
                found.append(_change(thing, row["began_at"], None, row["value"]))
            then = rows[number + 1]["began_at"] if number + 1 < len(rows) else None
            is_end = row["ended_by"] == "config_changed" and then != row["ended_at"]
            if is_end and row["offset"] is not None:
                found.append(_change(thing, row["ended_at"], row["value"], None))

    def order(row: Row) -> tuple[Any, ...]:
        order = ("cluster_id", "observed_at", *names[1:], "old_value", "new_value")
        return tuple((row[name] is not None, row[name]) for name in order)

    return sorted(found, key=order)


def _change(thing: Row, at: datetime, old: str | None, new: str | None) -> Row:
    return {**thing, "observed_at": at, "old_value": old, "new_value": new, "asked_by": None}


def controller(silver: Silver) -> list[Row]:
    """Returns the rows that the measure must have, in its order."""
    found: list[Row] = []
    by: list[list[str]] = []
    for rows in _groups([r for r in _rows(silver, "controller") if r["us"]], "cluster_id"):
        last: Row | None = None
        for row in rows:
            who = {name: row[name] for name in ("cluster_id", "broker", "epoch")}
            goes_on = last is not None and who.items() <= last.items()
            month = None if last is None else _month(last["began_at"])
            if (
                last
                and goes_on
                and (last["ended_at"], month)
                == (
                    row["began_at"],
                    _month(row["began_at"]),
                )
            ):
                last["ended_at"], by[-1][1] = row["ended_at"], row["ended_by"]
                continue
            last = {**who, "began_at": row["began_at"], "ended_at": row["ended_at"]}
            found.append(last)
            by.append([row["began_by"], row["ended_by"]])
    for row, reasons in zip(found, by, strict=True):
        row["seconds"] = (row["ended_at"] - row["began_at"]) / timedelta(seconds=1)
        row["censored"] = reasons != ["controller_changed"] * 2
    return found
