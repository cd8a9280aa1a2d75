"""Runs the simulation: see `--help`; `make simulate` calls it.

A run begins at a random seed unless `--first` gives one, so that each run tries something new.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1])]

import mistakes  # noqa: E402
from runner import Failure, run_all, run_seed, trace  # noqa: E402

# A mistake must be found within so many seeds.
MOST = 2000


def main() -> int:
    """Returns 1 if a seed fails, or a mistake is not found."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10**9, help="how many seeds to run at most")
    parser.add_argument("--seconds", type=float, default=1e9, help="for how long at most")
    parser.add_argument("--first", type=int, help="the first seed; without it a random one")
    parser.add_argument("--seed", type=int, help="run this seed alone and print its events")
    parser.add_argument("--lines", type=int, default=0, help="events to print; 0: all of a seed")
    parser.add_argument("--mistake", help="run with one of the planted mistakes")
    parser.add_argument("--processes", type=int, default=0, help="0: one per processor")
    parser.add_argument("--failures", type=int, default=1, help="failing seeds that end a run")
    parser.add_argument("--find-mistakes", action="store_true", help="write found.json anew")
    options = parser.parse_args()
    if options.find_mistakes:
        return find_mistakes(options.processes)
    if options.seed is not None:
        print(trace(options.seed, options.mistake, options.lines or None))
        return 0
    first = options.first if options.first is not None else random.randrange(10**12)
    numbers = range(first, first + options.seeds)
    print(f"simulation: seeds from {first}", flush=True)
    result = run_all(numbers, options.seconds, options.mistake, options.processes, options.failures)
    for failure in result.failures[:1]:
        print(trace(failure.seed, options.mistake))
    for failure in result.failures[1:]:
        print(f"seed {failure.seed} fails: {failure.rule}: {failure.text}")
    print(
        f"simulation: {result.seeds} seeds in {result.seconds:.0f} s"
        f" ({result.seeds / result.seconds:.0f} per second), {result.steps} steps,"
        f" {len(result.failures)} failures"
    )
    return 1 if result.failures else 0


def find_mistakes(processes: int) -> int:
    """Looks for the first seed that finds each mistake and passes without it."""
    seeds: dict[str, tuple[int, str]] = {}
    for name, mistake in mistakes.MISTAKES.items():
        try:
            mistakes.patched(mistake)
        except mistakes.PatchError as error:
            print(f"{name}: {error}", flush=True)
            continue
        result = run_all(range(MOST), mistake=name, processes=processes)
        good = [each for each in result.failures if not isinstance(run_seed(each.seed), Failure)]
        first = min(good, default=None)
        if first is None:
            print(f"{name}: not found in {result.seeds} seeds", flush=True)
            continue
        seeds[name] = first.seed, first.rule
        print(f"{name}: seed {first.seed}, {first.rule}: {first.text}", flush=True)
    mistakes.write_found(seeds)
    return 0 if len(seeds) == len(mistakes.MISTAKES) else 1


if __name__ == "__main__":
    sys.exit(main())
