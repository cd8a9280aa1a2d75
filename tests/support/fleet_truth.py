"""Silver that must be: the changes of a generated cluster, cut wherever the list changes something.

`truth` replays the list with dictionaries, asks at each moment what a source tells, and never sees
the fold, the SQL, or the generator's own state. Of the files it takes names alone: the ids of
recordings, and where a killed recorder's last file ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from fleet import DAY_US, EPOCH
from fold_model import ORDER
from gold_tables import rows_of_silver

from rdmeta import history
from rdmeta.generate.cluster import GeneratedCluster, TimedChange, WatchPlan
from rdmeta.generate.controllers import LAST_WORD_MS
from rdmeta.generate.recordings import polls

__all__ = ["truth"]

Row = dict[str, Any]
Key = tuple[Any, ...]
_COLUMNS = {
    "partition": (
        *("topic_id", "leader", "leader_epoch", "isr", "replicas", "offline"),
        *("min_isr", "racks", "adding", "removing"),
    ),
    "topic": ("topic_id", "partitions"),
    "broker": ("host", "port", "rack", "fenced", "shutting_down"),
    "config": ("value",),
    "controller": ("broker", "epoch"),
}
_KEYS: dict[str, tuple[str, ...]] = {
    "partition": ("topic", "partition"),
    "topic": ("topic",),
    "broker": ("broker",),
    "config": ("resource_type", "resource", "key"),
    "controller": (),
}
_WHY = {
    **dict.fromkeys(("leader", "leader_epoch"), "leader_changed"),
    **{name: f"{name}_changed" for name in ("isr", "replicas", "offline")},
    **dict.fromkeys(("adding", "removing"), "reassignment_changed"),
    "min_isr": "config_changed",
    "racks": "broker_added",
    "value": "config_changed",
    "partitions": "partitions_added",
    **dict.fromkeys(("broker", "epoch"), "controller_changed"),
    **dict.fromkeys(("fenced", "shutting_down", "host", "port", "rack"), "broker_changed"),
}


class World(NamedTuple):
    """All that is true at a moment; `led` are the elections that it brought.

    If `is_lost`, the log has lost the records of this moment, and a snapshot tells the state.
    `static` is the min ISR of topics without their own, which no log tells. `polled` are min ISRs
    that recordings beside a log tell, and `configs` the rows that both gave.
    """

    at: int
    brokers: dict[int, Any]
    fenced: frozenset[int]
    leaving: frozenset[int]
    partitions: dict[tuple[str, int], Row]
    topics: dict[str, tuple[str, int | None]]
    led: tuple[Row, ...] = ()
    term: tuple[int, int] = (0, 0)
    is_lost: bool = False
    static: int | None = None
    polled: dict[str, int | None] | None = None
    configs: dict[str, int | None] | None = None


class Told(NamedTuple):
    """What one recording tells of a day: what was true at each of its looks, and what counts.

    `gap` is the longest time between two looks. A log's last state may hold beyond `seen_to`.
    """

    origin: str
    is_log: bool
    begin: int
    end: int
    first: str  # by what its states begin; "" if all came at that moment
    ended_by: str
    looks: list[tuple[int, World]]
    counts: list[tuple[int, int]]
    seen_to: int
    gap: int = 0


def worlds(changes: list[TimedChange], begin: int) -> list[World]:
    """Returns what was true after each moment at which something changed."""
    found: list[World] = []
    brokers: dict[int, Any] = {}
    fenced: set[int] = set()
    leaving: set[int] = set()
    parts: dict[tuple[str, int], Row] = {}
    topics: dict[str, tuple[str, int | None]] = {}
    term = (101, 1)
    static: int | None = None
    for at, moment in groupby(changes, key=lambda change: change.at):
        led: list[Row] = []
        unclean: set[tuple[str, int]] = set()

        for _, name, values in moment:
            key = values[:2]
            if name == "set_broker":
                brokers[values[0].id] = values[0]
                fenced.discard(values[0].id)
                leaving.discard(values[0].id)
            elif name == "remove_broker":
                fenced.add(values[0])
            elif name == "shut_down":
                leaving.add(values[0])
            elif name == "set_controller":
                term = (values[0], term[1] + 1)
            elif name == "add_topic":
                topics[values[0]] = (values[1], None)
                for number, (leader, ids) in enumerate(zip(values[2], values[3], strict=True)):
                    parts[values[0], number] = _new(values[1], leader, ids)
            elif name == "grow":
                number = sum(topic == values[0] for topic, _ in parts)
                parts[values[0], number] = _new(topics[values[0]][0], *values[1:])
            elif name == "remove_topic":
                del topics[values[0]]
                parts = {each: row for each, row in parts.items() if each[0] != values[0]}
            elif name == "set_min_isr":
                topics[values[0]] = (topics[values[0]][0], values[1])
            elif name == "set_static_min_isr":
                static = values[0]
            elif name == "set_recovering":
                unclean |= {key} if values[2] else set()
            elif name == "set_leader":
                old = parts[key]
                new = {"leader": values[2], "leader_epoch": old["leader_epoch"] + 1}
                parts[key] = {**old, **new}
                led.append({"key": key, "old": old, "new": parts[key], "unclean": key in unclean})
            elif name == "set_moving":
                parts[key] = {**parts[key], "adding": values[2], "removing": values[3]}
            else:
                parts[key] = {**parts[key], name.removeprefix("set_"): values[2]}
        state = (frozenset(fenced), frozenset(leaving), dict(parts), dict(topics), tuple(led))
        found.append(World(begin + at, dict(brokers), *state, term, static=static))
    return found


def _new(topic_id: str, leader: int | None, ids: tuple[int, ...]) -> Row:
    empty = {"offline": (), "adding": (), "removing": ()}
    new = {"topic_id": topic_id, "leader": leader, "leader_epoch": 0}
    return {**new, "isr": ids, "replicas": ids, **empty}


# ---- what sources tell --------------------------------------------------------------------------


def _own(told: Told, world: World) -> dict[str, int | None]:
    """Returns the min ISR of each topic, as a source tells it by itself."""
    static = None if told.is_log else world.static
    return {
        name: static if min_isr is None else min_isr for name, (_, min_isr) in world.topics.items()
    }


def _states(told: Told, world: World, racks: dict[int, str | None]) -> dict[Key, tuple[Any, ...]]:
    """Returns what a source tells of a moment; `racks` are those that it knows."""
    found: dict[Key, tuple[Any, ...]] = {}
    for each in world.brokers.values():
        if told.is_log or each.id not in world.fenced:
            racks[each.id] = each.rack
            flags = (each.id in world.fenced, each.id in world.leaving)
            about = each.host, each.port, each.rack
            found["broker", each.id] = (*about, *(flags if told.is_log else (None, None)))
    own = _own(told, world)
    for (topic, number), row in world.partitions.items():
        min_isr = own[topic]
        if min_isr is None and world.polled is not None:
            min_isr = world.polled.get(topic)
        there = {racks.get(broker) for broker in row["replicas"]}
        shown = {
            **row,
            "isr": tuple(sorted(row["isr"])),
            "min_isr": min_isr,
            "racks": None if None in there else len(there),
        }
        hidden = ("offline",) if told.is_log else ("adding", "removing")
        shown |= dict.fromkeys(hidden)
        found["partition", topic, number] = tuple(shown[name] for name in _COLUMNS["partition"])
    for topic, (topic_id, _) in world.topics.items():
        count = sum(each == topic for each, _ in world.partitions)
        found["topic", topic] = (topic_id, count)
    for topic, value in (own if world.configs is None else world.configs).items():
        if value is not None:
            found["config", "topic", topic, "min.insync.replicas"] = (str(value),)
    return found


def _why(told: Told, key: Key, old: Any, new: Any) -> str:
    """Returns what ends a state, or begins one, by the first kind of the fold's order."""
    kind = key[0]
    if old is None or new is None:
        if kind == "broker":
            return "broker_added" if old is None else "broker_removed"
        if kind == "config" and old is None:
            return "config_changed"
        gone = "topic_removed" if told.is_log else "topic_absent"
        return "topic_added" if old is None else gone
    pairs = zip(_COLUMNS[kind], old, new, strict=True)
    return min((_WHY[name] for name, a, b in pairs if a != b), key=ORDER.index)


def _pieces(told: Told) -> Iterator[tuple[Key, tuple[Any, ...], int, int, str, str]]:
    """Yields each state that a recording tells, with its begin and end, and the reasons."""
    standing: dict[Key, tuple[Any, int, str]] = {}
    racks: dict[int, str | None] = {}
    last: World | None = None
    for at, world in told.looks:
        if world is last:
            continue
        states, before = _states(told, world, racks), standing
        partial_topics = {key[1] for key in states if key[0] == "topic"}
        known = {key[1] for key in before if key[0] == "topic"}
        for key in [*before, *(key for key in states if key not in before)]:
            old, new = before.get(key), states.get(key)
            if old is not None and old[0] == new:
                continue
            is_first = last is None and told.first
            by = told.first if is_first else _why(told, key, old and old[0], new)
            if key[0] == "config" and ("topic", key[2]) in states:
                by = by if is_first else "config_changed"
            if last is not None and key[0] == "partition" and old is None:
                is_grown = key[1] in known and key[1] in partial_topics
                by = "partitions_added" if is_grown else by
            if old is not None:
                yield key, old[0], old[1], at, old[2], by
                del standing[key]
            if new is not None:
                standing[key] = new, at, by
        last = world
    for key, (state, at, by) in standing.items():
        yield key, state, at, told.end, by, told.ended_by


def _clipped(told: Told) -> Iterator[tuple[Key, tuple[Any, ...], int, int, str, str]]:
    """Yields the pieces that count; the end of what counts is no end of a state."""
    by = told.ended_by if told.ended_by in ("open", "midnight") else "gap"
    for key, state, begin, end, began_by, ended_by in _pieces(told._replace(ended_by=by)):
        for low, high in told.counts:
            is_behind = begin > high or (begin == high != told.end)
            if is_behind or begin < low >= end:
                continue
            first = (begin, began_by) if begin >= low else (low, "baseline")
            edge = "open" if high % DAY_US else "midnight"
            yield (
                key,
                state,
                *first[:1],
                min(end, high),
                first[1],
                ended_by if end <= high else edge,
            )


# ---- sources ------------------------------------------------------------------------------------


def _days(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the parts of a time that midnights cut; a moment is one, too."""
    at = begin
    while at == begin or at < end:
        midnight = (at // DAY_US + 1) * DAY_US
        yield at, min(end, midnight)
        at = midnight


def _of_span(
    looks: list[tuple[int, World]],
    end: int,
    ended_by: str,
    *,
    is_log: bool,
    first: str,
    name: Callable[[int], str],
) -> Iterator[Told]:
    """Yields the recordings of looks without a hole, one for each day."""
    span = looks[0][0]
    for begin, until in _days(span, end):
        inside = [(at, world) for at, world in looks if begin <= at < until or at == until == end]
        if not inside or inside[0][0] != begin:
            before = [world for at, world in looks if at < begin][-1]
            inside.insert(0, (begin, before))
        by = ended_by if until == end else "midnight"
        mark = first if begin == span else "midnight"
        pairs = [(a, b) for (a, _), (b, _) in pairwise(looks) if b > begin and a < until]
        gap = max((b - a for a, b in pairs), default=0)
        counts = [(begin, until)]
        yield Told(name(begin), is_log, begin, until, mark, by, inside, counts, until, gap)


def told_by_log(cluster: GeneratedCluster, begin: int) -> list[Told]:
    """Returns what the log tells: all but the batches that are lost or damaged."""
    every = worlds(cluster.changes, begin)
    lost = [(begin + low, begin + high) for low, high in cluster.lost]
    for at in cluster.corrupt:
        first = next((each.at for each in every if each.at >= begin + at), None)
        if first is not None:
            edges = {(first // DAY_US + 1) * DAY_US, *(e for hole in lost for e in hole)}
            lost.append((first, min(edge for edge in edges if edge > first)))
    found: list[Told] = []
    span: list[tuple[int, World]] = []
    behind: World | None = None

    def close(by: str) -> None:
        if span:
            end = span[-1][0]
            first = "baseline" if span[0][1].is_lost else ""
            found.extend(
                _of_span([*span], end, by, is_log=True, first=first, name=lambda at: f"log-{at}")
            )
            span.clear()

    for world in every:
        if any(low <= world.at < high for low, high in lost):
            close("gap")
            behind = world
            continue
        if behind is not None:
            span.append((behind.at, behind._replace(led=(), is_lost=True)))
            behind = None
        span.append((world.at, world))
    close("closed" if behind is None else "gap")  # a snapshot behind which nothing follows is none
    return found


def told_by_recorder(
    cluster: GeneratedCluster, watch: WatchPlan, begin: int, until: int, names: list[Any]
) -> list[Told]:
    """Returns what a recorder tells: a change counts from the poll that saw it."""
    every = worlds(cluster.changes, begin)
    times = list(polls(cluster, watch, until - begin))
    found: list[Told] = []
    spans: list[list[int]] = []
    for at in times:
        is_behind = spans and any(spans[-1][-1] < low <= at for low, _ in watch.holes)
        if not spans or is_behind:
            spans.append([])
        spans[-1].append(at)
    for number, span in enumerate(spans):
        looks, place = [], 0
        for at in span:
            while place + 1 < len(every) and every[place + 1].at <= begin + at:
                place += 1
            looks.append((begin + at + watch.skew, every[place]))
        is_last = number == len(spans) - 1
        by = "gap" if not is_last else "closed" if watch.killed is None else "open"
        end = looks[-1][0]
        if is_last and watch.killed is not None:
            end = max(_us(each.observed_to) for each in names if _us(each.observed_to) <= end)
            looks = [each for each in looks if each[0] <= end]

        def name(at: int, last: int = end) -> str:
            chosen = [each for each in names if _us(each.observed_from) == at]
            return str(chosen[0].session)

        found += _of_span(looks, end, by, is_log=False, first="baseline", name=name)
    return found


def _us(when: datetime) -> int:
    return (when - EPOCH) // timedelta(microseconds=1)


def _recorders(
    cluster: GeneratedCluster, begin: int, until: int, directory: Path
) -> Iterator[Told]:
    """Yields what all recorders tell; those of one follow on each other by name."""
    every = [r for r in history.recordings(directory) if r.cluster_id == cluster.cluster_id]
    for watch in cluster.watches:
        heads = {begin + at + watch.skew for at in polls(cluster, watch, until - begin)}
        mine = [r for r in every if r.continues is None and _us(r.observed_from) in heads]
        for each in mine:  # grows while it is walked
            mine += [r for r in every if r.continues == each.session]
        yield from told_by_recorder(cluster, watch, begin, until, mine)


def _counted(logs: list[Told], recorders: list[Told]) -> list[Told]:
    """Returns what counts: the log, or else the recording that began first."""
    found: list[Told] = []
    taken = [span for each in logs for span in each.counts]
    covered = -1
    for each in sorted(recorders, key=lambda told: (told.begin, told.origin)):
        low = max(each.begin, covered)
        covered = max(covered, each.end)
        free = [(low, each.end)] if low == each.begin or low < each.end else []
        for a, b in taken:
            free = [
                part
                for x, y in free
                for part in ((x, min(y, a)), (max(x, b), y))
                if part[0] < part[1]
            ]
        found.append(each._replace(counts=free))
    return [*logs, *found]


def _handed_over(every: list[Told]) -> list[Told]:
    """Returns what counts, as the last state of a log that ends holds until a recorder has news.

    It holds no longer than the longest time between two looks of the day, and over no midnight
    and into no hole.
    """
    ends = {told.end: told.end for told in every if told.is_log}
    begins: dict[int, int] = {}
    parts = [(*part, told) for told in every for part in told.counts]
    for low, high, told in sorted(parts, key=lambda part: part[0]):
        is_behind = not told.is_log and (told.begin < low or told.first == "midnight")
        if low in ends and is_behind:
            news = [at for at in _news(told) if at >= low]
            begins[low] = at = min([high, max(low, ends[low] + told.gap), *news])
            ends[at] = ends[low]  # it ends there without news, and another one goes on
    found = []
    for told in every:
        if told.is_log:
            end = told.end
            while end % DAY_US and told.ended_by != "gap" and begins.get(end, end) > end:
                end = begins[end]
            found.append(told._replace(end=end, counts=[(told.begin, end)]))
        else:
            spans = [(begins.get(low, low), high) for low, high in told.counts]
            kept = [span for span in spans if span[0] < span[1] or span in told.counts]
            found.append(told._replace(counts=kept))
    return found


def _news(told: Told) -> Iterator[int]:
    """Yields when a recorder saw something else than at the look before."""
    racks: dict[int, str | None] = {}
    last = None
    for at, world in told.looks:
        states = _states(told, world, racks)
        if states != last and (last is not None or told.first != "midnight"):
            yield at
        last = states


def _beside(told: Told, recorders: list[Told]) -> Told:
    """Returns what a log tells with the min ISRs that the recording that began first was told."""
    if not told.is_log:
        return told
    there = sorted(recorders, key=lambda each: (each.begin, each.origin))
    times = {at for at, _ in told.looks}
    for each in there:
        times |= {at for at in (each.end, *dict(each.looks)) if told.begin < at < told.end}
    looks = []
    last: list[dict[str, int | None]] = [{}, {}]
    configs: dict[str, int | None] = {}
    for at in sorted(times):
        one = next((each for each in there if each.begin <= at < each.end), None)
        own, polled = _own(told, _at(told, at)), {} if one is None else _own(one, _at(one, at))
        for values, before in zip((own, polled), last, strict=True):
            for name in {*values, *before}:
                is_new = values.get(name) != before.get(name)
                if is_new and (values is own or own.get(name) is None):
                    configs = {**configs, name: values.get(name)}
        last = [own, polled]
        looks.append((at, _at(told, at)._replace(polled=polled, configs=configs)))
    return told._replace(looks=looks)


def _at(told: Told, moment: int) -> World:
    """Returns what was told last at a moment."""
    return [world for at, world in told.looks if at <= moment][-1]


# ---- rows ---------------------------------------------------------------------------------------


def _elections(every: list[Told]) -> Iterator[Row]:
    """Yields each change of leader once; that of a log stands, and recorders are later or not."""
    known: dict[Any, dict[int, Any]] = defaultdict(dict)
    risen: dict[Any, set[int]] = defaultdict(set)
    seen: dict[Any, list[tuple[bool, int, str]]] = defaultdict(list)
    for told in every:
        before: World | None = None
        for at, world in told.looks:
            for key, row in world.partitions.items():
                thing = (*key, row["topic_id"])
                old = before.partitions.get(key) if before else None
                known[thing][row["leader_epoch"]] = row["leader"]
                if told.is_log:
                    continue
                if old is not None and old["topic_id"] == row["topic_id"]:
                    _rise(thing, old, row, risen, known)
                    if old["leader_epoch"] < row["leader_epoch"]:
                        seen[thing, row["leader_epoch"]].append((True, at, told.origin))
            is_new = world is not before and told.is_log and at == world.at
            for each in world.led if is_new else ():
                thing = (*each["key"], each["new"]["topic_id"])
                _rise(thing, each["old"], each["new"], risen, known)
                seen[thing, each["new"]["leader_epoch"]].append((False, at, told.origin))
            before = world
    for thing, epochs in risen.items():
        for epoch in sorted(epochs & known[thing].keys()):
            old_epoch = max(each for each in known[thing] if each < epoch)
            rows = sorted(seen[thing, epoch])
            times = [at for _, at, _ in rows]
            yield {
                "topic": thing[0],
                "partition": thing[1],
                "topic_id": thing[2],
                "observed_at": times[0],
                "old_leader": known[thing][old_epoch],
                "new_leader": known[thing][epoch],
                "old_leader_epoch": old_epoch,
                "new_leader_epoch": epoch,
                "elections": epoch - old_epoch,
                "recordings": len(rows),
                "spread_us": max(times) - times[0] if len(rows) > 1 else None,
                "partial": False,
                "origin": rows[0][2],
                "version": 0,
            }


def _rise(thing: Any, old: Row, new: Row, risen: Any, known: Any) -> None:
    for row in (old, new):
        known[thing][row["leader_epoch"]] = row["leader"]
    risen[thing] |= set(range(old["leader_epoch"] + 1, new["leader_epoch"] + 1))


def _unclean(told: Told) -> Iterator[Row]:
    for at, world in told.looks:
        if told.is_log and at == world.at:
            for each in world.led:
                if each["unclean"]:
                    yield {
                        "kind": "unclean_election",
                        "topic": each["key"][0],
                        "partition": each["key"][1],
                        "broker": each["new"]["leader"],
                        "observed_at": at,
                        "origin": told.origin,
                        "version": 0,
                        "partial": False,
                    }


def _terms(
    told: Told, elected: set[tuple[int, int]]
) -> Iterator[tuple[tuple[int | None, int], int, int, str, str]]:
    """Yields the terms of controllers on one day of a log; one ends with its last record.

    A log does not tell who leads in a term whose election is lost.
    """
    (began_at, world), *looks = told.looks
    term, by, last_record = world.term, told.first or "controller_changed", began_at
    for at, world in looks:
        if term != world.term:
            if term in elected:
                end = max(last_record, at - LAST_WORD_MS * 1000)
                yield term, began_at, end, by, "controller_changed"
                yield (None, term[1]), end, at, "controller_changed", "controller_changed"
            term, began_at, by = world.term, at, "controller_changed"
        last_record = at
    if term in elected:
        yield term, began_at, told.end, by, "midnight" if told.ended_by == "midnight" else "gap"


def _observed(told: Told) -> Iterator[Row]:
    row = {"origin": told.origin, "ended_by": told.ended_by, "partial": False}
    counts: list[tuple[int | None, int | None]] = [*told.counts]
    for low, high in counts or [(None, None)]:
        seen = {"seen_from": told.begin, "seen_to": told.seen_to}
        yield {**row, **seen, "counts_from": low, "counts_to": high}


def truth(
    cluster: GeneratedCluster, begin: datetime, days: int, directory: Path | None, has_logs: bool
) -> dict[str, pa.Table]:
    """Returns silver of one cluster as recordings in a folder, its log, or both must give it."""
    first = _us(begin)
    until = first + days * DAY_US
    logs = told_by_log(cluster, first) if has_logs else []
    recorders = [] if directory is None else [*_recorders(cluster, first, until, directory)]
    every = _handed_over(_counted(logs, recorders))
    rows: dict[str, list[Row]] = defaultdict(list)
    for told in every:
        rows["observation"] += _observed(told)
        rows["change"] += _unclean(told)
        shown = _beside(told, recorders)
        for key, state, began_at, ended_at, began_by, ended_by in _clipped(shown):
            names = dict(zip(_KEYS[key[0]], key[1:], strict=True))
            values = dict(zip(_COLUMNS[key[0]], state, strict=True))
            times = (began_at, ended_at, began_by, ended_by)
            row = {**names, **values, **_span(told, *times)}
            if key[0] == "config" and _own(told, _at(told, began_at)).get(key[2]) is None:
                row["offset"] = None  # a poll told it
            rows[f"{key[0]}_interval"].append(row)
    terms = worlds(cluster.changes, first)
    kept = {at for told in logs for at, world in told.looks if at == world.at and not world.is_lost}
    begun = {world.term: world.at for world in reversed(terms)}
    elected = {term for term, at in begun.items() if at in kept}
    for told in (each for each in every if each.is_log):
        for (broker, epoch), began_at, ended_at, why, end in _terms(told, elected):
            span = _span(told, began_at, ended_at, why, end)
            rows["controller"].append({"broker": broker, "epoch": epoch, **span})
    rows["leader_change"] = [*_elections(every)]
    names_of = ("partition_interval", "broker_interval", "topic_interval", "config_interval")
    tables = (*names_of, "controller", "leader_change", "change", "observation")
    about = {"cluster_id": cluster.cluster_id}
    return {
        table: rows_of_silver(table, [_dated({**row, **about}) for row in rows[table]])
        for table in tables
    }


def _span(told: Told, began_at: int, ended_at: int, began_by: str, ended_by: str) -> Row:
    return {
        "began_at": began_at,
        "ended_at": ended_at,
        "us": ended_at - began_at,
        "began_by": began_by,
        "ended_by": ended_by,
        "origin": told.origin,
        "version": began_at,
        "offset": 0 if told.is_log else None,
        "partial": False,
    }


def _dated(row: Mapping[str, Any]) -> Row:
    times = ("_at", "_from", "_to")
    return {
        name: EPOCH + timedelta(microseconds=value)
        if name.endswith(times) and value is not None
        else list(value)
        if isinstance(value, tuple)
        else value
        for name, value in row.items()
    }
