"""Gold is what was true: of logs, of recordings, and of both, in scenarios and random clusters."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import gold_model as risks
import gold_model_brokers as brokers
import gold_model_changes as changes
import pyarrow as pa
import pytest
from fleet_truth import truth
from gold_tables import gold_in, same

from rdmeta import pipeline
from rdmeta.generate.cluster import HOUR_US, MINUTE_US, SECOND_US, GeneratedCluster, WatchPlan
from rdmeta.generate.controllers import FOLDER, ControllerLog, write_logs
from rdmeta.generate.recordings import record
from rdmeta.generate.scenarios import SCENARIOS, ScenarioPlan, Sizes, clusters

BEGIN = datetime(2026, 11, 16, tzinfo=timezone.utc)
DAY_US = 86_400_000_000
SIZES = Sizes(2, 1, 4, 2, 3)
# The measures that walk plain rows, and those that walk tables.
BY_ROWS: dict[str, Callable[[risks.Silver], list[dict[str, Any]]]] = {
    "coverage_hour": risks.coverage,
    "data_quality": risks.quality,
    "risk_hour": risks.risk,
    "incident": risks.incidents,
    "recovery": risks.recoveries,
    "churn_day": changes.churn,
    "isr_flap_day": lambda silver: changes.flaps(silver, 600),
    "balance_hour": changes.balance,
    "reassignment": changes.reassignments,
}
BY_TABLES: dict[str, Callable[[Mapping[str, pa.Table]], list[dict[str, Any]]]] = {
    "broker_day": brokers.broker_day,
    "topic_life": brokers.topic_life,
    "config_change": brokers.config_change,
    "controller": brokers.controller,
}


def written(cluster: GeneratedCluster, days: int, folder: Path, anew: Random | None) -> None:
    logging.getLogger("rdmeta.history").addHandler(logging.NullHandler())
    for watch in cluster.watches:
        record(cluster, watch, BEGIN, days * DAY_US, folder / "history")
    write_logs(cluster, BEGIN, folder / "logs")
    if anew is not None:
        begin_anew(cluster, folder / "logs", anew)


def begin_anew(cluster: GeneratedCluster, logs: Path, random: Random) -> None:
    """Leaves the files of one node, which dropped its log, and began anew with a snapshot.

    The cluster's `lost` gets the time of what does not count: all behind the node's own snapshot,
    or what it lacks, if the epoch in which the other snapshot ends is that of what it had.
    """
    made = ControllerLog(cluster, BEGIN)
    node, *others = sorted((logs / f"cluster={cluster.cluster_id}").glob("node=*"))
    for other in others:
        shutil.rmtree(other)
    moments = sorted({change.at for change in cluster.changes})
    parts = [
        [
            (1000 * (ms - made.begin_ms), byte, epoch)
            for byte, _, ms, epoch in made.log.ends
            if low < byte <= high
        ]
        for (_, low), (_, high) in pairwise([*made.cuts, (0, len(made.log.data))])
    ]
    files = [node / FOLDER / f"{first:020d}.log" for first, _ in made.cuts]
    ends = [
        (number, whole[-1][2] == one[2], one)
        for number, whole in enumerate(parts[:-1])
        for one, next in pairwise(whole)
        if one[0] in moments and one[0] < next[0] and all(f.exists() for f in files[number:][:2])
    ]
    if not ends:
        return
    is_of_epoch = random.choice(sorted({end[1] for end in ends}))
    number, _, (at, byte, _) = random.choice([end for end in ends if end[1] == is_of_epoch])
    os.truncate(files[number], byte - made.cuts[number][1])
    if not is_of_epoch:
        at = parts[number - 1][-1][0] if number else -1
    last = parts[number][-1][0]
    cluster.lost.append((at + 1, min(each for each in moments if each > last)))


def assert_gold_is_truth(
    cluster: GeneratedCluster, days: int, folder: Path, anew: Random | None = None
) -> None:
    written(cluster, days, folder, anew)
    for sources in (["logs"], ["history"], ["history", "logs"]):
        out = folder / f"of-{len(sources)}-{sources[0]}"
        plan = pipeline.plan([folder / each for each in sources], out, in_place=True, gold=True)
        pipeline.run(plan, workers=1)
        directory = folder / "history" if "history" in sources else None
        silver = truth(cluster, BEGIN, days, directory, "logs" in sources)
        rows = {table: risks.with_times(each.to_pylist()) for table, each in silver.items()}
        for name, model in BY_ROWS.items():
            found = [row for row in gold_in(out, name) if row.get("kind") != "rack"]
            wanted = model(rows)
            if name in ("coverage_hour", "data_quality"):
                hide(found, wanted)
            print(sources, name)
            same(found, wanted)
        for name, of_tables in BY_TABLES.items():
            print(sources, name)
            same(gold_in(out, name), risks.with_times(of_tables(silver)))


def hide(*tables: list[dict[str, Any]]) -> None:
    """Takes out what only files say: the ids of a log's days, and files that were set aside."""
    for row in (row for rows in tables for row in rows):
        if "origins" in row:
            row["origins"] = len(row["origins"])
        row.pop("files_aside", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_gold_of_a_scenario_is_what_was_true(name: str, tmp_path: Path) -> None:
    days = {"dirty": 4}.get(name, 3)
    (cluster,) = clusters(name, 1, BEGIN, SIZES._replace(days=days))
    assert_gold_is_truth(cluster, days, tmp_path)


# `make nightly` takes many seeds. RDMETA_SEED=N runs one again.
@pytest.mark.slow
@pytest.mark.parametrize("number", range(int(os.environ.get("RDMETA_SEEDS", "3"))))
def test_gold_of_a_random_cluster_is_what_was_true(number: int, tmp_path: Path) -> None:
    seed = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**9 + number))
    print(f"RDMETA_SEED={seed}")
    cluster = random_cluster(random := Random(seed))
    is_damaged = cluster.corrupt or random.random() < 0.3
    assert_gold_is_truth(cluster, 2, tmp_path, None if is_damaged else random)


def random_cluster(random: Random) -> GeneratedCluster:
    """Returns a cluster after two days of random events."""
    plan = ScenarioPlan(
        0, str(random.random()), BEGIN, SIZES._replace(brokers=random.randrange(3, 7))
    )
    cluster, end = plan.cluster, 2 * DAY_US
    # No poll is at a midnight, and no two recorders begin at one time: they are known by it.
    phases = random.sample((random.randrange(5, 14), random.randrange(18, 28)), 2)
    cluster.watches = [
        WatchPlan(phase=phase * SECOND_US, skew=random.choice((0, 2, -1)) * SECOND_US)
        for phase in phases[: random.randrange(1, 3)]
    ]
    makes: list[Callable[[int], None]] = [
        plan.rolling_restart,
        plan.unclean_election,
        plan.balance,
        lambda at: plan.broker_lost(at, random.choice(plan.brokers), random.randrange(1, 90)),
        lambda at: plan.rack_lost(at, plan.rack(random.choice(plan.brokers)), 20),
        lambda at: plan.slow_follower(at, random.choice(plan.brokers), 40),
        lambda at: plan.rebalance(at, random.randrange(1, 5)),
        lambda at: change_topics(cluster, at, random),
    ]
    # Some events meet each other; a reassignment is over before the next one begins.
    for hour in sorted(random.sample(range(1, 46), 9)):
        at = hour * HOUR_US + random.randrange(20 * MINUTE_US)
        random.choice(makes)(at)
    if random.random() < 0.7:
        hole = random.randrange(2, 20) * HOUR_US
        plan.hole(hole, hole + 2 * HOUR_US)
    damage = random.choice(("none", "none", "corrupt", "midnight"))
    if damage == "corrupt":
        cluster.corrupt.append(random.randrange(end))
    if damage == "midnight":  # the log ends shortly before midnight, and a poll follows behind it
        at = DAY_US - random.randrange(1, 60) * SECOND_US
        plan.slow_follower(at, random.choice(plan.brokers), 40)
        cluster.corrupt.append(at + 1)
    if random.random() < 0.3:  # the log changes in the very moment of a midnight
        plan.slow_follower(DAY_US, random.choice(plan.brokers), 40)
    if random.random() < 0.5:
        first = cluster.watches[0]
        cluster.watches[0] = first._replace(killed=random.randrange(12, 44) * HOUR_US)
    cluster.run(end)
    return cluster


def change_topics(cluster: GeneratedCluster, at: int, random: Random) -> None:
    """Creates a topic, which grows, gets another min ISR, and goes."""
    name = f"extra-{at}"
    step = 4 * MINUTE_US
    cluster.at(at, cluster.create, name, [(1, 2), (2, 3)], random.choice((None, 1, 2)))
    if random.random() < 0.7:  # brokers have it from now on, and no log has it
        cluster.at(at, cluster.put, "set_static_min_isr", random.choice((1, 2, None)))
    cluster.at(at + step, cluster.put, "grow", name, None, (3, 1))
    cluster.at(at + 2 * step, cluster.put, "set_min_isr", name, random.choice((1, 2, None)))
    if random.random() < 0.7:
        cluster.at(at + 3 * step, cluster.put, "remove_topic", name)
