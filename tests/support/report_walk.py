"""The tables and strips of a report by a naive walk over the rows of gold, by their titles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from statistics import quantiles
from typing import Any

from written_gold import Rows

from rdmeta.report.wording import duration

__all__ = ["Walk"]

Row = dict[str, Any]
KINDS = {
    "leaderless": ("without a leader", "L"),
    "under_min_isr": ("under min ISR", "M"),
    "under_replicated": ("under-replicated", "U"),
    "single_copy": ("with a single copy", "S"),
    "at_min_isr": ("at min ISR", "A"),
    "not_preferred": ("not led by the preferred replica", "P"),
    "reassigning": ("being reassigned", "R"),
    "rack_unsafe": ("on too few racks", "K"),
}
REASONS = {"gap": "no poll", "closed": "recorder stopped"}
GRAVEST = tuple(KINDS)[:3]
SHOWN = tuple(KINDS)[:5]


def minutes(value: float | None) -> float | None:
    """Returns minutes with two digits, above 0 unless they are 0."""
    return None if value is None else max(round(value, 2), 0.01 if value > 1e-9 else 0.0)


def total(values: Iterable[Any]) -> Any:
    """Returns the sum of what is known, None if nothing is."""
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def known(rows: list[Row], kind: str) -> Any:
    """Returns a sum of risk; None if it would be 0, and a part of it is not known.

    With all replicas in sync no partition is under its min ISR, known or not.
    """
    full = [row for row in rows if kind == "under_min_isr" and not row["under_replicated"]]
    values = [row[kind] or 0 if row in full else row[kind] for row in rows]
    return total(values) or (None if None in values else 0)


def most(values: Iterable[Any]) -> Any:
    return max((each for each in values if each is not None), default=None)


def stamp(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


class Walk:
    """What the rows of gold say of the time from `since` to before `until`, in cells of `hours`."""

    def __init__(
        self, gold: Rows, names: dict[str, str], since: datetime, until: datetime, hours: int
    ) -> None:
        self.gold, self.names, self.since, self.until = gold, names, since, until
        self.cell = timedelta(hours=hours)
        self.bins = math.ceil((until - since) / self.cell)

    def inside(self, name: str, time: str = "hour", **values: Any) -> list[Row]:
        return [
            row
            for row in self.gold[name]
            if self.since <= row[time] < self.until and values.items() <= row.items()
        ]

    def reaching(self, name: str, end: str = "ended_at", **values: Any) -> list[Row]:
        return [
            row
            for row in self.gold[name]
            if row["began_at"] < self.until
            and (row[end] > self.since or row["began_at"] >= self.since)
            and values.items() <= row.items()
        ]

    def bin(self, time: datetime) -> int:
        return (time - self.since) // self.cell

    def seen(self, cluster: str) -> list[float]:
        found = [0.0] * self.bins
        for row in self.inside("coverage_hour", cluster_id=cluster):
            found[self.bin(row["hour"])] += row["observed"]
        return found

    def fleet(self) -> list[Row]:
        rows = []
        length = (self.until - self.since) / timedelta(minutes=1)
        for cluster, name in self.names.items():
            observed = sum(self.seen(cluster))
            risk = self.inside("risk_hour", cluster_id=cluster)
            if risk:
                sums = {kind: known(risk, kind) for kind in GRAVEST}
            else:
                sums = dict.fromkeys(GRAVEST, 0 if observed else None)
            count = sum(
                row["kind"] in GRAVEST for row in self.reaching("incident", cluster_id=cluster)
            )
            churn = self.inside("churn_day", "day", cluster_id=cluster, kind="cluster")
            slow = most(row["seconds"] for row in self.reaching("recovery", cluster_id=cluster))
            row = {"cluster": name, "cluster_id": cluster, "observed": round(observed / length, 4)}
            row |= {kind: minutes(sums[kind]) for kind in GRAVEST}
            row |= {"incidents": count if observed else None, "slowest_seconds": slow}
            row |= {"elections": total(each["elections"] for each in churn)}
            row |= {"unclean": total(each["unclean"] for each in churn)}
            row["skew"] = self.skew(cluster, range(self.bins))
            rows.append((2 * observed < length, [-(sums[kind] or 0) for kind in GRAVEST], row))
        rows.sort(key=lambda each: each[:2])
        places = range(1, len(rows) + 1)
        return [{"rank": None if r[0] else at, **r[2]} for at, r in zip(places, rows, strict=True)]

    def fleet_days(self) -> dict[str, tuple[list[float | None], str]]:
        """Returns the largest of the three kinds on each day, and a letter for the gravest."""
        found = {}
        for cluster, name in self.names.items():
            cells: list[float | None] = []
            letters = ""
            for first in range(0, self.bins, 24):
                day = range(first, first + 24)
                rows = [
                    row
                    for row in self.inside("risk_hour", cluster_id=cluster)
                    if self.bin(row["hour"]) in day
                ]
                sums = {kind: total(row[kind] for row in rows) or 0 for kind in GRAVEST}
                seen = sum(self.seen(cluster)[first : first + 24])
                cells.append(minutes(max(sums.values())) if seen else None)
                letters += next((KINDS[kind][1] for kind in GRAVEST if sums[kind] > 1e-8), " ")
            found[name] = cells, letters
        return found

    def skew(self, cluster: str, bins: Iterable[int]) -> Any:
        rows = [
            row
            for row in self.inside("balance_hour", cluster_id=cluster, kind="cluster")
            if row["max_to_mean"] is not None and self.bin(row["hour"]) in bins
        ]
        if not rows:
            return None
        weighted = sum((row["max_to_mean"] - 1) * row["observed"] for row in rows)
        return round(weighted / sum(row["observed"] for row in rows), 4)

    def incident_kinds(self) -> list[Row]:
        rows = []
        for kind, (words, letter) in KINDS.items():
            found = self.reaching("incident", kind=kind)
            if found:
                longest = max((row["ended_at"] - row["began_at"]) for row in found)
                counts = {"clusters": len({row["cluster_id"] for row in found})}
                counts |= {"incidents": len(found), "censored": sum(r["censored"] for r in found)}
                sums = {"minutes": minutes(sum(row["minutes"] for row in found))}
                sums["longest_seconds"] = round(longest.total_seconds(), 3)
                rows.append({"kind": words, "letter": letter, **counts, **sums})
        return rows

    def gravest(self) -> list[Row]:
        found = [row for row in self.reaching("incident") if row["kind"] in SHOWN]
        found.sort(key=lambda r: (SHOWN.index(r["kind"]), -r["minutes"], r["began_at"]))
        same = ("kind", "most", "partitions", "topics", "broker", "censored")
        return [
            {
                **{name: row[name] for name in same},
                "cluster": self.names[row["cluster_id"]],
                "began_at": stamp(row["began_at"]),
                "ended_at": stamp(row["ended_at"]),
                "minutes": minutes(row["minutes"]),
            }
            | {"also": self.also(row)}
            for row in found[:10]
        ]

    def also(self, incident: Row) -> dict[str, Any]:
        """Returns how much of what else there is in the time of an incident, and on its days."""
        begin, end = max(incident["began_at"], self.since), min(incident["ended_at"], self.until)
        cluster = {"cluster_id": incident["cluster_id"]}
        day = begin.replace(hour=0, minute=0, second=0, microsecond=0)

        def days(name: str, **values: Any) -> list[Row]:
            rows = self.inside(name, "day", **cluster, **values)
            return [row for row in rows if day <= row["day"] < end]

        def within(name: str, time: str) -> list[Row]:
            rows = self.inside(name, time, **cluster)
            return [row for row in rows if begin <= row[time] <= end]

        mine = days("broker_day", broker=incident["broker"])
        moves = [row for row in self.gold["reassignment"] if cluster.items() <= row.items()]
        counts = {
            "reassignment": sum(
                row["began_at"] < end
                and ((row["ended_at"] or row["began_at"]) >= begin or row["outcome"] == "running")
                for row in moves
            ),
            "term": sum(row["broker"] is not None for row in within("controller", "began_at")),
            "configuration": len(within("config_change", "observed_at")),
            "restart": total(row["restarts"] for row in mine),
            "unclean election": total(row["unclean"] for row in days("churn_day", kind="cluster")),
        }
        kinds = {
            row["kind"]
            for row in self.reaching("incident", **cluster)
            if row["began_at"] < end and row["ended_at"] > begin
        }
        others = {KINDS[kind][0] for kind in kinds & {*SHOWN} - {incident["kind"]}}
        found = {noun: count for noun, count in counts.items() if count}
        return {**found, "kinds": others, "away": total(row["away"] for row in mine) or 0}

    def incident_strips(self) -> dict[str, tuple[list[float | None], str]]:
        """Returns the cells and the letters of each cluster with incidents."""
        found = {}
        for cluster, name in self.names.items():
            cells: list[float | None] = []
            letters = ""
            for each, seen in enumerate(self.seen(cluster)):
                begin = self.since + each * self.cell
                times: dict[str, timedelta] = defaultdict(timedelta)
                for row in self.reaching("incident", cluster_id=cluster):
                    left = max(begin, row["began_at"])
                    end = min(begin + self.cell, row["ended_at"], self.until)
                    if row["kind"] in SHOWN and end > left:
                        times[row["kind"]] += end - left
                kind = next((kind for kind in SHOWN if kind in times), None)
                letters += KINDS[kind][1] if kind else " "
                time = times[kind] / timedelta(minutes=1) if kind else 0.0
                cells.append(minutes(time) if seen else None)
            if letters.strip():
                found[name] = cells, letters
        return found

    def topic_strips(self, kind: str) -> list[tuple[list[str], float | None, list[float | None]]]:
        """Returns labels, sums and cells of the topics at risk of a kind, worst first."""
        cells: dict[Any, list[Any]] = defaultdict(lambda: [[] for _ in range(self.bins)])
        for row in self.inside("risk_hour"):
            of_topic = cells[row["cluster_id"], row["topic"]]
            of_topic[self.bin(row["hour"])].append(row[kind])
        rows = []
        for (cluster, topic), lists in cells.items():
            every = total(value for values in lists for value in values)
            if every:
                sums = [minutes(total(values)) if values else 0 for values in lists]
                shown = [s if o else None for s, o in zip(sums, self.seen(cluster), strict=True)]
                label = [self.names[cluster], topic]
                rows.append((-every, cluster, topic, (label, minutes(every), shown)))
        return [row[3] for row in sorted(rows, key=lambda row: row[:3])]

    def topics(self) -> list[Row]:
        keys = {(row["cluster_id"], row["topic"]) for row in self.inside("risk_hour")}
        rows = []
        for cluster, topic in keys:
            of = self.inside("risk_hour", cluster_id=cluster, topic=topic)
            sums = {kind: known(of, kind) for kind in KINDS}
            named = {"cluster": self.names[cluster], "topic": topic}
            rows.append({**named, **{kind: minutes(value) for kind, value in sums.items()}})
        return rows

    def brokers(self) -> list[Row]:
        names = ("broker_day", "isr_flap_day", "churn_day")
        found = {
            (row["cluster_id"], row["broker"])
            for name in names
            for row in self.inside(name, "day")
            if row["broker"] is not None
        }
        rows = []
        for cluster, broker in found:
            who = {"cluster_id": cluster, "broker": broker}
            days, flaps, churn = (self.inside(name, "day", **who) for name in names)
            row = {"cluster": self.names[cluster], "broker": broker}
            row |= {n: minutes(total(d[n] for d in days)) for n in ("away", "fenced")}
            sums = ("restarts", "unclean_restarts", "preferred_open")
            row |= {each: total(day[each] for day in days) for each in sums}
            row |= {"flaps": sum(each["times"] for each in flaps)}
            row |= {"lost": sum(each["lost"] for each in churn)}
            row["preferred_seconds"] = most(s for day in days for s in day["preferred_seconds"])
            troubles = ("away", "unclean_restarts", "restarts", "flaps", "lost", "preferred_open")
            if any(row[each] for each in troubles):
                rows.append(row)
        return rows

    def balance(self, kind: str) -> list[Row]:
        rows: dict[Any, Row] = {}
        names = ("leaders", "replicas", "skew")[: 3 if kind == "broker" else 2]
        none = dict.fromkeys(f"{name}_{edge}" for name in names for edge in ("first", "last"))
        for cluster, name in self.names.items():
            mine = self.inside("balance_hour", cluster_id=cluster)
            days = sorted({row["hour"].date() for row in mine})
            for edge, day in zip(("first", "last"), (days[0], days[-1]), strict=True):
                of_day = [row for row in mine if row["hour"].date() == day]
                whole = sum(row["observed"] for row in of_day if row["kind"] == "cluster")
                for row in of_day:
                    if row["kind"] != kind:
                        continue
                    who = "none" if row.get(kind) is None else str(row[kind])
                    same = [each for each in of_day if _who(each) == _who(row)]
                    target = rows.setdefault((name, who), {"cluster": name, "who": who, **none})
                    for what in ("leaders", "replicas"):
                        sums = sum(each[what] * each["observed"] for each in same)
                        target[f"{what}_{edge}"] = round(sums / whole, 2)
                    told = [each for each in same if each["skew"] is not None]
                    weights = sum(each["observed"] for each in told)
                    skew = sum(each["skew"] * each["observed"] for each in told)
                    if kind == "broker":
                        target[f"skew_{edge}"] = round(skew / weights, 4) if told else None
        return list(rows.values())

    def recoveries(self) -> list[Row]:
        rows = []
        for cluster in (None, *self.names):
            found = [r for r in self.reaching("recovery") if cluster in (None, r["cluster_id"])]
            seconds = [row["seconds"] for row in found]
            edges = (0, 60, 600, 3600, 21600, math.inf)
            names = ("under_minute", "under_10_minutes", "under_hour", "under_6_hours", "longer")
            row: Row = {"cluster": self.names[cluster] if cluster else "all clusters"}
            for name, low, high in zip(names, edges, edges[1:], strict=False):
                row[name] = sum(low <= each < high for each in seconds)
            whole = [r["seconds"] for r in found if not r["censored"] and not r["begin_unseen"]]
            cuts = quantiles(whole, n=20, method="inclusive") if len(whole) > 1 else whole * 19
            row |= {"median": round(cuts[9], 3) if cuts else None}
            row |= {"p95": round(cuts[18], 3) if cuts else None, "slowest": most(seconds)}
            row |= {"episodes": len(found), "censored": len(found) - len(whole)}
            rows.append(row)
        return rows

    def slowest(self) -> list[Row]:
        found = sorted(self.reaching("recovery"), key=lambda row: -row["seconds"])[:10]
        same = ("topic", "partition", "seconds", "brokers")
        return [
            {
                **{name: row[name] for name in same},
                "cluster": self.names[row["cluster_id"]],
                "began_at": stamp(row["began_at"]),
                "ended_by": "ISR changed",
                "censored": row["censored"] or row["begin_unseen"],
            }
            for row in found
        ]

    def unseen(self) -> list[Row]:
        rows = []
        for cluster, name in self.names.items():
            hours = self.inside("coverage_hour", cluster_id=cluster)
            quality = self.inside("data_quality", "day", cluster_id=cluster)
            length = (self.until - self.since) / timedelta(minutes=1)
            row = {"cluster": name, "observed": round(sum(self.seen(cluster)) / length, 4)}
            row["hole_minutes"] = minutes(sum(hour["hole"] for hour in hours))
            reasons: dict[str, int] = defaultdict(int)
            for each in (each for hour in hours for each in hour["holes"]):
                reasons[each["reason"]] += round(each["minutes"] * 6e7)
            times = sorted(((-us, each) for each, us in reasons.items() if us))
            words = [f"{REASONS[each]} {duration(-us / 1e6)}" for us, each in times]
            row["reasons"] = ", ".join(words) or "none"
            counts = ("files_aside", "clocks_back")
            row |= {each: sum(day[each] for day in quality) for each in counts}
            row["disagreement_seconds"] = most(day["disagreement_seconds"] for day in quality)
            row["unknown_min_isr"] = minutes(sum(day["unknown_min_isr"] for day in quality))
            rows.append(row)
        return rows

    def changes(self) -> dict[str, list[Row]]:
        """Returns the rows of each kind of change."""
        moves: dict[Any, list[Row]] = defaultdict(list)
        for row in self.gold["reassignment"]:
            is_late = (row["ended_at"] or row["began_at"]) >= self.since
            if row["began_at"] < self.until and (is_late or row["outcome"] == "running"):
                key = row["began_at"], row["cluster_id"], row["topic"], row["outcome"]
                moves[key].append(row)
        moved = [
            self.change(*key, partitions=len(rows), seconds=most(row["seconds"] for row in rows))
            for key, rows in moves.items()
        ]
        lives = []
        for row in self.gold["topic_life"]:
            is_whole = row["begin_seen"] and row["end_seen"]
            seconds = (row["ended_at"] - row["began_at"]).total_seconds() if is_whole else None
            about = {"partitions": row["partitions"], "seconds": seconds}
            name = row["cluster_id"], row["topic"]
            if row["begin_seen"] and self.since <= row["began_at"] < self.until:
                lives.append(self.change(row["began_at"], *name, "created", **about))
            if row["end_seen"] and self.since <= row["ended_at"] < self.until:
                lives.append(self.change(row["ended_at"], *name, "topic removed", **about))
            if row["partitions_added"] and row in self.reaching("topic_life", "last_seen_at"):
                month = row["began_at"].replace(day=1, hour=0, minute=0, second=0, microsecond=0)
                words = f"grew by {row['partitions_added']} in that month"
                lives.append(self.change(month, *name, words, **{**about, "seconds": None}))
        configs = [
            self.change(
                row["observed_at"],
                row["cluster_id"],
                of=f"topic {row['resource']}" if row["resource"] else "all topics",
                key=row["key"],
                old_value=row["old_value"] or "not set",
                new_value=row["new_value"],
            )
            for row in self.inside("config_change", "observed_at")
        ]
        terms: dict[Any, list[Row]] = defaultdict(list)
        for row in self.gold["controller"]:
            terms[row["cluster_id"], row["broker"], row["epoch"]].append(row)
        led = []
        for (cluster, broker, epoch), rows in terms.items():
            begin, end = min(r["began_at"] for r in rows), max(r["ended_at"] for r in rows)
            if begin < self.until and (end > self.since or begin >= self.since):
                about = {"epoch": epoch, "seconds": sum(row["seconds"] for row in rows)}
                node = "none" if broker is None else f"node {broker}"
                led.append(self.change(begin, cluster, broker=node, censored=False, **about))
        found = {"Reassignments": moved, "Topics that came, grew and went": lives}
        found |= {"Changes of configurations": configs, "Terms of controllers": led}
        return found

    def change(self, began: datetime, cluster: str, *texts: str, **values: Any) -> Row:
        named = dict(zip(("topic", "outcome"), texts, strict=False))
        return {"began_at": stamp(began), "cluster": self.names[cluster], **named, **values}


def _who(row: Row) -> tuple[Any, ...]:
    return row["kind"], row.get("broker"), row.get("rack")
