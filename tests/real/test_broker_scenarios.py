"""Scenarios on the tests' own brokers: what Apache Kafka does not do on demand. No Java needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from both_shells import both, times
from broker import METADATA, REBOOTSTRAP_REQUIRED, Brokers, Fault
from loop_thread import LoopThread
from proxy import Proxy
from scenario_run import Seen
from waiting import until

from rdmeta import MetadataCache

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OWN = "the tests' own"


def is_new(cache: MetadataCache) -> bool:
    """Returns whether a cache knows the second partition, which only the new cluster has."""
    return cache.leader("orders", 1, None) is not None


def test_another_cluster_is_found_at_the_bootstrap_name(rounds: range, seen: Seen) -> None:
    for _ in rounds:
        with (
            Brokers(2, "old") as old,
            Brokers(2, "new") as new,
            LoopThread("door") as loop,
            Proxy(loop, old[1].address) as door,
        ):
            old.truth.create("orders", 1)
            new.truth.create("orders", 2)
            conf = {"bootstrap.servers": f"localhost:{door.port}", "reconnect.backoff.max.ms": 2000}
            with both(conf, "other-cluster", ["orders"]) as shells:
                for broker in old:
                    broker.fault.cluster_id = "impostor"
                for shell in shells:
                    shell.begin("refresh", timeout=2)
                time.sleep(1)
                assert {shell.cache.cluster_id for shell in shells} == {"old"}
                door.retarget(new[1].address)
                gone = time.time()
                for broker in old:
                    broker.down()
                for shell, at in times(shells, is_new):
                    seen.add("other-cluster", OWN, shell.kind, at - gone)
                    assert shell.cache.cluster_id == "new"
                    assert {b.port for b in shell.cache.brokers} == {b.port for b in new}
                    kinds = [change.kind for change in shell.cache.changes().records]
                    assert kinds.count("cluster_changed") == 1
    seen.check("other-cluster")


def more_than(listed: Callable[[], Sequence[object]], count: int) -> bool:
    """Returns whether a list has become longer."""
    return len(listed()) > count


def connections_of(brokers: Brokers, client_id: str) -> set[tuple[int, int]]:
    """Returns broker and number of each connection on which a client has sent a request."""
    return {
        (broker.id, request.connection)
        for broker in brokers
        for request in broker.seen(client_id=client_id)
    }


def are_closed(brokers: Brokers, connections: set[tuple[int, int]]) -> bool:
    """Returns whether all of these connections are closed."""
    found = {(broker.id, number) for broker in brokers for number in broker.connections}
    return found.isdisjoint(connections)


def test_a_broker_asks_for_a_rebootstrap(
    rounds: range, seen: Seen, resolved_names: list[str]
) -> None:
    for _ in rounds:
        with Brokers(3) as brokers, LoopThread("door") as loop:
            brokers.truth.create("orders", 3)
            with Proxy(loop, brokers[1].address) as door:
                conf = {"bootstrap.servers": f"localhost:{door.port}"}
                with both(conf, "error-129", ["orders"]) as shells:
                    resolved_names.clear()
                    for shell in shells:
                        doors, before = len(door.accepted), len(brokers.requests())
                        old = connections_of(brokers, shell.client_id)
                        answer = Fault(error=REBOOTSTRAP_REQUIRED)
                        for broker in brokers:
                            broker.next(answer)
                        shell.begin("refresh", timeout=30)
                        until(partial(more_than, brokers.requests, before + 1), "two requests")
                        at, then = (r.at for r in brokers.requests()[before : before + 2])
                        seen.add("error-129", OWN, shell.kind, then - at)
                        assert len(door.accepted) > doors, "no new bootstrap"
                        until(partial(are_closed, brokers, old), "old connections are closed")
                        for broker in brokers:
                            broker.forget_script()
                    assert resolved_names.count("localhost") >= len(shells)
                    for shell in shells:
                        shell.call("refresh", timeout=30)
    seen.check("error-129")


def test_a_broker_throttles_the_client(rounds: range, seen: Seen) -> None:
    for _ in rounds:
        with Brokers(3) as brokers:
            brokers.truth.create("orders", 3)
            throttling = brokers[1]  # the only one that the client knows at first
            conf = {"bootstrap.servers": throttling.address, "retry.backoff.max.ms": 200}
            with both(conf, "throttled", ["orders"]) as shells:
                for shell in shells:
                    throttling.fault.throttle_ms = 2000
                    before = throttling.count(METADATA, client_id=shell.client_id)
                    end = time.monotonic() + 30
                    while throttling.count(METADATA, client_id=shell.client_id) == before:
                        shell.call("refresh", timeout=30)
                        assert time.monotonic() < end, "another broker is in use"
                    throttling.fault.throttle_ms = 0
                    told, others = time.monotonic(), len(brokers.requests())
                    while time.monotonic() < told + 1.9:
                        shell.call("refresh", timeout=30)
                    sent = [request.at for request in throttling.seen(METADATA, shell.client_id)]
                    meanwhile = [at for at in sent if told < at < told + 1.9]
                    seen.add("throttled", OWN, shell.kind, len(meanwhile))
                    assert len(brokers.requests()) > others + 2
    seen.check("throttled")
