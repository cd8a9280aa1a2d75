"""Scenarios on Apache Kafka: each wrong configuration, as docs/reference/errors.md shows it."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import scenarios
import wrong_configurations
from both_shells import KINDS, Shell
from certificates import LONG_AGO
from kafka_security import MARK, PASSWORD, KafkaSecurity
from listener import free_ports
from log_lines import QUIET_S, lines_about, other_lines
from loop_thread import LoopThread
from other_servers import http_server, nothing, ssh_server, zookeeper
from proxy import Proxy
from real_kafka import RealKafka
from scenario_run import Seen
from token_server import TokenServer
from wrong_configurations import CASES, LOGINS, SHOWN, Case

from rdmeta import Error

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

# The first call waits for this topic. It cannot connect, so no cluster needs to have it.
TOPIC = "orders"
# Attempts within QUIET_S of the first one. A client goes on trying after its first call, so each
# case has several. It waits for 4, 8, then 10 s between them, by up to 20 % less or more. After a
# refused login it waits for 10 s at once.
MOST_LOGINS, MOST_TRIES = 4, 8
SECRET = f"{MARK}-client"
WRONG = f"{MARK}-wrong"


@contextmanager
def ports(kafka: RealKafka, directory: Path) -> Iterator[dict[str, str]]:
    """Yields the address for each kind of port that a case may connect to."""
    node = kafka.nodes[0]
    with (
        http_server() as http,
        ssh_server() as ssh,
        zookeeper(directory / f"zookeeper-{kafka.version}") as keeper,
    ):
        listeners = {name: kafka.address(node, name) for name in kafka.listeners}
        controller = f"127.0.0.1:{kafka.voters[node]}"
        others = {"http": http, "ssh": ssh, "zookeeper": keeper, "controller": controller}
        yield {**listeners, **others}


@contextmanager
def endpoints(security: KafkaSecurity) -> Iterator[dict[str, str]]:
    """Yields the URLs of token endpoints: a good one, one that is down, three others."""
    with TokenServer("alice", SECRET) as good, TokenServer("alice", SECRET) as forger:
        forger.answer = security.forger.answer("alice", 600)
        with TokenServer("alice", SECRET) as lost, TokenServer("alice", SECRET) as slow:
            lost.answer = 404, b"<html>Not Found</html>"
            slow.delay = 60.0
            yield {
                "{token_url}": good.url,
                "{slow_url}": slow.url,
                "{lost_url}": lost.url,
                "{forged_url}": forger.url,
                "{down_url}": f"http://127.0.0.1:{free_ports(1)[0]}/token",
            }


@pytest.fixture
def values(security: KafkaSecurity) -> Iterator[dict[str, str]]:
    """Yields the values of this run for the keys of SHOWN."""
    strange = security.certificate("strange", security.others)
    old = security.certificate("old", expires=LONG_AGO)
    with endpoints(security) as urls:
        yield {
            "{ca}": security.ca,
            "{other_ca}": security.other_ca,
            "{strange_certificate}": str(strange["ssl.certificate.location"]),
            "{strange_key}": str(strange["ssl.key.location"]),
            "{old_certificate}": str(old["ssl.certificate.location"]),
            "{old_key}": str(old["ssl.key.location"]),
            "{password}": PASSWORD,
            "{wrong}": WRONG,
            "{secret}": SECRET,
            **urls,
        }


@pytest.fixture
def other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the name of the case "host" lead to this machine.

    A machine without DNS cannot tell that a name does not exist: the fixture says so for it.
    """
    resolve = socket.getaddrinfo

    def resolving(host: str, *arguments: Any, **named: Any) -> Any:
        known = "127.0.0.1" if host.endswith(".example") else host
        try:
            return resolve(known, *arguments, **named)
        except socket.gaierror as error:
            if error.errno != socket.EAI_AGAIN:
                raise
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None

    monkeypatch.setattr(socket, "getaddrinfo", resolving)


class Attempt:
    """A client with a wrong configuration; no other one has the address of its server.

    `address` is a proxy's, which counts in `accepted`, or one at which nothing listens.
    """

    def __init__(
        self, case: Case, kind: str, address: str, accepted: list[float], values: Mapping[str, str]
    ) -> None:
        self.case, self.kind, self._accepted = case, kind, accepted
        self.server = f"{case.host}:{address.rpartition(':')[2]}"
        conf = {key: values.get(value, value) for key, value in case.conf.items()}
        conf["client.id"] = f"{kind}-{case.key}"
        # It tells the first attempt from the second one, also on a busy machine.
        conf["reconnect.backoff.ms"] = "4000"
        self.shell = Shell(kind, {"bootstrap.servers": self.server, **conf}, starts=False)

    def begin(self) -> None:
        """Calls the client for the first time."""
        self._is_over = threading.Event()
        self._begun = time.monotonic()
        self._call = self.shell.begin("wait_for_topic", TOPIC, timeout=self.case.timeout)
        self._call.add_done_callback(self._ended)

    def _ended(self, _: object) -> None:
        self.seconds = time.monotonic() - self._begun
        self.connections = len(self._accepted)
        self._is_over.set()

    def raised(self) -> Error:
        """Returns what the first call raises, which took `seconds` and `connections`."""
        assert self._is_over.wait(120)
        error = self._call.exception()
        assert isinstance(error, Error), f"{self.case.key}: it connects: {error!r}"
        return error

    def tries(self) -> int:
        """Returns how often the client has tried to connect, within QUIET_S of the first attempt.

        Attempts that reach no port are counted until now.
        """
        if self._accepted:
            return len([at for at in self._accepted if at < self._accepted[0] + QUIET_S])
        nodes = self.shell.call("stats")["nodes"].values()
        return sum(int(node["attempts"]) for node in nodes)


@contextmanager
def attempts(targets: Mapping[str, str], values: Mapping[str, str]) -> Iterator[list[Attempt]]:
    """Yields a client of each kind for each case; each has begun its first call."""
    with LoopThread("doors") as loop, ExitStack() as stack:
        found = []
        for case in CASES:
            for kind in KINDS:
                if case.port == "nothing":
                    address, accepted = stack.enter_context(nothing()), list[float]()
                else:
                    door = stack.enter_context(Proxy(loop, targets[case.port]))
                    address, accepted = door.address, door.accepted
                attempt = Attempt(case, kind, address, accepted, values)
                stack.enter_context(attempt.shell)
                attempt.begin()
                found.append(attempt)
        yield found


def check_first_call(attempt: Attempt, values: Mapping[str, str]) -> str:
    """Checks what the first call raised; returns it as the page shows it."""
    case, error = attempt.case, attempt.raised()
    text = str(error)
    print(f"{case.key}, {attempt.kind}: {attempt.seconds:.3f} s, {text}")
    assert [word for word in case.says if word not in text] == [], text
    assert attempt.connections <= 1, (
        f"{case.key}: {attempt.seconds} s, {attempt.connections} attempts"
    )
    assert MARK not in f"{error!r} {error.__cause__!r} {error.__context__!r}"
    return shown(text.replace(attempt.server, case.server), values)


def check_quiet(tried: list[Attempt], caplog: pytest.LogCaptureFixture) -> None:
    """Checks for QUIET_S after the last first line that no client writes a second one."""
    time.sleep(QUIET_S)
    records = list(caplog.records)
    assert len(tried) == len(CASES) * len(KINDS)
    assert other_lines([each.server for each in tried], records) == []
    for each in tried:
        check_later(each, records)


def check_later(attempt: Attempt, records: list[logging.LogRecord]) -> None:
    """Checks that a client tried again, not too often, and wrote one line."""
    lines = lines_about(attempt.server, records)
    assert len(lines) == 1, (attempt.case.key, attempt.kind, lines)
    tries, most = attempt.tries(), MOST_LOGINS if attempt.case in LOGINS else MOST_TRIES
    print(f"{attempt.case.key}, {attempt.kind}: {tries} tries")
    assert 2 <= tries <= most, (attempt.case.key, attempt.kind, tries)
    assert MARK not in f"{attempt.shell.call('stats')} {attempt.shell.errors}"


def shown(text: str, values: Mapping[str, str]) -> str:
    """Returns an error as the page shows it: without what is different in each run."""
    for key in sorted(values, key=lambda each: -len(values[each])):
        text = text.replace(values[key], SHOWN[key])
    return text


@pytest.mark.usefixtures("other_name")
@pytest.mark.parametrize("kafka", ["4.3.0", "3.9.1"], indirect=True)
def test_a_wrong_configuration_costs_one_attempt_and_one_line(
    kafka: RealKafka,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    values: dict[str, str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with ports(kafka, tmp_path) as targets:
        for number in rounds:
            with attempts(targets, values) as tried:
                texts = [check_first_call(each, values) for each in tried]
                for each in tried:
                    if each.case.scenario is not None:
                        seen.add(each.case.scenario, brokers_name, each.kind, each.seconds)
                if number == 0:
                    check_quiet(tried, caplog)
    logged = "".join(f"{record.getMessage()}{record.exc_text}" for record in caplog.records)
    assert MARK not in logged
    keys = [each.case.key for each in tried]
    found = dict(zip(keys, texts, strict=True))
    assert all(found[key] == text for key, text in zip(keys, texts, strict=True)), "two clients"
    seen.texts[kafka.version] = found
    if len(rounds) < scenarios.ROUNDS:  # a longer run writes the page
        assert wrong_configurations.load().get(kafka.version) == found, (
            "errors.md is behind: make scenarios PYTEST_ARGS='-k wrong_configuration'"
        )
    seen.check("refused", "wrong-port", "no-token", "no-server")
