"""The Python caches beside each other, for `--benchmark-compare`; test_lookups says how.

    pytest bench/test_peers.py
    pytest bench/test_peers.py -k "rdmeta or aiokafka"

A lookup's figure is that of QUERIES queries, with the loop and the making of a TopicPartition. An
answer's figure is that of 10 000 partitions. `make bench-peers` has the same with C, Java and Go.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from bench import build
from bench.peers.python import Workload
from bench.peers.run import workload
from bench.peers.subjects import SUBJECTS, Subject

TOPICS = 1_000
QUERIES = 1 << 12


def installed(subject: Subject) -> bool:
    """Returns whether its library is installed."""
    try:
        subject.version()
    except PackageNotFoundError:
        return False
    return True


HERE = [subject for subject in SUBJECTS if installed(subject)]
WAYS = [(subject, way) for subject in HERE for way in subject.ways()]


@pytest.fixture(scope="module")
def work() -> Workload:
    """The files of the workload, as every peer gets them."""
    build.c_benches()
    return Workload(workload(TOPICS, QUERIES))


@pytest.mark.benchmark(group="peers: a response of 10 000 partitions into an empty cache")
@pytest.mark.parametrize("subject", HERE, ids=lambda subject: subject.name)
def test_fill(benchmark: Any, work: Workload, subject: Subject) -> None:
    body = work.body(subject.file)
    benchmark(lambda: subject.fill(subject.new(), body))


@pytest.mark.benchmark(group="peers: the same response again")
@pytest.mark.parametrize(
    "subject", [subject for subject in HERE if subject.again], ids=lambda subject: subject.name
)
def test_same_again(benchmark: Any, work: Workload, subject: Subject) -> None:
    body = work.body(subject.file)
    cache = subject.fill(subject.new(), body)
    benchmark(subject.fill, cache, body)


@pytest.mark.benchmark(group="peers: leader lookups, random of 1 000 topics")
@pytest.mark.parametrize(
    ("subject", "way"), WAYS, ids=[f"{subject.name}-{way}" for subject, way in WAYS]
)
def test_leader(benchmark: Any, work: Workload, subject: Subject, way: str) -> None:
    cache = subject.fill(subject.new(), work.body(subject.file))
    how = subject.ways()[way]
    queries = how.prepare(cache, *work.queries("random"))
    assert benchmark(how.ask, cache, queries) > QUERIES
