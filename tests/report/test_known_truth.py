"""The page names what is known to have happened: to made-up fleets, and to a real cluster."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import commands
import pytest
from kraft_logs import GOLDEN

import rdmeta
from rdmeta import pipeline, report
from rdmeta.kraft import KraftLog

pytestmark = pytest.mark.slow
# `make nightly` takes ten. RDMETA_SEED=N runs one again.
SEEDS = int(os.environ.get("RDMETA_SEEDS", "2"))
# The kinds of events, gravest first: the first one takes leaders away, the others only replicas.
GRAVITY = ("unclean_election", "rack_lost", "broker_lost", "slow_follower", "rolling_restart")


def page_of(out: Path) -> Any:
    return json.loads(report.make(out).json)["sections"]


@pytest.mark.parametrize("number", range(SEEDS))
def test_the_gravest_event_of_a_random_fleet_comes_first(tmp_path: Path, number: int) -> None:
    seed = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**6 + number))
    print(f"RDMETA_SEED={seed}")
    random = Random(seed)
    sizes = {"clusters": random.randrange(1, 4), "brokers": random.choice((6, 7, 9))}
    sizes |= {"topics": random.randrange(3, 12), "partitions": random.randrange(3, 8)}
    words = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    made, out = tmp_path / "made", tmp_path / "out"
    done = commands.run("generate", "bad-friday", str(made), "--seed", str(seed), *words)
    assert done.code == 0, done.err
    pipeline.run(pipeline.plan([made], out, in_place=True, gold=True), workers=1)
    events = json.loads((made / "truth.json").read_text())["events"]
    known = [event for event in events if event["kind"] in GRAVITY]
    event = min(known, key=lambda event: GRAVITY.index(event["kind"]))
    fleet, incidents, *rest = page_of(out)
    assert fleet["parts"][0]["rows"][0]["cluster_id"] == event["cluster"]
    first = incidents["parts"][1]["rows"][0]
    assert first["cluster"] == event["cluster"]
    assert first["broker"] in event["brokers"]
    # A recorder sees it up to a poll later.
    begin, end = (datetime.fromisoformat(event[at][:19]) for at in ("begin", "end"))
    seen = datetime.fromisoformat(first["began_at"][:19])
    assert begin <= seen <= end + timedelta(seconds=30)
    for word in (event["cluster"], f"Broker {first['broker']}", f"{seen:%Y-%m-%d %H:%M:%S}"):
        assert word in first["text"]
    (moves,) = (p for each in rest for p in each["parts"] if p["title"] == "Reassignments")
    outcomes = sorted(row["outcome"] for row in moves["rows"])
    assert outcomes == ["cancelled", *["done"] * 7]


def test_the_page_of_a_real_log_has_its_moments(tmp_path: Path) -> None:
    """Broker 2 was killed, then broker 1; risky/0 got a leader that lacked records."""
    rdmeta.kraft.record(KraftLog(GOLDEN / "4.3.0"), tmp_path / "in")
    plan = pipeline.plan([tmp_path / "in"], tmp_path / "out", in_place=True, gold=True)
    pipeline.run(plan, workers=1)
    sections = page_of(tmp_path / "out")
    first = sections[1]["parts"][1]["rows"][0]
    assert (first["kind"], first["topics_named"]) == ("leaderless", ["risky"])
    assert (first["began_at"], first["seconds"]) == ("2026-11-26T06:09:30.507Z", 10.34)
    (whole_day,) = (text for text in first["also"] if text.startswith("On the whole of "))
    assert whole_day.startswith("On the whole of 2026-11-26: broker 1 away for ")
    assert whole_day.endswith(" and 1 unclean election in the cluster.")
    words = {section["name"]: section["sentence"] for section in sections}
    assert words["fleet"].startswith("1 of 1 cluster had partitions without a leader;")
    assert words["brokers"].endswith("3 restarts, 2 of them unclean.")
    terms = [part for part in sections[6]["parts"] if part["title"] == "Terms of controllers"]
    assert [(row["broker"], row["seconds"]) for row in terms[0]["rows"]] == [
        *(("node 2", 57.71), ("none", 2.295), ("node 3", 5.94), ("none", 6.179)),
        *(("node 3", 28.608), ("none", 0.418), ("node 2", 23.587)),
    ]
