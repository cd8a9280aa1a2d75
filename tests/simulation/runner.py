"""Runs seeds, in this process or in several, and reports those that fail."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import mistakes
from report import Report
from violation import Violation
from world import World

# Seeds that a process runs before it reports.
CHUNK = 50


class Failure(NamedTuple):
    """A seed that failed: the invariant, or the name of an exception, and the text."""

    seed: int
    rule: str
    text: str


@dataclass
class Result:
    """The result of a run of many seeds."""

    seeds: int = 0
    steps: int = 0
    seconds: float = 0.0
    failures: tuple[Failure, ...] = ()


def run_seed(seed: int, mistake: str | None = None, report: Report | None = None) -> int | Failure:
    """Runs one seed; returns the number of its steps, or its failure."""
    world = World(seed, mistakes.policy_of(mistake), report)
    try:
        world.run()
    except Violation as violation:
        return Failure(seed, violation.rule, violation.text)
    except Exception as error:  # a fault of the policy, of the cache, or of the simulation
        return Failure(seed, type(error).__name__, traceback.format_exc())
    return world.steps


def trace(seed: int, mistake: str | None = None, lines: int | None = 60) -> str:
    """Runs a seed again; returns its last events, its scene, and how to run it alone."""
    report = Report(lines)
    outcome = run_seed(seed, mistake, report)
    said = "passes" if isinstance(outcome, int) else f"fails: {outcome.rule}: {outcome.text}"
    again = f"make simulate SEED={seed}" + (f" MISTAKE='{mistake}'" if mistake else "")
    return "\n".join([*report.lines, f"seed {seed} {said}", f"again, alone: {again}"])


def _chunk(seeds: list[int], mistake: str | None, until: float) -> Result:
    result = Result()
    failures: list[Failure] = []
    for seed in seeds:
        if time.monotonic() >= until:
            break
        outcome = run_seed(seed, mistake)
        result.seeds += 1
        if isinstance(outcome, int):
            result.steps += outcome
        else:
            failures.append(outcome)
    result.failures = tuple(failures)
    return result


def run_all(
    seeds: Iterable[int],
    seconds: float = 1e9,
    mistake: str | None = None,
    processes: int = 0,
    most_failures: int = 1,
) -> Result:
    """Runs seeds in several processes until one fails, or the time is over.

    `processes` is the number of processes, 0: one per processor. The monotonic clock is the same in
    all processes of a machine.
    """
    begin = time.monotonic()
    whole, numbers = Result(), iter(seeds)
    workers = processes or len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        chunks = _chunks(numbers)
        running = {
            pool.submit(_chunk, chunk, mistake, begin + seconds)
            for chunk in islice(chunks, 2 * workers)
        }
        while running:
            done = next(as_completed(running))
            running.discard(done)
            part = done.result()
            whole.seeds += part.seeds
            whole.steps += part.steps
            whole.failures += part.failures
            over = time.monotonic() >= begin + seconds or len(whole.failures) >= most_failures
            chunk = None if over else next(chunks, None)
            if chunk is not None:
                running.add(pool.submit(_chunk, chunk, mistake, begin + seconds))
            elif over:
                for each in running:
                    each.cancel()
                running = {each for each in running if not each.cancelled()}
    whole.seconds = time.monotonic() - begin
    return whole


def _chunks(numbers: Iterator[int]) -> Iterator[list[int]]:
    while chunk := list(islice(numbers, CHUNK)):
        yield chunk
