"""The policy and the cache in a simulated cluster: random seeds, and the planted mistakes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import mistakes
import pytest
from mistakes import MISTAKES, Mistake, PatchError
from runner import CHUNK, Failure, run_all, run_seed, trace

FOLDER = Path(__file__).parent
# The same seeds each time; `make simulate` runs many more, from a random one on.
FIRST, SECONDS = 0, 10.0


@pytest.mark.proof
def test_the_invariants_hold_in_many_seeds() -> None:
    first = FIRST
    begin, seed = time.monotonic(), first
    while time.monotonic() < begin + SECONDS:
        if isinstance(run_seed(seed), Failure):
            pytest.fail(trace(seed))
        seed += 1
    print(f"{seed - first} seeds from {first}")


@pytest.mark.slow
def test_a_run_in_several_processes_leaves_no_seed_out() -> None:
    result = run_all(range(4 * CHUNK + 1), processes=2)
    assert (result.seeds, result.failures) == (4 * CHUNK + 1, ())


def test_there_are_twelve_mistakes_and_a_seed_finds_each() -> None:
    assert len(MISTAKES) == 12
    assert mistakes.found().keys() == MISTAKES.keys()
    assert all(seed < 2000 for seed, _ in mistakes.found().values())


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name: str) -> None:
    seed, rule = mistakes.found()[name]
    failure = run_seed(seed, name)
    assert isinstance(failure, Failure), f"no longer found: run `make mistakes` ({seed=})"
    assert failure.rule == rule, failure.text


@pytest.mark.parametrize("name", MISTAKES)
def test_without_the_mistake_its_seed_passes(name: str) -> None:
    seed, _ = mistakes.found()[name]
    if isinstance(run_seed(seed), Failure):
        pytest.fail(trace(seed))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_changes_shipped_code(name: str) -> None:
    mistake = MISTAKES[name]
    shipped = (mistakes.CLIENT / mistake.file).read_text(encoding="utf-8")
    assert mistakes.patched(mistake) != shipped


def test_a_mistake_that_no_longer_fits_the_code_is_an_error() -> None:
    with pytest.raises(PatchError, match="0 times"):
        mistakes.patched(Mistake("policy.py", "there is no such line", ""))


def test_a_patched_policy_leaves_the_shipped_one_alone() -> None:
    shipped = mistakes.policy_of(None)
    patched = mistakes.policy_of("no jitter")
    assert patched is not shipped
    assert sys.modules["rdmeta.client.policy"].Policy is shipped


@pytest.mark.slow
def test_a_seed_gives_the_same_run_in_every_process() -> None:
    seed = random.randrange(10**6)
    runs = {
        subprocess.run(
            [sys.executable, str(FOLDER), "--seed", str(seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(runs) == 1, f"seed {seed} depends on the hashes of strings"


def test_a_failing_seed_prints_its_events_and_how_to_run_it_again() -> None:
    seed, rule = mistakes.found()["throttling ignored"]
    text = trace(seed, "throttling ignored")
    assert f"seed {seed} fails: {rule}" in text
    assert f"make simulate SEED={seed} MISTAKE='throttling ignored'" in text
    assert "-> send" in text
    assert len(text.splitlines()) < 70


@pytest.mark.slow
def test_a_run_in_several_processes_counts_its_seeds_and_stops_at_a_failure() -> None:
    seed, rule = mistakes.found()["throttling ignored"]
    passed = run_all(range(seed + 1, seed + 11), processes=2)
    assert (passed.seeds, passed.failures) == (10, ())
    failed = run_all(range(seed, seed + 1000), mistake="throttling ignored", processes=2)
    assert failed.failures[0].rule == rule
    assert failed.seeds < 1000
