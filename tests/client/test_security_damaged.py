"""A secured client under damaged handshakes: it reports them, shows no secret, and recovers.

RDMETA_DAMAGE_SECONDS says how long; `make nightly` takes a minute. A failure repeats, but for the
scheduling of threads, with the RDMETA_SEED that it prints.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import Counter
from typing import Any

import damage
import pytest
from broker import Brokers, Fault
from certificates import Authority
from login_server import LoginServer
from secured import Guard
from shells import Maker
from waiting import until

from rdmeta.errors import Error

ours = Authority()
PASSWORD, TOKEN = "pass-MARKED-word", "good-MARKED-token"
CONF: dict[str, Any] = {
    "security.protocol": "sasl_ssl",
    "ssl.ca.pem": ours.pem,
    "socket.timeout.ms": 500,
    "socket.connection.setup.timeout.ms": 1000,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 20,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "topic.metadata.refresh.interval.ms": 200,
    "metadata.max.age.ms": 60_000,
}
LARGEST = 1 << 20


def conf_for(mechanism: str) -> dict[str, Any]:
    more: dict[str, Any] = {"sasl.username": "alice", "sasl.password": PASSWORD}
    if mechanism == "OAUTHBEARER":
        more = {"oauth_cb": lambda conf: (TOKEN, 2e10)}
    return {**CONF, "sasl.mechanism": mechanism, **more}


def do_damage(brokers: Brokers, client: Any, rng: random.Random) -> Counter[str]:
    """Damages the handshakes of all brokers for a while; returns how they were reported."""
    rounds = damage.rounds(rng, LARGEST)

    def fault() -> Fault:
        return Fault() if rng.random() < 0.4 else next(rounds).fault

    done: Counter[str] = Counter()
    end = time.monotonic() + damage.seconds(1.5)
    while time.monotonic() < end:
        for broker in brokers:
            broker.handshake_fault = fault
            # Bytes that are no TLS, or the first ones of a record.
            noise = rng.choice([b"", b"\x16\x03\x03", b"\x15\x03\x03\0\2\2\x28"])
            broker.greeting = noise + rng.randbytes(20) if rng.random() < 0.1 else None
            if rng.random() < 0.3:
                broker.drop()
        try:
            client.refresh(timeout=0.05)
            done["answered"] += 1
        except Error as error:
            done[type(error).__name__] += 1
    for broker in brokers:
        broker.handshake_fault = broker.greeting = None
    return done


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_damaged_handshakes_are_reported_and_the_client_recovers(
    mechanism: str, make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "rdmeta")
    rng = random.Random(damage.seed())
    logins = LoginServer({"alice": PASSWORD}, tokens={TOKEN})
    guard = Guard(ours.server("127.0.0.1"), logins, delay=0.01, lifetime=1.5)
    with Brokers(2, guard=guard) as brokers:
        brokers.truth.create("orders", partitions=4)
        client = make(brokers.bootstrap, conf_for(mechanism), topics=["orders"])
        problems: list[Any] = []
        client.on_error(problems.extend)
        client.refresh(["orders"])
        threads = threading.active_count()
        descriptors = len(os.listdir("/proc/self/fd"))
        done = do_damage(brokers, client, rng)
        print(done)
        brokers.truth.lead("orders", 0, 2)
        until(lambda: client.cache.leader("orders", 0) == 2, "the cache knows the truth again")
        until(lambda: threading.active_count() <= threads + 1, "threads end")
        until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors + 2 * 6, "sockets end")
    found = Counter(type(problem.error).__name__ for problem in problems)
    print(found)
    assert len(found) >= 3
    assert {type(problem.error).__module__ for problem in problems} == {"rdmeta.errors"}
    assert not any("a fault of rdmeta" in str(problem.error) for problem in problems)
    text = caplog.text + "".join(repr(problem) for problem in problems)
    assert "MARKED" not in text
    assert "Traceback" not in caplog.text
