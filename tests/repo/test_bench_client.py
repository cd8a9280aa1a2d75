"""The client's benches take times and judge errors as they say, without a client. No speeds."""

from __future__ import annotations

import argparse
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from first_word import Word
from peer import listening

import bench.client
from bench import parts
from bench.client import elections, kafka, raised, refresh, tls, wrong
from bench.client.__main__ import PROGRAM
from bench.client.canned import large_name, served
from bench.client.refresh import Floor, check
from bench.client.watch import Watcher
from bench.figure import ANY, Missing

assert bench.client  # it puts the folders of the tests' tools on the path

# A subject that says it is connected, and sees leader 2 at time 105 and leader 3 at time 106.
SUBJECT = """
for line in open(0):
    print("leader 90.0 2")
    print("ready", line.split()[1])
    print("leader 105.0 2")
    print("leader 106.0 3", flush=True)
"""


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    """Yields a connected subject that sees its leaders at known times."""
    watcher = Watcher("scripted", [sys.executable, "-c", SUBJECT])
    watcher.connect(1, 9092)
    watcher.connected(1, 9092)
    yield watcher
    watcher.end()


def word(at: float, leader: int) -> Word:
    """Returns a broker's word about the topic of the bench."""
    return Word(at, 1, (1, 2, 3), {elections.TOPIC: [(leader, 5, 0, (1, 2))]})


def test_a_lag_is_taken_from_the_first_word_to_the_first_look_at_that_leader(
    watcher: Watcher,
) -> None:
    out: dict[str, Any] = {}
    later = time.time() + 20  # the subject's lines may still be on their way
    assert watcher.seen(3, 100.0, later) == 106.0
    elections.take(out, {"it": watcher}, word(104.75, 2), 100.0, 10.0)
    elections.take(out, {"it": watcher}, word(104.75, 3), 100.0, 10.0)
    assert out["it"] == [250.0, 1250.0]


def test_a_leader_that_is_not_seen_in_time_counts_as_the_whole_time(watcher: Watcher) -> None:
    out: dict[str, Any] = {}
    elections.take(out, {"it": watcher}, word(104.0, 1), 100.0, 0.5)
    elections.take(out, {"it": watcher}, word(100.5, 2), 100.0, 0.5)
    assert out["it"] == [500.0, 500.0]


@pytest.mark.slow
def test_a_subject_that_knows_another_leader_is_asked_again(watcher: Watcher) -> None:
    watcher.connected(2, 9092)
    assert watcher.ready == 2


def test_a_subject_that_goes_on_to_know_another_leader_is_an_error(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.client.watch.PATIENCE", -1)
    with pytest.raises(SystemExit, match="scripted sees leader 1, not 2"):
        watcher.connected(2, 9092)


def test_a_subject_that_ends_is_an_error() -> None:
    watcher = Watcher("ended", [sys.executable, "-c", "import sys; sys.stdin.readline()"])
    watcher.connect(1, 9092)
    with pytest.raises(SystemExit, match="ended"):
        watcher.connected(1, 9092)
    watcher.end()


def test_the_leader_of_a_word_without_the_topic_is_none() -> None:
    assert elections.leader_of(Word(1.0, 1, (), {})) == -1
    assert elections.leader_of(word(1.0, 3)) == 3


def test_the_floor_of_a_refresh_fills_its_cache_and_brings_nothing_new_again() -> None:
    with served(20) as address:
        floor = Floor(address)
        floor.refresh()
        version = floor.cache.version
        floor.refresh()
        check(floor.cache, 20, "floor")
        assert (floor.cache.version, floor.cache.leader(large_name(0), 1)) == (version, 2)
        floor.socket.close()
    with pytest.raises(SystemExit, match="20 topics"):
        check(floor.cache, 21, "floor")


def test_a_refresh_over_tls_is_timed_beside_its_floor() -> None:
    found = tls.measure(20, 1)
    assert {key: len(times) for key, times in found.items()} == {"client": 1, "floor": 1}


TRIED = {
    "wrong password": wrong.Case({}, r"password|credential|authentication"),
    "no such host": wrong.Case({}, "resolve|not known|no such"),
}


@pytest.mark.parametrize(
    ("password", "host", "count"),
    [
        ("Failed to get metadata: Local: Broker transport failure", "Unable to bootstrap", 2),
        ("Invalid username or PASSWORD", "Unable to bootstrap from no-such-host.invalid", 1),
        ("AuthenticationError: ", "gaierror: Name or service not known", 0),
    ],
)
def test_a_cause_counts_as_named_if_the_type_or_the_text_says_it(
    password: str, host: str, count: int
) -> None:
    assert wrong.unnamed(TRIED, {"wrong password": password, "no such host": host}) == count


def test_a_round_times_each_way_to_ask_beside_what_the_broker_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(raised, "PAUSE", 0.0)
    monkeypatch.setattr(raised, "OURS", {"client": lambda conf: conf["s"]})
    monkeypatch.setattr(raised.ToldSocket, "context", lambda _self: time.sleep(0.05))
    told = {"a": raised.ToldSocket("ca", lambda _context: time.sleep(0.02))}
    found = raised.one_round(told, {"a": {"s": 0.03}})
    assert found["a, client"] == 30.0
    assert found["a, told"] >= 70.0
    assert found["a, told prepared"] >= 20.0
    assert found["a, told"] > found["a, told prepared"]  # its CA was loaded before


@pytest.mark.parametrize("way", raised.OURS)
def test_each_way_to_ask_is_timed_until_it_raises(way: str) -> None:
    def alert(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"\x15\x03\x03\x00\x02\x02\x46")

    with listening(alert) as (_, port):
        took = raised.OURS[way]({"bootstrap.servers": f"127.0.0.1:{port}"})
    assert 0 < took < wrong.OURS_S


def test_the_clock_of_a_client_that_has_started_starts_when_its_name_is_resolved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(raised, "PAUSE", 1.0)
    with listening(socket.socket.close) as (_, port):
        begin = time.perf_counter()
        took = raised.started({"bootstrap.servers": f"127.0.0.1:{port}"})
        assert took < time.perf_counter() - begin - 1.0


def test_a_wrong_configuration_that_works_ends_the_bench() -> None:
    with pytest.raises(SystemExit, match="works"):
        wrong.raised(lambda: None)
    with pytest.raises(SystemExit, match="works"):
        raised.raised(lambda: None)


def test_without_kafka_a_part_gives_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "VERSION", "0.0.0")
    for cluster in (kafka.started, kafka.secured):
        with pytest.raises(Missing, match="no Java|Kafka 0.0.0 is not here"), cluster():
            pass


def test_without_a_jdk_only_the_java_producers_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    for name in ("java_busy", "java_idle"):
        with pytest.raises(Missing, match="JDK"):
            elections.command(name, "127.0.0.1:9092")
    assert elections.command("aiokafka", "127.0.0.1:9092")[-3] == "aiokafka"


def test_without_confluents_package_a_refresh_has_its_floor_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    found = refresh.measure(20, 1)
    assert found["missing"] == {"confluent": "confluent_kafka is not installed"}
    assert (len(found["client"]), len(found["floor"])) == (1, 1)


def test_a_package_that_the_tests_brokers_need_is_a_reason_and_a_mistake_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    options = argparse.Namespace(rounds=1)
    monkeypatch.setattr(parts, "import_module", lambda _: fails("kafka.protocol"))
    found = PROGRAM.run("creation", options)
    assert found == {"missing": {ANY: "kafka.protocol is not installed"}}
    monkeypatch.setattr(parts, "import_module", lambda _: fails("rdmeta.nothing"))
    with pytest.raises(ModuleNotFoundError):
        PROGRAM.run("creation", options)


@pytest.mark.parametrize("part", PROGRAM.kafka)
def test_without_rounds_no_kafka_is_started(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.client", part, "--rounds=0"])
    monkeypatch.setattr(kafka, "started", None)
    found: list[str] = []
    monkeypatch.setattr("builtins.print", found.append)
    assert PROGRAM.main(None) == 0
    assert found == [
        f'{{"bench": "{part}", "missing": {{"{ANY}": "a quick run starts no Kafka"}}}}'
    ]
