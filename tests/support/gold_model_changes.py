"""Measures of gold by naive walks over silver: churn, flaps, balance and reassignments.

Each function takes the rows of one cluster's silver, with times in microseconds since 1970.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import median
from typing import Any

from gold_model import DAY_US, Row, Silver, hours

__all__ = ["balance", "churn", "flaps", "reassignments"]


def churn(silver: Silver) -> list[Row]:
    """Returns churn_day, change by change."""
    found: dict[tuple[Any, ...], Row] = {}

    def of(day: int, kind: str, broker: int | None, topic: str | None) -> Row:
        names = ("gained", "lost", "kept", "elections", "unseen_elections", "unclean")
        key = {"day": day, "kind": kind, "broker": broker, "topic": topic}
        row: Row = {**key, **dict.fromkeys(names, 0)}
        return found.setdefault((day, kind, broker, topic), row)

    for row in silver["leader_change"]:
        day = row["observed_at"] // DAY_US * DAY_US
        if row["elections"] == 0 and row["new_leader_epoch"] != row["old_leader_epoch"]:
            continue
        old, new, elections = row["old_leader"], row["new_leader"], row["elections"] or 0
        wholes = [of(day, "topic", None, row["topic"]), of(day, "cluster", None, None)]
        winner = [of(day, "broker", new, None)] if new is not None else []
        loser = [of(day, "broker", old, None)] if old is not None and old != new else []
        for each in (*wholes, *winner):
            each["elections"] += elections
            each["unseen_elections"] += max(elections - 1, 0)
            each["kept"] += new is not None and old == new
            each["gained"] += new is not None and old != new
        for each in (*wholes, *loser):
            each["lost"] += old is not None and old != new
    for row in silver["change"]:
        if row["kind"] == "unclean_election":
            day = row["observed_at"] // DAY_US * DAY_US
            about = (("broker", row["broker"], None), ("topic", None, row["topic"]))
            for kind, broker, topic in (*about, ("cluster", None, None)):
                of(day, kind, broker, topic)["unclean"] += 1
    told = [row for row in silver.get("broker_interval", ()) if row["fenced"] is not None]
    logged = {r["began_at"] // DAY_US * DAY_US for r in (*silver["controller"], *told) if r["us"]}
    for row in found.values():
        row["unclean"] = row["unclean"] if row["day"] in logged else None
    return list(found.values())


def _partitions(silver: Silver) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """Yields each partition with its intervals in order, without those of no time."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in silver["partition_interval"]:
        if row["began_at"] < row["ended_at"]:
            found[row["topic"], row["topic_id"], row["partition"]].append(row)
    for (topic, topic_id, partition), rows in found.items():
        key = {"topic": topic, "topic_id": topic_id, "partition": partition}
        yield key, sorted(rows, key=lambda row: row["began_at"])


def _stretches(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yields the intervals of a partition between two holes."""
    stretch: list[Row] = []
    for row in rows:
        if stretch and stretch[-1]["ended_at"] != row["began_at"]:
            yield stretch
            stretch = []
        stretch.append(row)
    if stretch:
        yield stretch


def flaps(silver: Silver, flap_seconds: int) -> list[Row]:
    """Returns isr_flap_day."""
    away: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for key, every in _partitions(silver):
        for rows in _stretches(every):
            for number, row in enumerate(rows[1:], 1):
                before = rows[number - 1]
                for broker in set(row["replicas"]) & set(before["replicas"]) & set(before["isr"]):
                    if broker in row["isr"]:
                        continue
                    us = _back_after(rows[number:], broker)
                    if us is not None and us <= flap_seconds * 1_000_000:
                        day = row["began_at"] // DAY_US * DAY_US
                        away[day, broker, key["topic"]].append(us)
    return [
        {
            "day": day,
            "broker": broker,
            "topic": topic,
            "times": len(times),
            "median_seconds": median(times) / 1e6,
        }
        for (day, broker, topic), times in away.items()
    ]


def _back_after(rows: Sequence[Row], broker: int) -> int | None:
    """Returns after how many microseconds a broker is in the ISR again; None if it is not seen."""
    for row in rows:
        if broker not in row["replicas"]:
            return None
        if broker in row["isr"]:
            return int(row["began_at"] - rows[0]["began_at"])
    return None


def balance(silver: Silver) -> list[Row]:
    """Returns balance_hour, without racks."""
    observed: dict[int, int] = defaultdict(int)
    for row in silver["observation"]:
        if row["counts_from"] is not None:
            for hour, us in hours({"began_at": row["counts_from"], "ended_at": row["counts_to"]}):
                observed[hour] += us
    sums: dict[int, dict[int | None, Row]] = defaultdict(dict)

    def of(hour: int, broker: int | None) -> Row:
        names = ("led", "held", "preferred", "by_others", "listed")
        return sums[hour].setdefault(broker, dict.fromkeys(names, 0))

    for row in silver["partition_interval"]:
        for hour, us in hours(row):
            of(hour, row["leader"])["led"] += us
            first = of(hour, row["replicas"][0])
            is_preferred = row["replicas"][0] not in (row["adding"] or ())
            first["preferred"] += us * is_preferred
            first["by_others"] += us * (is_preferred and row["leader"] != row["replicas"][0])
            for broker in row["replicas"]:
                of(hour, broker)["held"] += us
    for row in silver["broker_interval"]:
        for hour, us in () if row["fenced"] else hours(row):
            of(hour, row["broker"])["listed"] += us
    found: list[Row] = []
    for hour, brokers in sums.items():
        if observed[hour]:
            found += _balance_of(hour, brokers, observed[hour])
    return found


def _balance_of(hour: int, brokers: dict[int | None, Row], us: int) -> Iterator[Row]:
    members = {
        b: r for b, r in brokers.items() if b is not None and (r["listed"] > 0 or r["led"] > 0)
    }
    every = {b: r for b, r in brokers.items() if b is not None and any(r.values())}
    led = sum(r["led"] for r in members.values())
    held = sum(r["held"] for r in members.values())
    for broker, row in every.items():
        counts = broker in members
        skew = (row["led"] * len(members) - led) / led if counts and led else None
        replica_skew = (row["held"] * len(members) - held) / held if counts and held else None
        yield {
            "hour": hour,
            "kind": "broker",
            "broker": broker,
            "observed": us / 60e6,
            **_averages(row, us),
            "skew": skew,
            "replica_skew": replica_skew,
            "max_to_mean": None,
            "variation": None,
            "leaderless": None,
            "brokers": None,
        }
    if not every:
        return
    names = ("led", "held", "preferred", "by_others", "listed")
    whole = {name: sum(row[name] for row in every.values()) for name in names}
    most = max(row["led"] for row in every.values())
    squares = sum(row["led"] ** 2 for row in every.values())
    spread = sqrt(float(len(members) * squares - led**2))
    yield {
        "hour": hour,
        "kind": "cluster",
        "broker": None,
        "observed": us / 60e6,
        **_averages(whole, us),
        "skew": None,
        "replica_skew": None,
        "max_to_mean": most * len(members) / led if led else None,
        "variation": spread / led if led else None,
        "leaderless": brokers.get(None, {"led": 0})["led"] / us,
        "brokers": whole["listed"] / us,
    }


def _averages(row: Row, us: int) -> Row:
    return {
        "leaders": row["led"] / us,
        "replicas": row["held"] / us,
        "preferred": row["preferred"] / us,
        "preferred_led_by_others": row["by_others"] / us,
    }


def reassignments(silver: Silver) -> list[Row]:
    """Returns reassignment; recordings of polls tell nothing but the replicas."""
    found: list[Row] = []
    for key, every in _partitions(silver):
        for rows in _stretches(every):
            found += [{**key, **row} for row in _moves(rows)]
    return found


def _is_moving(row: Row) -> bool:
    return bool(row["adding"] or row["removing"])


def _moves(rows: Sequence[Row]) -> Iterator[Row]:
    """Yields the reassignments of a partition between two holes."""
    for number, row in enumerate(rows):
        before = rows[number - 1] if number else None
        at = row["began_at"]
        if before is not None and _is_moving(row) and _is_moving(before):
            continue
        if _is_moving(row):
            yield _reassigned(rows[number:], before)
        elif before is not None and before["replicas"] != row["replicas"]:
            both = {"from_replicas": before["replicas"], "to_replicas": row["replicas"]}
            if row["adding"] is None:
                yield _move(at, None, "unknown", **both)
            elif not _is_moving(before):
                yield _move(at, at, "done", **both)


def _reassigned(rows: Sequence[Row], before: Row | None) -> Row:
    """Returns the reassignment with which these intervals begin."""
    first, count = rows[0], 1
    while count < len(rows) and _is_moving(rows[count]):
        count += 1
    last, after = rows[count - 1], rows[count] if count < len(rows) else None
    old = [each for each in first["replicas"] if each not in first["adding"]]
    both = {
        "from_replicas": old if before is None else before["replicas"],
        "to_replicas": [each for each in last["replicas"] if each not in last["removing"]],
    }
    if after is None:
        return _move(first["began_at"], None, "running", **both)
    outcome = "unknown"
    for name, then in (("cancelled", "from_replicas"), ("done", "to_replicas")):
        if sorted(after["replicas"]) == sorted(both[then]):
            outcome = name
    return _move(first["began_at"], last["ended_at"], outcome, **both)


def _move(began_at: int, ended_at: int | None, outcome: str, **replicas: list[int]) -> Row:
    seconds = None if ended_at is None else (ended_at - began_at) / 1e6
    row = {"began_at": began_at, "ended_at": ended_at, "seconds": seconds, "outcome": outcome}
    return {**row, **replicas}
