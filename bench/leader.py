"""Times `cache.leader` from Python beside a no-op method: `python -m bench.leader`, used by run.

Prints one JSON object of samples, in nanoseconds per call, one sample per round. Time is this
thread's time on the CPU, and `off_cpu` the part in which it did not run, as in bench/c/common.h.
The loop around the calls is timed alone, too, and subtracted from both; `*_loop` is that time.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
from collections.abc import Sequence
from time import perf_counter, thread_time, thread_time_ns
from typing import Any

import rdmeta
from bench import build

PARTITIONS = 10
HOT_TOPICS = 8


def pin() -> None:
    """Stays on the last core that is allowed, if the platform can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def name(topic: int) -> str:
    """Returns the name that bench/c/gen.c gives a topic."""
    return f"team-{topic % 97:03d}.service.events-{topic:06d}"


def time_calls(subject: Any, topics: Sequence[str], partitions: Sequence[int]) -> float:
    """Returns nanoseconds per `subject.leader(topic, partition)`, with the loop."""
    begin = thread_time_ns()
    for topic, partition in zip(topics, partitions, strict=True):
        subject.leader(topic, partition)
    return (thread_time_ns() - begin) / len(topics)


def time_dict(leaders: dict[str, list[int]], topics: Sequence[str], at: Sequence[int]) -> float:
    """Returns nanoseconds per look into a dict of lists, as in a program without a cache."""
    begin = thread_time_ns()
    for topic, partition in zip(topics, at, strict=True):
        leaders[topic][partition]
    return (thread_time_ns() - begin) / len(topics)


def time_loop(topics: Sequence[str], partitions: Sequence[int]) -> float:
    """Returns nanoseconds per turn of the same loop with nothing in it."""
    begin = thread_time_ns()
    for _topic, _partition in zip(topics, partitions, strict=True):
        pass
    return (thread_time_ns() - begin) / len(topics)


def measure(cache: Any, noop: Any, count: int, queries: int, rounds: int) -> dict[str, list[float]]:
    """Times both subjects over the same queries, by turns, on random and on hot topics."""
    chance = random.Random(20)
    names = [name(i) for i in range(count)]
    partitions = [chance.randrange(PARTITIONS) for _ in range(queries)]
    known = {topic: [cache.leader(topic, p) for p in range(PARTITIONS)] for topic in names}
    anywhere = [names[chance.randrange(count)] for _ in range(queries)]
    out: dict[str, list[float]] = {}

    for turn in range(rounds + 1):  # the first turn warms up and is not kept
        hot = [names[chance.randrange(count)] for _ in range(HOT_TOPICS)]
        for kind, topics in (
            ("random", anywhere),
            ("hot", [hot[chance.randrange(HOT_TOPICS)] for _ in range(queries)]),
        ):
            subjects = [("noop", noop), ("cache", cache)]
            loop = time_loop(topics, partitions)
            for label, subject in reversed(subjects) if turn % 2 else subjects:
                took = time_calls(subject, topics, partitions)
                if turn:
                    out.setdefault(f"{kind}_{label}", []).append(took - loop)
            plain = time_dict(known, topics, partitions)
            if turn:
                out.setdefault(f"{kind}_loop", []).append(loop)
                out.setdefault(f"{kind}_dict", []).append(plain - loop)
    return out


def main() -> int:
    """Fills a cache with default settings, checks it, measures, prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.leader", description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    noop = build.noop().Noop()
    cache = rdmeta.MetadataCache()
    applied = cache.apply(build.response(args.topics, 8, args.seed), 12, asked=rdmeta.ALL)
    if applied.changed != args.topics or not 1 <= cache.leader(name(0), 0) <= 30:
        raise SystemExit(f"the cache did not take every topic of the response: {applied}")
    pin()
    gc.disable()
    wall, cpu = perf_counter(), thread_time()
    samples = measure(cache, noop, args.topics, args.queries, args.rounds)
    off_cpu = max(0.0, 1 - (thread_time() - cpu) / (perf_counter() - wall))
    print(json.dumps({"bench": "leader", "topics": args.topics, "off_cpu": off_cpu, **samples}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
