"""The scenarios: what happens to clusters, and when; and the files that tell of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from rdmeta.generate.cluster import (
    CONTROLLERS,
    DAY_US,
    HOUR_US,
    MINUTE_US,
    SECOND_US,
    ClusterEvent,
    GeneratedCluster,
    Ids,
    WatchPlan,
)
from rdmeta.generate.controllers import write_logs
from rdmeta.generate.recordings import record
from rdmeta.model import Broker

_NAMES = ("orders", "payments", "clicks", "shipments", "refunds", "users", "carts", "prices")
# Two replicas, on the last two brokers: it is what a broker's loss hurts most.
SESSIONS = "sessions"
_RACKS = ("rack-a", "rack-b", "rack-c")


class Sizes(NamedTuple):
    """How much is generated."""

    days: int
    clusters: int = 3
    brokers: int = 6
    topics: int = 8
    partitions: int = 6


class ScenarioPlan:
    """One cluster, and what is planned for it; times are those of the scenario."""

    def __init__(
        self, number: int, seed: str, begin: datetime, sizes: Sizes, is_skewed: bool = False
    ) -> None:
        random = Random(f"{seed}-{number}")
        self.number, self.begin, self.sizes = number, begin, sizes
        self.cluster = cluster = GeneratedCluster(f"cluster-{number + 1}", random)
        self.brokers = list(range(1, sizes.brokers + 1))
        for each in self.brokers:
            host = f"broker-{each}.{cluster.cluster_id}.example.com"
            cluster.put("set_broker", Broker(each, host, 9092, self.rack(each)))
        count = min(3, sizes.brokers - 1)
        for topic in range(sizes.topics):
            name = _NAMES[topic] if topic < len(_NAMES) else f"topic-{topic + 1}"
            first = topic * sizes.partitions
            replicas = [self._replicas(first + p, count) for p in range(sizes.partitions)]
            if is_skewed:
                replicas = [tuple(sorted(ids, key=lambda b: b > 2)) for ids in replicas]
            cluster.create(name, replicas, min(2, count))
        last = (self.brokers[-1], self.brokers[-2])
        cluster.create(SESSIONS, [last] * sizes.partitions, 1)

    def _replicas(self, place: int, count: int) -> Ids:
        size = len(self.brokers)
        return tuple((place + each) % size + 1 for each in range(count))

    def rack(self, broker: int) -> str:
        return _RACKS[(broker - 1) % len(_RACKS)]

    def note(
        self,
        begin: int,
        end: int,
        kind: str,
        brokers: list[int] | None = None,
        topics: list[str] | None = None,
    ) -> None:
        """Notes what is done, at the moment at which it begins."""

        def noted() -> None:
            found = self.cluster.topics_on(*brokers or ()) if topics is None else topics
            self.cluster.events.append(ClusterEvent(begin, end, kind, brokers or [], found))

        self.cluster.at(begin, noted)

    def day_of(self, weekday: int) -> int:
        """Returns the day that is a weekday, Monday is 0; the middle one if there is none."""
        for day in range(self.sizes.days):
            if (self.begin + timedelta(days=day)).weekday() == weekday:
                return day
        return self.sizes.days // 2

    # ---- what happens ---------------------------------------------------------------------------

    def rolling_restart(self, at: int) -> None:
        """Restarts one broker after the other, in good order, and then the controller."""
        cluster, when = self.cluster, at
        for each in self.brokers:
            cluster.at(when, cluster.stop, each)
            cluster.at(when + 50 * SECOND_US, cluster.start, each)
            when += 6 * MINUTE_US
        cluster.at(when, cluster.put, "set_controller", CONTROLLERS[1])
        self.note(at, when, "rolling_restart", self.brokers)

    def broker_lost(self, at: int, broker: int, minutes: float) -> None:
        end = at + round(minutes * MINUTE_US)
        self.cluster.at(at, self.cluster.kill, broker)
        self.cluster.at(end, self.cluster.start, broker)
        self.note(at, end, "broker_lost", [broker])

    def rack_lost(self, at: int, rack: str, minutes: float) -> None:
        """Loses the brokers of a rack within seconds; they are back one after the other."""
        cluster, end = self.cluster, at + round(minutes * MINUTE_US)
        there = [each for each in self.brokers if self.rack(each) == rack]
        for place, each in enumerate(there):
            delay = place * 1400 * 1000
            cluster.at(at + delay, cluster.kill, each)
            cluster.at(end + 20 * delay, cluster.start, each)
        self.note(at, end, "rack_lost", there)

    def slow_follower(self, at: int, broker: int, minutes: float) -> None:
        end = at + round(minutes * MINUTE_US)
        self.cluster.at(at, self.cluster.slow_down, broker, end)
        self.note(at, end, "slow_follower", [broker])

    def unclean_election(self, at: int) -> None:
        """Loses both replicas of a topic, and elects the one that is not in sync."""
        cluster = self.cluster
        first, second = self.brokers[-1], self.brokers[-2]
        cluster.at(at, cluster.kill, first)
        cluster.at(at + 5 * MINUTE_US, cluster.kill, second)
        cluster.at(at + 14 * MINUTE_US, cluster.start, first)

        def elect() -> None:
            for number, each in enumerate(cluster.state.topics[SESSIONS].partitions):
                if each.leader is None:
                    cluster.elect_uncleanly(SESSIONS, number, first)

        cluster.at(at + 17 * MINUTE_US, elect)
        cluster.at(at + 40 * MINUTE_US, cluster.start, second)
        end = at + 17 * MINUTE_US
        self.note(at, end, "unclean_election", [first, second], [SESSIONS])

    def rebalance(self, at: int, moved: int) -> None:
        """Moves replicas of some partitions to the next broker; the last move is cancelled.

        A log ends with its last change, so a controller is elected behind it: then the log has its
        outcome.
        """
        cluster = self.cluster
        cluster.at(at + 30 * MINUTE_US + 2 * MINUTE_US * moved, self._lead_anew)

        def begin() -> None:
            parts = [each for each in cluster.partitions() if each[0] != SESSIONS][:moved]
            for place, (name, number, each) in enumerate(parts):
                free = [b for b in self.brokers if b not in each.replicas]
                target = (*each.replicas[:-1], free[place % len(free)])
                is_last = place == len(parts) - 1
                start = cluster.now + place * 2 * MINUTE_US
                end = start + round(cluster.random.uniform(3, 9) * MINUTE_US)
                cluster.at(start, cluster.move, name, number, target)
                cluster.at(end, cluster.end_move, name, number, is_last)
                kind = "reassignment_cancelled" if is_last else "reassignment"
                there = sorted({*each.replicas, *target})
                cluster.events.append(ClusterEvent(start, end, kind, there, [name]))

        cluster.at(at, begin)

    def balance(self, at: int) -> None:
        """Gives each broker as many partitions to prefer; then the preferred ones lead."""
        cluster = self.cluster

        def begin() -> None:
            parts = [each for each in cluster.partitions() if each[0] != SESSIONS]
            for place, (name, number, each) in enumerate(parts):
                start = cluster.now + place * 20 * SECOND_US
                target = self._replicas(place, len(each.replicas))
                cluster.at(start, cluster.move, name, number, target)
                cluster.at(start + 3 * MINUTE_US, cluster.end_move, name, number)
            end = cluster.now + len(parts) * 20 * SECOND_US + 5 * MINUTE_US
            cluster.at(end, cluster.prefer, 0.0)
            topics = sorted({name for name, *_ in parts})
            cluster.events.append(ClusterEvent(cluster.now, end, "rebalance", self.brokers, topics))
            election = ClusterEvent(end, end, "preferred_election", self.brokers, topics)
            cluster.events.append(election)

        cluster.at(at, begin)

    def hole(self, begin: int, end: int) -> None:
        """Loses what recorders and controllers know of a time, in which a broker restarts."""
        cluster = self.cluster
        cluster.watches = [each._replace(holes=((begin, end),)) for each in cluster.watches]
        cluster.lost.append((begin, end))
        cluster.at(end - 8 * MINUTE_US, cluster.stop, 1)
        cluster.at(end - 7 * MINUTE_US, cluster.start, 1)

        # Controllers are elected right before and behind it: segments end there.
        for at in (begin - MINUTE_US, end + MINUTE_US):
            cluster.at(at, self._lead_anew)
        self.note(begin, end, "hole", [], [])

    def _lead_anew(self) -> None:
        """Begins another term of the same controller."""
        self.cluster.put("set_controller", self.cluster.state.controller)


# ---- the scenarios ------------------------------------------------------------------------------


def _quiet(plan: ScenarioPlan) -> None:
    day = (1 + plan.number) % plan.sizes.days
    plan.rolling_restart(day * DAY_US + 9 * HOUR_US + 12 * MINUTE_US)


def _bad_friday(plan: ScenarioPlan) -> None:
    if plan.number:
        _quiet(plan)
        return
    friday = plan.day_of(4)
    others = [day for day in range(plan.sizes.days) if day != friday] or [friday]
    at = friday * DAY_US
    size = len(plan.brokers)
    plan.slow_follower(at + 7 * HOUR_US + 20 * MINUTE_US, 4 % size + 1, 70)
    plan.broker_lost(at + 10 * HOUR_US + 5 * MINUTE_US, 2, 120)
    plan.rack_lost(at + 15 * HOUR_US + 10 * MINUTE_US, _RACKS[2], 25)
    plan.unclean_election(at + 18 * HOUR_US + 20 * MINUTE_US)
    plan.rebalance(others[-1] * DAY_US + 21 * HOUR_US, 8)
    hole = others[0] * DAY_US + 2 * HOUR_US
    plan.hole(hole, hole + 130 * MINUTE_US)


def _before_after(plan: ScenarioPlan) -> None:
    half = plan.sizes.days // 2 * DAY_US
    plan.note(0, half, "skewed_leaders", [1, 2])
    for week in (0, half):
        plan.rolling_restart(week + 9 * HOUR_US)
    plan.balance(half + 12 * HOUR_US)


def _dirty(plan: ScenarioPlan) -> None:
    cluster, days = plan.cluster, plan.sizes.days
    end = days * DAY_US
    killed = end // 2 + 5 * HOUR_US + 11 * MINUTE_US
    cluster.watches = [
        WatchPlan(killed=killed),
        WatchPlan(phase=19 * SECOND_US, skew=2 * SECOND_US),
    ]
    plan.note(0, end, "clocks_differ", [], [])
    plan.note(killed, end, "recorder_killed", [], [])
    cluster.create("legacy", [(1, 2), (2, 3)], None)
    plan.note(0, end, "unknown_min_isr", [], ["legacy"])
    for day in range(days):
        plan.broker_lost(day * DAY_US + 11 * HOUR_US, day % len(plan.brokers) + 1, 20)
    corrupt = 11 * HOUR_US
    cluster.corrupt.append(corrupt)
    plan.note(corrupt, DAY_US, "corrupt_segment", [], [])
    if days > 2:
        lost = (2 * DAY_US, 3 * DAY_US)
        cluster.lost.append(lost)
        plan.note(*lost, "lost_segment", [], [])


class Scenario(NamedTuple):
    """What happens in a scenario, for how many days, and whether leaders are skewed at first."""

    plan: Callable[[ScenarioPlan], None]
    days: int
    is_skewed: bool = False


SCENARIOS = {
    "quiet": Scenario(_quiet, 7),
    "bad-friday": Scenario(_bad_friday, 7),
    "before-after": Scenario(_before_after, 14, is_skewed=True),
    "dirty": Scenario(_dirty, 4),
}


def clusters(name: str, seed: int, begin: datetime, sizes: Sizes) -> list[GeneratedCluster]:
    """Returns the clusters of a scenario after all has happened."""
    scenario, found = SCENARIOS[name], []
    for number in range(sizes.clusters):
        plan = ScenarioPlan(number, f"{name}-{seed}", begin, sizes, scenario.is_skewed)
        scenario.plan(plan)
        plan.cluster.run(sizes.days * DAY_US)
        found.append(plan.cluster)
    return found


def write(name: str, seed: int, begin: datetime, sizes: Sizes, out: Path) -> dict[str, Any]:
    """Writes history, logs and the truth of a scenario; returns what truth.json says."""
    end = sizes.days * DAY_US
    events: list[dict[str, Any]] = []
    for cluster in clusters(name, seed, begin, sizes):
        for watch in cluster.watches:
            record(cluster, watch, begin, end, out / "history")
        write_logs(cluster, begin, out / "logs")
        for event in sorted(cluster.events, key=lambda each: (each.begin, each.end, each.kind)):
            times = {"begin": _shown(begin, event.begin), "end": _shown(begin, event.end)}
            events.append({**asdict(event), **times, "cluster": cluster.cluster_id})
    truth: dict[str, Any] = {
        "scenario": name,
        "seed": seed,
        "begin": _shown(begin, 0),
        "end": _shown(begin, end),
        "events": events,
    }
    (out / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    return truth


def _shown(begin: datetime, us: int) -> str:
    shown = (begin + timedelta(microseconds=us)).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")
