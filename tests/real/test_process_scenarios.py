"""Scenarios of a client's process: a resolver that hangs, exit, Ctrl-C, forks. No Java needed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import client_workers
import pytest
import workers
from both_shells import KINDS, Shell
from broker import Brokers, black_hole
from kafka_security import ALICE, PASSWORD, KafkaSecurity
from login_server import LoginServer
from processes import environment
from scenario_run import Seen
from secured import Guard
from waiting import until
from ways import WAYS

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OWN = "the tests' own"
each_way = pytest.mark.parametrize("way_name", WAYS)
HANGS = "hangs.invalid"
# Threads that a resolver that hangs may leave behind in a process.
RESOLVERS = 2


@pytest.fixture
def hanging_resolver(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Lets the resolution of HANGS hang until the event is set."""
    resolve, end = socket.getaddrinfo, threading.Event()

    def hanging(host: str, *arguments: Any, **named: Any) -> Any:
        if host == HANGS:
            end.wait()
            raise OSError("it has ended")
        return resolve(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    return end


def descriptors() -> int:
    """Returns the number of open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def until_closed(open_before: int) -> None:
    """Returns when no more descriptors are open than before.

    Other clients of this process, such as librdkafka's, open and close theirs meanwhile.
    """
    until(lambda: descriptors() <= open_before, "the descriptors are closed")


def test_the_resolver_hangs(rounds: range, seen: Seen, hanging_resolver: threading.Event) -> None:
    for _ in rounds:
        for kind in KINDS:
            threads, open_before = set(threading.enumerate()), descriptors()
            shell = Shell(kind, {"bootstrap.servers": f"{HANGS}:9092", "client.id": kind})
            with shell:
                waiting = shell.begin("refresh", timeout=60)
                time.sleep(0.5)
                assert not waiting.done()
                begin = time.monotonic()
                shell.call("close")
                seen.add("resolver", OWN, kind, time.monotonic() - begin)
                assert waiting.exception(10) is not None
                assert shell.tasks() == 0
            left = [t for t in threading.enumerate() if t not in threads]
            assert len(left) <= RESOLVERS, left
            assert all(thread.daemon for thread in left)
            del shell, waiting
            until_closed(open_before)
    hanging_resolver.set()
    seen.check("resolver")


# A program without close(): it says when it ends. The resolver hangs, or a server is silent.
PROGRAM = """
import asyncio, socket, sys, time
import rdmeta

kind, server, ends = sys.argv[1], sys.argv[2], sys.argv[3] == "ends"
resolve = socket.getaddrinfo
def hanging(host, *arguments, **named):
    while host == "hangs.invalid":
        time.sleep(1000)
    return resolve(host, *arguments, **named)
socket.getaddrinfo = hanging
client = getattr(rdmeta, kind)({"bootstrap.servers": server})

def say(text):
    print(text, time.time(), flush=True)

async def with_loop():
    await client.start()
    refreshing = asyncio.ensure_future(client.refresh(timeout=100))
    await asyncio.sleep(0.5)
    say("waits")
    if not ends:
        await refreshing

try:
    if kind == "AsyncClient":
        asyncio.run(with_loop())
    else:
        client.refresh(wait=False)
        time.sleep(0.5)
        say("waits")
        if not ends:
            client.refresh(timeout=100)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(3)
say("ends")
"""


def run_program(kind: str, server: str, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, kind, server, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def test_a_process_ends_while_the_resolver_hangs(rounds: range, seen: Seen) -> None:
    for _ in rounds:
        for kind in KINDS:
            with run_program(kind, f"{HANGS}:9092", "ends") as process:
                out, errors = process.communicate(timeout=60)
                ended = time.time()
            assert (process.returncode, errors) == (0, "")
            seen.add("exit", OWN, kind, ended - float(out.split()[-1]))
    seen.check("exit")


def test_a_refresh_is_interrupted(rounds: range, seen: Seen) -> None:
    for _ in rounds:
        for kind in KINDS:
            with black_hole() as silent:
                for server in (silent, f"{HANGS}:9092"):
                    seen.add("interrupt", OWN, kind, seconds_to_interrupt(kind, server))
    seen.check("interrupt")


def seconds_to_interrupt(kind: str, server: str) -> float:
    """Returns the seconds from Ctrl-C during a refresh to the end of the process."""
    with run_program(kind, server, "waits") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("waits")
        time.sleep(0.2)
        begin = time.time()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        ended = time.time()
    assert (process.returncode, out, errors) == (3, "interrupted\n", ""), server
    return ended - begin


def two_workers_read(brokers: Brokers, ask: Callable[[], client_workers.Seen]) -> None:
    """Checks what two workers see, and that the parent's client goes on with its connection."""
    pids: set[int] = set()

    def both() -> bool:
        seen = ask()
        assert seen["error"] == "ForkedError"
        assert (seen["inherited"], seen["own"]) == (1, 1)
        pids.add(seen["pid"])
        return len(pids) == 2

    until(lambda: parents(brokers), "the parent's client asks")
    used = {request.connection for request in parents(brokers)}
    until(both, "two workers")
    count = len(parents(brokers))
    until(lambda: len(parents(brokers)) > count + 1, "the parent's client goes on")
    assert {request.connection for request in parents(brokers)} == used


def parents(brokers: Brokers) -> list[Any]:
    """Returns the requests of the parent's client."""
    return [request for request in brokers.requests() if request.asked.client_id == "parent"]


class Forked(NamedTuple):
    """Brokers that clients reach by a way, and what the clients need."""

    brokers: Brokers
    name: str
    security: dict[str, object]

    @property
    def configuration(self) -> str:
        conf = {
            "bootstrap.servers": self.brokers.bootstrap,
            "topic.metadata.refresh.interval.ms": 100,
            "metadata.max.age.ms": 600_000,  # a worker's copy of the cache is not refreshed
            **self.security,
        }
        return json.dumps(conf)


@contextmanager
def brokers_of(way_name: str, security: KafkaSecurity) -> Iterator[Forked]:
    """Yields brokers of canned answers, with TLS and SASL if the way has them."""
    guard = None
    if way_name != "PLAINTEXT":
        context = security.brokers.server("127.0.0.1")
        guard = Guard(context=context, logins=LoginServer({ALICE: PASSWORD}))
    with Brokers(guard=guard) as brokers:
        brokers.truth.create("orders")
        if guard is None:
            yield Forked(brokers, OWN, {})
        else:
            yield Forked(brokers, f"{OWN}, {way_name}", security.conf())
            assert guard.mistakes == []


@each_way
def test_gunicorn_forks_a_process_with_a_client(
    way_name: str, security: KafkaSecurity, rounds: range, seen: Seen, tmp_path: Path
) -> None:
    for _ in rounds:
        for kind in KINDS:
            with (
                brokers_of(way_name, security) as forked,
                socket.create_server(("127.0.0.1", 0)) as door,
            ):
                fd, url = door.fileno(), f"http://127.0.0.1:{door.getsockname()[1]}/"
                application = f"client_workers:wsgi({kind!r}, {forked.configuration!r})"
                command = (*workers.GUNICORN, f"fd://{fd}", application)

                def ask(url: str = url) -> Any:
                    with urllib.request.urlopen(url, timeout=30) as answer:
                        return json.load(answer)

                begin = time.monotonic()
                with workers.server(
                    tmp_path / "log", *command, inherited=(fd,), environment=environment()
                ):
                    two_workers_read(forked.brokers, ask)
                seen.add("gunicorn", forked.name, kind, time.monotonic() - begin)
    seen.check("gunicorn")


@each_way
def test_celery_forks_a_process_with_a_client(
    way_name: str, security: KafkaSecurity, rounds: range, seen: Seen, tmp_path: Path
) -> None:
    for number in rounds:
        for kind in KINDS:
            folder = tmp_path / f"{kind}-{number}"
            app = workers.celery(folder)

            def ask(app: Any = app, folder: Path = folder) -> Any:
                return workers.ask_celery(app, folder)

            with brokers_of(way_name, security) as forked:
                command = (client_workers.__file__, str(folder), kind, forked.configuration)
                begin = time.monotonic()
                with workers.server(folder / "log", *command, environment=environment()):
                    two_workers_read(forked.brokers, ask)
                seen.add("celery", forked.name, kind, time.monotonic() - begin)
    seen.check("celery")
