"""Times one Python cache: `python -m bench.peers.python speed|memory DIR ROUNDS SECONDS NAME`.

DIR is a workload (bench/c/workload.h). NAME is a subject's name, or confluent-kafka followed by a
BOOTSTRAP. Prints one JSON object: samples by FIGURE:WAY, in nanoseconds per query or partition, or
bytes per partition. `sum` is the sum of the leaders of all random queries. Time is this thread's
on the CPU, except while it waits for a broker. The loop's own time is subtracted from lookups.
"""

from __future__ import annotations

import gc
import json
import sys
from array import array
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import monotonic, perf_counter, perf_counter_ns, thread_time, thread_time_ns
from typing import Any

from bench.leader import pin
from bench.peers.subjects import SUBJECTS, Subject, Way, pairs

HOT = 1024
ONE_TOPIC = 50  # list_topics(topic) per round
Samples = dict[str, list[float]]


class Workload:
    """The files of a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        topics, per_topic, _seed = (directory / "about").read_text().split()
        self.partitions = int(topics) * int(per_topic)
        self.names = (directory / "names").read_text().splitlines()

    def body(self, name: str) -> bytes:
        """Returns a response."""
        return (self.directory / name).read_bytes()

    def queries(self, name: str) -> tuple[list[str], list[int]]:
        """Returns the topics and partitions to ask for, in their order."""
        numbers = array("I")
        numbers.frombytes((self.directory / name).read_bytes())
        if sys.byteorder == "big":
            numbers.byteswap()
        return [self.names[i] for i in numbers[0::2]], list(numbers[1::2])


def rounds_within(rounds: int, seconds: float) -> Iterator[int]:
    """Yields 0, 1, ...: at least one, at most `rounds`, none that begins after `seconds`."""
    end = monotonic() + seconds
    for turn in count():
        if turn and (turn >= rounds or monotonic() > end):
            return
        yield turn


def timed(ask: Callable[[Any, Any], int], cache: Any, queries: Any) -> tuple[float, int]:
    """Returns nanoseconds per query, and the sum."""
    begin = thread_time_ns()
    total = ask(cache, queries)
    return (thread_time_ns() - begin) / len(queries), total


def lookups(
    work: Workload, cache: Any, ways: dict[str, Way], rounds: int, seconds: float
) -> dict[str, Any]:
    """Times every way to ask by turns, of random topics and a hot set, after an untimed round."""
    out: dict[str, Any] = {}
    topics, partitions = work.queries("random")
    hot_topics, hot_partitions = work.queries("hot")
    repeat = max(1, len(topics) // HOT)
    random = {key: way.prepare(cache, topics, partitions) for key, way in ways.items()}
    for key, way in ways.items():
        out["sum"] = way.ask(cache, random[key])
    for turn in rounds_within(rounds, seconds):
        at = turn * HOT % len(hot_topics)
        for key, way in ways.items():
            loop, _ = timed(way.loop, cache, random[key])
            took, total = timed(way.ask, cache, random[key])
            if total != out["sum"]:
                raise SystemExit(f"{key}: its leaders have another sum, {total}")
            out.setdefault(f"random:{key}", []).append(took - loop)
            few = way.prepare(
                cache, hot_topics[at : at + HOT] * repeat, hot_partitions[at : at + HOT] * repeat
            )
            way.ask(cache, few[:HOT])
            loop, _ = timed(way.loop, cache, few)
            took, _ = timed(way.ask, cache, few)
            out.setdefault(f"hot:{key}", []).append(took - loop)
    return out


def fills(work: Workload, subject: Subject, rounds: int, seconds: float) -> tuple[Samples, Any]:
    """Times a response into a new cache, and the same response again.

    The garbage collector is as Python has it. Returns the samples, and the last cache.
    """
    body = work.body(subject.file)
    out: Samples = {}
    cache: Any = None
    for _ in rounds_within(rounds, seconds):
        cache = None
        cache = subject.new()
        for figure in ("cold", "same") if subject.again else ("cold",):
            gc.collect()
            begin = thread_time_ns()
            cache = subject.fill(cache, body)
            took = (thread_time_ns() - begin) / work.partitions
            out.setdefault(f"{figure}:{subject.name}", []).append(took)
    return out, cache


def resident() -> int:
    """Returns the resident bytes."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("/proc/self/smaps_rollup has no resident memory")


def memory(work: Workload, fill: Callable[[], Any], warm: Callable[[], Any]) -> float:
    """Returns the bytes per partition that a process grows by, with what decoding leaves behind.

    `warm` takes an answer about one topic before: imports and code paths are not memory of a cache.
    """
    warm()
    gc.collect()
    before = resident()
    kept = fill()
    gc.collect()
    grown = resident() - before
    del kept
    return grown / work.partitions


def subject_memory(work: Workload, subject: Subject) -> Samples:
    """Measures a cache that is filled once, in a process that does nothing else."""
    body = work.body(subject.file)
    one = work.body(subject.file.replace("all", "one"))

    def fill(answer: bytes) -> Any:
        return subject.fill(subject.new(), answer)

    return {f"memory:{subject.name}": [memory(work, lambda: fill(body), lambda: fill(one))]}


# -------------------------------------------------------------- confluent-kafka


def consumer(bootstrap: str) -> Any:
    """Returns a client that asks for nothing by itself."""
    from confluent_kafka.admin import AdminClient

    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "topic.metadata.refresh.interval.ms": -1,
            "receive.message.max.bytes": 1_000_000_000,
            "log_level": 0,
        }
    )


def ask_kept(metadata: Any, queries: Any) -> int:
    """Returns the sum of the leaders in the tree that list_topics() returned."""
    total = 0
    for topic, partition in queries:
        total += metadata.topics[topic].partitions[partition].leader
    return total


def confluent(work: Workload, mode: str, rounds: int, seconds: float, at: str) -> dict[str, Any]:
    """Times list_topics(), of everything and of one topic, and lookups in its result.

    There is nothing else to ask: the cache inside cannot be reached. Time is that on the wall, as
    other threads and the network spend it, except for the lookups.
    """
    client, name = consumer(at), work.names[0]
    out: dict[str, Any] = {}
    client.list_topics(name, timeout=120)
    if mode == "memory":
        grown = memory(work, lambda: client.list_topics(timeout=120), lambda: None)
        return {"memory:list_topics": [grown]}
    for _ in rounds_within(rounds, seconds):
        gc.collect()
        begin = perf_counter_ns()
        metadata = client.list_topics(timeout=120)
        took = (perf_counter_ns() - begin) / work.partitions
        if len(metadata.topics) != len(work.names):
            raise SystemExit(f"list_topics() has {len(metadata.topics)} topics")
        out.setdefault("cold:list_topics", []).append(took)
        begin = perf_counter_ns()
        for _ in range(ONE_TOPIC):
            client.list_topics(name, timeout=120)
        out.setdefault("random:list_topics", []).append((perf_counter_ns() - begin) / ONE_TOPIC)
    pin()
    return out | lookups(work, metadata, {"kept": Way(pairs, ask_kept)}, rounds, seconds)


def main() -> int:
    """Measures one subject."""
    mode, directory, rounds, seconds, name = sys.argv[1:6]
    work, wall, cpu = Workload(Path(directory)), perf_counter(), thread_time()
    limits = (int(rounds), float(seconds))
    if name == "confluent-kafka":
        out = confluent(work, mode, *limits, sys.argv[6])
    else:
        subject = next(s for s in SUBJECTS if s.name == name)
        if mode == "memory":
            out = {**subject_memory(work, subject)}
        else:
            pin()
            samples, cache = fills(work, subject, *limits)  # the lookups use the last cache
            out = {**samples, **lookups(work, cache, subject.ways(), *limits)}
    off_cpu = max(0.0, 1 - (thread_time() - cpu) / (perf_counter() - wall))
    print(json.dumps({**out, "off_cpu": off_cpu}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
