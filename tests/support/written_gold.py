"""Gold with the rows that a test has in memory, and random rows for it.

write_gold(tmp_path / "out", random_gold(seed))
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.layout import Parts, gold_file, write_layout
from rdmeta.pipeline.manifest import DayRecord, Manifest, entry_of, write_manifest
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.work import MadeMonth

__all__ = ["BEGIN", "HOSTILE", "Rows", "covered", "random_gold", "write_gold"]

Rows = dict[str, list[dict[str, Any]]]
BEGIN = datetime(2026, 10, 29, tzinfo=timezone.utc)
HOSTILE = ("<script>alert(1)</script>", "a|b`c*d_e[f](g)", "\u202eabc\x1b[31m", "x" * 249)
_KINDS = (
    *("leaderless", "under_replicated", "under_min_isr", "at_min_isr"),
    *("single_copy", "not_preferred", "reassigning", "rack_unsafe"),
)


def write_gold(out: Path, rows: Rows, names: Mapping[str, str] | None = None) -> Path:
    """Writes the files of gold with these rows, and their manifest; returns the folder."""
    store, manifest = Store(out), Manifest(names=dict(names or {}))
    parts: dict[tuple[str, str], Rows] = defaultdict(lambda: defaultdict(list))
    for name in rows:
        for row in rows[name]:
            month = f"{row[MEASURES[name].time]:%Y-%m}"
            parts[row["cluster_id"], month][name].append(row)
    for (cluster, month), found in parts.items():
        manifest.months.setdefault(cluster, {})[month] = MadeMonth("", month, None, None)
        for row in found["coverage_hour"]:
            manifest.days.setdefault(cluster, {})[f"{row['hour']:%Y-%m-%d}"] = DayRecord("", {})
        for name, measure in MEASURES.items():
            file = gold_file(name, cluster, month)
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            table = pa.Table.from_pylist(found[name], measure.schema)
            pq.write_table(table, out / file)
            manifest.files[file] = entry_of(store, file)
    write_layout(store, dict.fromkeys(sorted(manifest.months), Parts("month", 1)))
    write_manifest(store, manifest)
    return out


def covered(cluster: str, hours: int, begin: datetime = BEGIN) -> list[dict[str, Any]]:
    """Returns coverage_hour of hours that were observed whole."""
    whole = {"cluster_id": cluster, "observed": 60.0, "hole": 0.0, "holes": [], "origins": ["o"]}
    return [{**whole, "hour": begin + timedelta(hours=each)} for each in range(hours)]


def random_gold(seed: int, clusters: tuple[str, ...] = ("one", "two"), days: int = 5) -> Rows:
    """Returns random rows of all measures; what may be null sometimes is."""
    maker = _Maker(Random(seed), days)
    rows: Rows = {name: [] for name in MEASURES}
    for cluster in clusters:
        for name in MEASURES:
            made = getattr(maker, name, maker.long_rows)
            rows[name] += [{"cluster_id": cluster, **row} for row in made(name)]
    return rows


class _Maker:
    """Makes the rows of one cluster."""

    def __init__(self, random: Random, days: int) -> None:
        self.random, self.hours = random, 24 * days

    def moment(self) -> datetime:
        return BEGIN + timedelta(seconds=self.random.randrange(self.hours * 3600))

    def maybe(self, value: Any) -> Any:
        return None if self.random.random() < 0.3 else value

    def minutes(self, most: float = 60.0) -> float:
        us = self.random.choice((0, 1, self.random.randrange(round(most * 6e7))))
        return us / 6e7

    def some(self, count: int) -> range:
        return range(self.random.randrange(count))

    def coverage_hour(self, name: str) -> list[dict[str, Any]]:
        rows = covered("", self.hours)
        for row in self.random.sample(rows, self.hours // 3):
            row["hole"] = self.random.choice((60.0, self.minutes()))
            row["observed"] = 60.0 - row["hole"]
            reason = self.random.choice(("gap", "closed"))
            row["holes"] = [{"reason": reason, "minutes": row["hole"]}]
        return [{n: v for n, v in row.items() if n != "cluster_id"} for row in rows]

    def risk_hour(self, name: str) -> list[dict[str, Any]]:
        found = {}
        for _ in self.some(200):
            hour = self.moment().replace(minute=0, second=0)
            row = {kind: self.minutes(600) for kind in _KINDS}
            row |= {n: self.maybe(row[n]) for n in ("under_min_isr", "at_min_isr", "reassigning")}
            rest = dict.fromkeys(("unknown_min_isr", "unknown_reassigning", "unknown_racks"), 0.0)
            topic = self.random.choice(("orders", "clicks", *HOSTILE))
            rest |= {"observed": 60.0, "eff_is_exact": True}
            found[hour, topic] = {"hour": hour, "topic": topic, **row, **rest}
        return list(found.values())

    def balance_hour(self, name: str) -> list[dict[str, Any]]:
        rows, is_first = [], self.random.random() < 0.5
        for each in range(0, self.hours, self.random.choice((1, 5))):
            hour = {"hour": BEGIN + timedelta(hours=each), "observed": 0.1 + self.minutes(59)}
            numbers = ("leaders", "replicas", "preferred", "preferred_led_by_others", "variation")
            about: list[dict[str, Any]] = [{"kind": "cluster"}]
            # The last broker is gone for some days, or not there at first.
            brokers = (1, 2, 3) if (each < self.hours // 5) == is_first else (1, 2)
            about += [{"kind": "broker", "broker": broker} for broker in brokers]
            about += [{"kind": "rack", "rack": rack} for rack in ("east", None)]
            for kind in about:
                row = {n: self.random.random() * 9 for n in numbers}
                row["skew"] = self.maybe(self.random.random())
                row["max_to_mean"] = self.maybe(1 + self.random.random())
                rows.append({**hour, **kind, **row})
        return rows

    def data_quality(self, name: str) -> list[dict[str, Any]]:
        counts = ("observations", "partial", "holes", "files_aside", "clocks_back")
        return [
            {
                "day": day,
                **{each: self.random.randrange(3) for each in (*counts, "epochs_disagreeing")},
                "hole_minutes": self.minutes(),
                "unknown_min_isr": self.minutes(),
                "disagreement_seconds": self.maybe(float(self.random.randrange(9))),
            }
            for day in self.days()
        ]

    def days(self) -> list[datetime]:
        return [BEGIN + timedelta(days=each) for each in range(self.hours // 24)]

    def churn_day(self, name: str) -> list[dict[str, Any]]:
        rows = []
        counts = ("gained", "lost", "kept", "elections", "unseen_elections")
        for day in self.days():
            for kind, broker in (("cluster", None), ("broker", 1), ("broker", 4)):
                row = {each: self.random.randrange(5) for each in counts}
                unclean = self.maybe(self.random.randrange(2))
                rows.append({"day": day, "kind": kind, "broker": broker, **row, "unclean": unclean})
        return rows

    def isr_flap_day(self, name: str) -> list[dict[str, Any]]:
        return [
            {"day": day, "broker": broker, "topic": "orders", "times": 2, "median_seconds": 1.5}
            for day in self.days()
            for broker in (1, 2)
            if self.random.random() < 0.4
        ]

    def broker_day(self, name: str) -> list[dict[str, Any]]:
        rows = []
        for day in self.days():
            for broker in (1, 2, 3):
                away = self.minutes(1440)
                row = {"day": day, "broker": broker, "up": 1440 - away, "away": away}
                row |= {each: self.maybe(self.minutes()) for each in ("fenced", "shutting_down")}
                row |= {each: self.random.randrange(2) for each in ("restarts", "preferred_open")}
                row |= {"unclean_restarts": self.maybe(self.random.randrange(2))}
                row |= {"unknown_fenced": 0.0, "unknown_restarts": 0, "observed": 1440.0}
                seconds = sorted(self.random.randrange(9000) / 1000 for _ in self.some(3))
                rows.append({**row, "preferred_seconds": seconds})
        return rows

    def long_rows(self, name: str) -> list[dict[str, Any]]:
        """Returns rows with a begin and an end: incidents, recoveries and what was changed."""
        return [getattr(self, f"a_{name}")() for _ in self.some(60)]

    def times(self, longest: int = 90_000) -> dict[str, Any]:
        begin, us = self.moment(), self.random.randrange(longest * 1_000_000)
        return {"began_at": begin, "ended_at": begin + timedelta(microseconds=us)}

    def a_incident(self) -> dict[str, Any]:
        counts = {each: self.random.randrange(1, 9) for each in ("most", "partitions", "topics")}
        kind, broker = self.random.choice(_KINDS), self.maybe(self.random.randrange(1, 4))
        more = {"kind": kind, "minutes": self.minutes(9000), "broker": broker}
        return {**self.times(), **counts, **more, "censored": self.random.random() < 0.2}

    def a_recovery(self) -> dict[str, Any]:
        times = self.times(self.random.choice((30, 300, 3000, 30_000)))
        seconds = (times["ended_at"] - times["began_at"]).total_seconds()
        row = {"topic": self.random.choice(HOSTILE), "partition": self.random.randrange(3)}
        row |= {"brokers": [1, 3], "ended_by": "isr_changed", "seconds": seconds}
        flags = {each: self.random.random() < 0.2 for each in ("begin_unseen", "censored")}
        return {**times, **row, **flags}

    def a_reassignment(self) -> dict[str, Any]:
        times = self.times()
        outcome = self.random.choice(("done", "cancelled", "running", "unknown"))
        seconds = (times["ended_at"] - times["began_at"]).total_seconds()
        if outcome in ("running", "unknown"):
            times["ended_at"], seconds = None, None
        row = {"topic": "orders", "partition": 1, "from_replicas": [1], "to_replicas": [2]}
        return {**times, **row, "seconds": seconds, "outcome": outcome}

    def a_topic_life(self) -> dict[str, Any]:
        times = self.times()
        ended = times["last_seen_at"] = times.pop("ended_at")
        row = {"topic": self.random.choice(HOSTILE), "partitions": self.random.randrange(1, 9)}
        row |= {"begin_seen": self.random.random() < 0.5, "end_seen": self.random.random() < 0.5}
        row |= {"ended_at": ended if row["end_seen"] else None, "ended_by": "topic_removed"}
        return {**times, **row, "partitions_added": self.random.randrange(2)}

    def a_config_change(self) -> dict[str, Any]:
        row = {"resource_type": "topic", "resource": self.random.choice(("", "orders"))}
        row |= {"key": "min.insync.replicas", "old_value": self.maybe("1"), "new_value": "2"}
        return {"observed_at": self.moment(), **row}

    def a_controller(self) -> dict[str, Any]:
        times = self.times()
        seconds = (times["ended_at"] - times["began_at"]).total_seconds()
        epoch, broker = self.random.randrange(9), self.maybe(self.random.randrange(3))
        return {**times, "seconds": seconds, "epoch": epoch, "broker": broker, "censored": False}
