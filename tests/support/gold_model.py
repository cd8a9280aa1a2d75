"""Measures of gold by naive walks over silver: coverage, risk, incidents, recoveries, quality.

Each function takes the rows of one cluster's silver, with times in microseconds since 1970.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

__all__ = ["coverage", "incidents", "quality", "recoveries", "risk", "with_times"]

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
KINDS = (
    *("leaderless", "under_replicated", "under_min_isr", "at_min_isr"),
    *("single_copy", "not_preferred", "reassigning", "rack_unsafe"),
)
Row = dict[str, Any]
Silver = Mapping[str, Sequence[Row]]


def with_times(rows: Iterable[Row]) -> list[Row]:
    """Returns rows whose times are microseconds since 1970."""
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)

    def plain(value: object) -> object:
        if not isinstance(value, datetime):
            return value
        delta = value - epoch
        return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds

    return [{name: plain(value) for name, value in row.items()} for row in rows]


def flags(row: Row, silver: Silver, min_isr: int | None) -> dict[str, bool | None]:
    """Returns what is at risk in an interval; None is unknown."""
    replicas, isr, adding = row["replicas"], row["isr"], row["adding"]
    eff = len(replicas) - len(adding or [])
    least = row["min_isr"] if row["min_isr"] is not None else min_isr
    enough = None if least is None else min(least, eff)
    day = row["began_at"] // DAY_US
    racks = [b["rack"] for b in silver["broker_interval"] if b["began_at"] // DAY_US == day]
    unsafe = None
    if racks and None not in racks and row["racks"] is not None:
        unsafe = row["racks"] < min(eff, len(set(racks)))
    moving = [each for each in (adding, row["removing"]) if each is not None]
    return {
        "leaderless": row["leader"] is None,
        "under_replicated": len(isr) < eff,
        "under_min_isr": None if enough is None else len(isr) < enough,
        "at_min_isr": None if enough is None else len(isr) == enough,
        "single_copy": len(isr) == 1 and eff > 1,
        "not_preferred": row["leader"] != replicas[0] and replicas[0] not in (adding or []),
        "reassigning": any(moving) if moving else None,
        "rack_unsafe": unsafe,
    }


def hours(row: Row) -> Iterator[tuple[int, int]]:
    """Yields each hour that a row touches, and its microseconds there."""
    for hour in range(row["began_at"] // HOUR_US, -(-row["ended_at"] // HOUR_US)):
        begin, end = hour * HOUR_US, (hour + 1) * HOUR_US
        yield begin, min(end, row["ended_at"]) - max(begin, row["began_at"])


def risk(silver: Silver, min_isr: int | None = None) -> list[Row]:
    """Returns risk_hour."""
    sums: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in silver["partition_interval"]:
        found = flags(row, silver, min_isr)
        for hour, us in hours(row):
            of_hour = sums[row["topic"], hour]
            of_hour["observed"] += us
            for kind, value in found.items():
                of_hour[kind] += us * bool(value)
                of_hour[f"unknown {kind}"] += us * (value is None)
    rows = []
    for (topic, hour), found_us in sums.items():
        if not any(found_us[kind] for kind in KINDS):
            continue
        shown: Row = {"topic": topic, "hour": hour, "observed": found_us["observed"] / 60e6}
        for kind in KINDS:
            is_known = found_us[f"unknown {kind}"] < found_us["observed"]
            shown[kind] = found_us[kind] / 60e6 if is_known else None
        shown["unknown_min_isr"] = found_us["unknown at_min_isr"] / 60e6
        shown["unknown_reassigning"] = found_us["unknown reassigning"] / 60e6
        shown["unknown_racks"] = found_us["unknown rack_unsafe"] / 60e6
        rows.append(shown)
    return rows


def _seen(silver: Silver) -> list[Row]:
    """Returns the observations that count, in their order."""
    counting = [
        row
        for row in silver["observation"]
        if row["counts_from"] is not None and row["counts_from"] < row["counts_to"]
    ]
    return sorted(counting, key=lambda row: (row["counts_from"], row["counts_to"]))


def _edges(silver: Silver) -> tuple[set[int], set[int]]:
    """Returns where observation begins, and where it ends."""
    spans = [
        (row["counts_from"], row["counts_to"])
        for row in silver["observation"]
        if row["counts_from"] is not None
    ]
    begins = {a for a, _ in spans if not any(b < a <= c for b, c in spans)}
    ends = {a for _, a in spans if not any(b <= a < c for b, c in spans)}
    return begins, ends


def coverage(silver: Silver) -> list[Row]:
    """Returns coverage_hour."""
    seen = _seen(silver)
    found: dict[int, Row] = defaultdict(
        lambda: {"observed": 0, "holes": defaultdict(int), "origins": set()}
    )
    for row in seen:
        for hour, us in hours({"began_at": row["counts_from"], "ended_at": row["counts_to"]}):
            found[hour]["observed"] += us
            found[hour]["origins"].add(row["origin"])
    for before, after in zip(seen, seen[1:], strict=False):
        if before["counts_to"] < after["counts_from"]:
            hole = {"began_at": before["counts_to"], "ended_at": after["counts_from"]}
            for hour, us in hours(hole):
                found[hour]["holes"][before["ended_by"]] += us
    return [
        {
            "hour": hour,
            "observed": row["observed"] / 60e6,
            "hole": sum(row["holes"].values()) / 60e6,
            "holes": [
                {"reason": r, "minutes": us / 60e6} for r, us in sorted(row["holes"].items())
            ],
            "origins": sorted(row["origins"]),
        }
        for hour, row in found.items()
    ]


def incidents(silver: Silver, min_isr: int | None = None) -> list[Row]:
    """Returns incident, piece by piece between any two moments at which something changes."""
    found = []
    begins, ends = _edges(silver)
    told = [(row, flags(row, silver, min_isr)) for row in silver["partition_interval"]]
    for kind in KINDS:
        rows = [
            row for row, f in told if f[kind] and (kind != "at_min_isr" or f["under_replicated"])
        ]
        cuts = sorted({row[edge] for row in rows for edge in ("began_at", "ended_at")})
        stretch: list[tuple[int, int, list[Row]]] = []
        for begin, end in zip(cuts, [*cuts[1:], None], strict=False):
            there = [row for row in rows if row["began_at"] <= begin < row["ended_at"]]
            if there and end is not None:
                stretch.append((begin, end, there))
            elif stretch:
                found.append({"kind": kind, **_incident(stretch, begins, ends)})
                stretch = []
    return found


def _incident(
    stretch: Sequence[tuple[int, int, list[Row]]], begins: set[int], ends: set[int]
) -> Row:
    missing: dict[int, int] = defaultdict(int)
    for begin, end, rows in stretch:
        for row in rows:
            for broker in _missing(row):
                missing[broker] += end - begin
    every = [row for _, _, rows in stretch for row in rows]
    began_at, ended_at = stretch[0][0], stretch[-1][1]
    return {
        "began_at": began_at,
        "ended_at": ended_at,
        "minutes": sum((end - begin) * len(rows) for begin, end, rows in stretch) / 60e6,
        "most": max(len(rows) for _, _, rows in stretch),
        "partitions": len({(r["topic"], r["topic_id"], r["partition"]) for r in every}),
        "topics": len({(r["topic"], r["topic_id"]) for r in every}),
        "broker": min(missing, key=lambda b: (-missing[b], b)) if missing else None,
        "censored": began_at in begins or ended_at in ends,
    }


def _missing(row: Row) -> set[int]:
    """Returns the brokers that are to be in the ISR and are not; KIP-352 passes over new ones."""
    return set(row["replicas"]) - set(row["isr"]) - set(row["adding"] or [])


def recoveries(silver: Silver) -> list[Row]:
    """Returns recovery, partition by partition."""
    begins, ends = _edges(silver)
    partitions: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in silver["partition_interval"]:
        partitions[row["topic"], row["topic_id"], row["partition"]].append(row)
    found = []
    for (topic, topic_id, partition), rows in partitions.items():
        ordered = sorted(rows, key=_order)
        episode: list[Row] = []
        before: Row | None = None
        for number, row in enumerate(ordered):
            after = ordered[number + 1] if number + 1 < len(ordered) else None
            if len(row["isr"]) < len(row["replicas"]) - len(row["adding"] or []):
                episode.append(row)
                goes_on = (
                    after is not None
                    and after["began_at"] == row["ended_at"]
                    and len(after["isr"]) < len(after["replicas"]) - len(after["adding"] or [])
                )
                if not goes_on:
                    key = {"topic": topic, "topic_id": topic_id, "partition": partition}
                    found.append({**key, **_recovery(episode, before, begins, ends)})
                    episode = []
            if not episode:
                before = row
    return found


def _order(row: Row) -> tuple[int, int, int]:
    return row["began_at"], row["ended_at"], row["version"]


def _recovery(episode: Sequence[Row], before: Row | None, begins: set[int], ends: set[int]) -> Row:
    began_at, last = episode[0]["began_at"], episode[-1]
    leaders = {row["leader"] for row in episode}
    has_before = before is not None and before["ended_at"] == began_at
    changed = before is not None and leaders != {before["leader"]}
    is_end = last["ended_by"] in ("open", "gap", "midnight")
    is_lost = last["ended_by"] in ("topic_error", "topic_absent")
    return {
        "began_at": began_at,
        "ended_at": last["ended_at"],
        "seconds": (last["ended_at"] - began_at) / 1e6,
        "brokers": sorted({b for row in episode for b in _missing(row)}),
        "leader_changed": changed if has_before else None,
        "begin_unseen": began_at in begins,
        "ended_by": last["ended_by"],
        "censored": (last["ended_at"] in ends and is_end) or is_lost,
    }


def quality(silver: Silver, min_isr: int | None = None) -> list[Row]:
    """Returns data_quality, without files that were set aside."""
    days: dict[int, Row] = {}

    def of(us: int) -> Row:
        day = us // DAY_US * DAY_US
        names = (
            "observations",
            "partial",
            "holes",
            "hole",
            "clocks_back",
            "disagreeing",
            "unknown",
        )
        return days.setdefault(day, {"day": day, "spread": None, **dict.fromkeys(names, 0)})

    # A recording that counts around the holes of a log has several rows.
    for seen_from, _, partial, ended_by in {
        (row["seen_from"], row["origin"], row["partial"], row["ended_by"])
        for row in silver["observation"]
    }:
        found = of(seen_from)
        found["observations"] += 1
        found["partial"] += partial
        found["clocks_back"] += ended_by == "clock"
    seen = _seen(silver)
    for before, after in zip(seen, seen[1:], strict=False):
        begin, end = before["counts_to"], after["counts_from"]
        while begin < end:
            until = min(end, (begin // DAY_US + 1) * DAY_US)
            of(begin)["holes"] += 1
            of(begin)["hole"] += until - begin
            begin = until
    for row in silver["leader_change"]:
        if row["spread_us"] is not None and row["observed_at"] // DAY_US * DAY_US in days:
            found = of(row["observed_at"])
            found["disagreeing"] += row["spread_us"] > 0
            found["spread"] = max(found["spread"] or 0, row["spread_us"])
    for row in silver["partition_interval"]:
        if row["min_isr"] is None and min_isr is None:
            of(row["began_at"])["unknown"] += row["ended_at"] - row["began_at"]
    return [
        {
            "day": row["day"],
            "observations": row["observations"],
            "partial": row["partial"],
            "holes": row["holes"],
            "hole_minutes": row["hole"] / 60e6,
            "files_aside": 0,
            "clocks_back": row["clocks_back"],
            "epochs_disagreeing": row["disagreeing"],
            "disagreement_seconds": None if row["spread"] is None else row["spread"] / 1e6,
            "unknown_min_isr": row["unknown"] / 60e6,
        }
        for row in days.values()
    ]
