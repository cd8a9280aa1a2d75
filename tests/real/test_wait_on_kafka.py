"""`rdmeta wait` and `watch` on Apache Kafka: topics that come and go, and a broker restarted."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import commands
import pytest
from commanded import Commanded
from waiting import until

pytestmark = pytest.mark.timeout(300)

TOPIC, NEW = "rolled", "new"
WAYS = ("PLAINTEXT", "SASL_SSL")
each_way = pytest.mark.parametrize("way", WAYS)


class Source(NamedTuple):
    """The options and the environment with which a command reaches the cluster."""

    words: tuple[str, ...]
    env: Mapping[str, str]


def source(cluster: Commanded, way: str, directory: Path) -> Source:
    """Returns a way to the cluster; by SASL_SSL the environment has the password, and no file."""
    if way == "PLAINTEXT":
        return Source(("-b", cluster.kafka.bootstrap), {})
    lines = cluster.secured.read_text().splitlines()
    (secret,) = [line for line in lines if line.startswith("sasl.password=")]
    file = directory / "client.properties"
    file.write_text("".join(f"{line}\n" for line in lines if line != secret))
    return Source(("-F", str(file)), {"RDMETA_SASL_PASSWORD": secret.partition("=")[2]})


@pytest.fixture(scope="module")
def cluster(commanded: Commanded) -> Commanded:
    """Returns the cluster with a topic of which each node leads a partition."""
    commanded.kafka.create(TOPIC, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    return commanded


@contextmanager
def waiting(source: Source, line: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Yields a running wait that has said `line`."""
    with commands.started("wait", *source.words, *words, "-v", env=source.env) as process:
        assert process.stderr is not None
        assert any(line in each for each in iter(process.stderr.readline, "")), line
        yield process


class Watched:
    """A running watch, and the changes that it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.changes: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.changes.append(commands.checked_json(line))

    def end(self) -> str:
        """Ends the command; returns what it said on stderr."""
        self.process.send_signal(signal.SIGTERM)
        self._reader.join(30)
        assert self.process.wait(30) == -signal.SIGTERM
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def of_kind(self, kind: str) -> list[tuple[int | None, Any, Any]]:
        """Returns the partition, the old and the new value of the changes of a kind."""
        found = [each for each in self.changes if each["kind"] == kind]
        return [(each["partition"], each["old"], each["new"]) for each in found]

    def isr_of(self, partition: int) -> set[int]:
        """Returns the last ISR of a partition that a change had."""
        found = [new for p, _, new in self.of_kind("isr_changed") if p == partition]
        return set(found[-1] if found else ())


@pytest.mark.slow
@each_way
def test_a_topic_is_waited_for_until_it_is_in_sync_and_until_it_is_gone(
    cluster: Commanded, way: str, tmp_path: Path
) -> None:
    place = source(cluster, way, tmp_path)
    words = ("-t", NEW, "--partitions", "3", "--isr", "3", "--timeout", "60", "--json")
    with waiting(place, f"waiting: topic {NEW} does not exist", *words) as process:
        cluster.kafka.create(NEW, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        found = commands.checked_json(out)
        assert [each["present"] for each in found["conditions"]] == [None, 3, 3]
    gone = ("-t", NEW, "--gone", "--hold", "1", "--timeout", "60")
    with waiting(place, f"waiting: topic {NEW} exists", *gone) as process:
        admin = cluster.kafka.admin
        admin.delete_topics([NEW])[NEW].result(30)
        assert process.wait(60) == 0


@pytest.mark.proof
@pytest.mark.kills
def test_a_broker_that_is_restarted_is_waited_for_and_watched(
    cluster: Commanded, tmp_path: Path
) -> None:
    kafka, place = cluster.kafka, source(cluster, "SASL_SSL", tmp_path)
    rolled = kafka.asked(1, [TOPIC]).leader(TOPIC, 0)
    other = next(node for node in kafka.nodes if node != rolled)
    words = ("watch", *place.words, "-t", TOPIC, "-t", NEW, "--json")
    with commands.started(*words, env=place.env) as process:
        watched = Watched(process)
        assert process.stderr is not None
        assert process.stderr.readline() == f"rdmeta: topic {NEW} does not exist yet\n"
        kafka.kill(rolled)
        kafka.until(lambda: kafka.asked(other).broker(rolled, None) is None, "the loss is noticed")
        wait = ("--broker", str(rolled), "--no-urp", "--hold", "3", "--timeout", "120", "--json")
        missing = f"waiting: broker {rolled} is not listed; "
        with waiting(place, missing, *wait) as waiter:
            kafka.start(rolled)
            out, _ = waiter.communicate(timeout=120)
            assert waiter.returncode == 0
            found = commands.checked_json(out)
            assert found["met"]
            assert found["held"] >= 3
        state = kafka.asked(other, None)
        assert state.broker(rolled).id == rolled
        assert not state.health().under_replicated
        until(lambda: watched.isr_of(0) == {1, 2, 3}, "the watch shows the ISR")
        watched.end()
    lost = [(p, set(old) - set(new)) for p, old, new in watched.of_kind("isr_changed")][:3]
    assert sorted(lost) == [(0, {rolled}), (1, {rolled}), (2, {rolled})]
    led = [(p, old["leader"]) for p, old, _ in watched.of_kind("leader_changed")]
    assert (0, rolled) in led
