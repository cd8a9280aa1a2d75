"""The parts of the client's bench on Apache Kafka run, briefly. The tests check no speeds."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from bench.build import ROOT

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


def measured(part: str, *options: str) -> dict[str, Any]:
    """Runs a part and returns what it prints; skips without Java or Kafka."""
    command = [sys.executable, "-m", "bench.client", part, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    if reason := found.get("missing", {}).get("*"):
        pytest.skip(reason)
    return found


def test_each_subject_has_a_lag_in_each_round_or_a_reason() -> None:
    found = measured("elections", "--rounds=1", "--seconds=1")
    subjects = {"told", "idle", "java_busy", "java_idle", "aiokafka", "kafka-python"}
    for name in subjects - set(found["missing"]):
        (lag,) = found[name]
        assert -1000 < lag <= 5000
    assert set(found["missing"]) <= {"java_busy", "java_idle"}  # those need a JDK
    assert found["word"][0] > 0


def test_a_created_topic_is_found_by_the_client_and_by_the_loop() -> None:
    found = measured("creation", "--rounds=2")
    assert len(found["client"]) == len(found["loop"]) == 2
    assert min(found["client"] + found["loop"]) > 0


def test_requests_of_a_storm_are_counted_per_client() -> None:
    found = measured("storm", "--topics=20", "--rounds=1", "--seconds=12")
    assert found["rdmeta"][0] > 1
    assert found["missing"] or found["java"][0] > 1
