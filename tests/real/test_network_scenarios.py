"""Scenarios on Apache Kafka: cuts, bad bootstrap servers, new addresses, a stopped process."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from both_shells import KINDS, Shell, both, times
from broker import HTTP, Brokers, black_hole
from client_process import ClientProcess
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from listener import free_ports
from loop_thread import LoopThread
from proxy import Proxy
from real_kafka import RealKafka
from scenario_run import LED, Seen
from ways import Way

from rdmeta import MetadataCache, StaleError
from rdmeta.client.nodes import Nodes

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

on_both = pytest.mark.parametrize("kafka", ["4.3.0", "3.9.1"], indirect=True)
by_each_way = pytest.mark.parametrize(
    ("kafka", "way"),
    [("4.3.0", "PLAINTEXT"), ("4.3.0", "SASL_SSL"), ("3.9.1", "PLAINTEXT")],
    indirect=True,
)
RECONNECT = {"reconnect.backoff.max.ms": 2000}


class Growing:
    """A topic that grows while the network is cut, so that clients must learn something after."""

    def __init__(self, kafka: RealKafka, admin: AdminClient, name: str) -> None:
        self.name, self.partitions = name, 1
        self._kafka, self._admin = kafka, admin
        kafka.create(name, [list(kafka.nodes)])

    def grow(self) -> None:
        """Adds a partition; returns when every broker says so."""
        self.partitions += 1
        new = NewPartitions(self.name, self.partitions)
        self._admin.create_partitions([new])[self.name].result(30)
        for node in self._kafka.nodes:
            self._kafka.until(partial(self._says, node), f"node {node} says that it grew")

    def _says(self, node: int) -> bool:
        return self.is_known(self._kafka.asked(node, [self.name]))

    def is_known(self, cache: MetadataCache) -> bool:
        """Returns whether a cache knows a leader of the last partition."""
        return cache.leader(self.name, self.partitions - 1, None) is not None

    def delete(self) -> None:
        """Deletes the topic."""
        self._admin.delete_topics([self.name])[self.name].result(30)


@contextmanager
def cut(way: Way, *, silent: bool) -> Iterator[None]:
    """Cuts all clients off: their connections are reset and refused, or their packets get lost."""
    for proxy in way.proxies.values():
        if silent:
            proxy.freeze()
        else:
            proxy.cut()
    try:
        yield
    finally:
        for proxy in way.proxies.values():
            proxy.heal(lose=silent)


def is_served(shell: Shell, seconds: float) -> None:
    """Checks for so long that lookups return the leader."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert shell.cache.leader(LED, 0) is not None
        time.sleep(0.05)


@by_each_way
@pytest.mark.parametrize("silent", [False, True], ids=["refused", "silent"])
def test_the_network_is_cut_for_five_seconds(
    kafka: RealKafka,
    way: Way,
    admin: AdminClient,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    silent: bool,
) -> None:
    key = "cut-silent" if silent else "cut-refused"
    topic = Growing(kafka, admin, key)
    conf = way.proxied_conf(RECONNECT)
    for _ in rounds:
        with both(conf, key, [LED, topic.name]) as shells:
            with cut(way, silent=silent):
                topic.grow()
                waiting = [shell.begin("refresh", timeout=60) for shell in shells]
                for shell in shells:
                    is_served(shell, 2.5)
            healed = time.time()
            for shell, at in times(shells, topic.is_known):
                seen.add(key, brokers_name, shell.kind, at - healed)
            for future in waiting:
                future.result(60)
    topic.delete()
    seen.check(key)


def test_a_minute_without_network_and_a_minute_without_the_processor(
    kafka: RealKafka, way: Way, admin: AdminClient, brokers_name: str, rounds: range, seen: Seen
) -> None:
    """Runs two scenarios of 60 s side by side: "cut-long" and "suspended"."""
    topic = Growing(kafka, admin, "cut-long")
    often = {"metadata.max.age.ms": 20_000, "topic.metadata.refresh.interval.ms": 6_000}
    conf = way.proxied_conf({**often, **RECONNECT})
    for _ in rounds:
        with ExitStack() as stack:
            processes = [stack.enter_context(suspended(kind, kafka)) for kind in KINDS]
            shells = stack.enter_context(both(conf, "cut-long", [LED, topic.name]))
            begin = time.monotonic()
            with cut(way, silent=True):
                before = [process.answers() for process in processes]
                for process in processes:
                    os.kill(process.pid, signal.SIGSTOP)
                topic.grow()
                for shell in shells:
                    is_served(shell, 1)
                until_stale(shells, begin + 40)
                known = [shell.begin_until(topic.is_known, 120) for shell in shells]
                time.sleep(max(0.0, begin + 60 - time.monotonic()))
            healed = time.time()
            goes_on(processes, before, brokers_name, seen)
            for shell, at in zip(shells, known, strict=True):
                seen.add("cut-long", brokers_name, shell.kind, at.result(120) - healed)
                assert shell.cache.leader(LED, 0) is not None
    topic.delete()
    seen.check("cut-long", "suspended")


def suspended(kind: str, kafka: RealKafka) -> ClientProcess:
    """Returns the process of a client that uses the listener of the brokers."""
    conf = {"topic.metadata.refresh.interval.ms": 10_000, "bootstrap.servers": kafka.bootstrap}
    return ClientProcess(kind, conf, [LED])


def until_stale(shells: list[Shell], end: float) -> None:
    """Returns when every client calls a topic stale and still has its last leader."""
    for shell in shells:
        while True:
            try:
                shell.cache.leader(LED, 0)
            except StaleError:
                break
            assert time.monotonic() < end, "the topic is not stale"
            time.sleep(0.05)
        assert shell.cache.last_leader(LED, 0) is not None


def goes_on(
    processes: list[ClientProcess], before: list[int], brokers_name: str, seen: Seen
) -> None:
    """Lets stopped processes go on, and counts their answers until 3 s after the first one."""
    busy = [process.processor_s() for process in processes]
    for process in processes:
        os.kill(process.pid, signal.SIGCONT)
    for process, known in zip(processes, before, strict=True):
        has_answer(process, known)
    time.sleep(3)
    for process, known, seconds in zip(processes, before, busy, strict=True):
        seen.add("suspended", brokers_name, process.kind, process.answers() - known)
        assert process.processor_s() - seconds < 1.5, "the client spins"


def has_answer(process: ClientProcess, known: int) -> None:
    """Returns once a client has a further answer; the machine may be busy with others."""
    end = time.monotonic() + 20
    while True:
        answers, stats = process.asked()
        if answers > known:
            return
        assert time.monotonic() < end, f"what was due was not asked: {stats}"
        time.sleep(0.1)


@on_both
def test_a_connection_is_cut_inside_an_answer(
    kafka: RealKafka, brokers_name: str, rounds: range, seen: Seen
) -> None:
    conf = {"bootstrap.servers": kafka.client_bootstrap}
    for _ in rounds:
        with both(conf, "cut-frame", [LED]) as shells:
            for shell in shells:
                for proxy in kafka.proxies.values():
                    proxy.cut_inside_next_answer(9)
                begin = time.monotonic()
                shell.call("refresh", timeout=30)
                seen.add("cut-frame", brokers_name, shell.kind, time.monotonic() - begin)
                assert shell.cache.leader(LED, 0) is not None
                for proxy in kafka.proxies.values():
                    proxy.cut_inside_next_answer(None)
    seen.check("cut-frame")


@on_both
def test_only_the_last_bootstrap_server_is_good(
    kafka: RealKafka,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_their_order(monkeypatch)
    for _ in rounds:
        with black_hole() as silent, Brokers() as wrong:
            wrong[1].greeting = HTTP
            refused = f"127.0.0.1:{free_ports(1)[0]}"
            unresolvable = "nosuchhost.invalid:9092"
            bad = [refused, unresolvable, silent, wrong[1].address]
            conf = {
                "bootstrap.servers": ",".join([*bad, kafka.address(kafka.nodes[-1])]),
                # The silent one is reported after this time, long after the first answer.
                "socket.connection.setup.timeout.ms": 3000,
            }
            for kind in KINDS:
                caplog.clear()
                with (
                    caplog.at_level(logging.WARNING, "rdmeta"),
                    Shell(kind, {"client.id": kind, **conf}) as shell,
                ):
                    begin = time.monotonic()
                    shell.call("refresh", timeout=30)
                    seen.add("bootstrap", brokers_name, kind, time.monotonic() - begin)
                    time.sleep(max(0.0, begin + 5 - time.monotonic()))
                    lines = [record.getMessage() for record in caplog.records]
                for server in bad:
                    found = [line for line in lines if server in line]
                    assert len(found) == 1, (server, lines)
    seen.check("bootstrap")


def in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets clients ask servers in the order of the configuration, not from a random place on."""
    monkeypatch.setattr(Nodes, "_from_random_place", lambda _, servers: servers)


def has_ports(ports: set[int], cache: MetadataCache) -> bool:
    """Returns whether the brokers of a cache have these ports."""
    return {broker.port for broker in cache.brokers} == ports


@by_each_way
def test_all_nodes_move_to_new_addresses(
    kafka: RealKafka,
    way: Way,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    resolved_names: list[str],
) -> None:
    last = kafka.nodes[-1]
    for _ in rounds:
        with LoopThread("door") as loop, Proxy(loop, way.address(last)) as door:
            conf = way.conf(f"localhost:{door.port}", RECONNECT)
            with both(conf, "moved", [LED]) as shells:
                for shell in shells:
                    shell.call("refresh", timeout=30)
                old, asked = way.ports, len(door.accepted)
                resolved_names.clear()
                door.cut()
                kafka.move()
                door.retarget(way.address(last))
                moved = time.time()
                door.heal()
                new = way.ports
                for shell, at in times(shells, partial(has_ports, new)):
                    seen.add("moved", brokers_name, shell.kind, at - moved)
                    assert {b.port for b in shell.cache.brokers}.isdisjoint(old)
                    assert shell.cache.cluster_id == kafka.cluster_id
                assert len(door.accepted) >= asked + len(shells)
                assert resolved_names.count("localhost") >= len(shells)
        kafka.recover()
    seen.check("moved")
