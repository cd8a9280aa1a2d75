"""Scenarios on Apache Kafka with TLS and SASL: what changes while clients are connected."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from both_shells import KINDS, Shell, both
from certificates import Authority
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewPartitions
from kafka_security import (
    ALICE,
    BOB,
    BOBS_PASSWORD,
    BRIEF,
    CAROL,
    CAROLS_PASSWORD,
    CUT,
    MARK,
    SECURE,
    SIGNED,
    KafkaSecurity,
)
from loop_thread import LoopThread
from proxy import Proxy
from real_kafka import RealKafka
from scenario_run import LED, NODES, Seen, with_topics
from token_server import TokenServer
from waiting import until

import rdmeta
from rdmeta import (
    DENIED,
    AuthenticationError,
    MetadataCache,
    TlsError,
    TopicAuthorizationError,
    Updated,
    fetch,
)
from rdmeta.client.nodes import Nodes

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

VERSIONS = ("4.3.0", "3.9.1")
on_both = pytest.mark.parametrize("kafka", VERSIONS, indirect=True)
MINUTE_S = 60.0
# Seconds: longer than a session.
BLOCKED_S = 6.0
# Seconds after a change of the password. A client is refused at the end of its session, 5.5 s later
# at the latest, and tries again after 12 s at most.
CHANGED_S = 20.0
SECRET = f"{MARK}-client"


def named(kafka: RealKafka) -> str:
    """Returns the name of a cluster in the results."""
    return f"Kafka {kafka.version} x {len(kafka.nodes)}"


def count(shell: Shell, key: str) -> int:
    """Returns a counter of a client's statistics, over all nodes."""
    return sum(int(node[key]) for node in shell.call("stats")["nodes"].values())


def texts(shell: Shell) -> list[str]:
    """Returns the text of each problem that a client has reported."""
    return [f"{problem.text}: {problem.error}" for problem in shell.errors]


def every_bootstrap(kafka: RealKafka, listener: str) -> str:
    """Returns the addresses of a listener, those of its proxies if it has some."""
    proxies = kafka.proxies_of[listener]
    return ",".join(
        proxies[node].address if proxies else kafka.address(node, listener) for node in kafka.nodes
    )


class Answers:
    """The times (time.monotonic()) of the answers that a client has applied."""

    def __init__(self, shell: Shell) -> None:
        self.at: list[float] = []
        shell.call("on_update", self._take)

    def _take(self, updates: Sequence[Updated]) -> None:
        self.at += [time.monotonic()] * len(updates)

    def wait(self, since: float) -> float:
        """Returns the time of the first answer after `since`."""
        until(lambda: self.at and self.at[-1] > since, "an answer")
        return next(at for at in self.at if at > since)


# ---- sessions of five seconds -------------------------------------------------------------------


class Vault:
    """A password that is changed; a client that asks for it meanwhile waits."""

    def __init__(self, password: str) -> None:
        self._password = password
        self._changing = threading.Lock()

    def password(self) -> str:
        """Returns the password of now."""
        with self._changing:
            return self._password

    @contextmanager
    def changing(self, password: str) -> Iterator[None]:
        """Has `password` returned after the block; logins that had the old one end before it."""
        with self._changing:
            time.sleep(0.5)
            yield
            self._password = password


class Sessions:
    """Clients of one cluster whose sessions last 5 s.

    Two have a password, and two ask for it. The loops of the last two are blocked once, beyond the
    end of a session.
    """

    def __init__(self, kafka: RealKafka, security: KafkaSecurity, password: str) -> None:
        self.kafka, self.password, self.vault = kafka, password, Vault(password)
        # The logins of the first minute on one connection, by the client's id.
        self.logins: dict[str, int] = {}
        self._conf = {
            **security.conf("SCRAM-SHA-256"),
            "bootstrap.servers": every_bootstrap(kafka, SECURE),
            "topic.metadata.refresh.interval.ms": 1000,
            "sasl.username": BOB,
        }

    def __enter__(self) -> Sessions:
        with ExitStack() as stack:
            version = self.kafka.version
            fixed = {**self._conf, "sasl.password": self.password}
            asking = {**self._conf, "sasl.password": self.vault.password}
            self.fixed = stack.enter_context(both(fixed, f"fixed-{version}", [LED]))
            self.asking = stack.enter_context(both(asking, f"asking-{version}", [LED]))
            self.blocked = stack.enter_context(both(fixed, f"blocked-{version}", [LED]))
            self._minute = threading.Timer(MINUTE_S, self._end_minute)
            stack.callback(self._minute.join)
            stack.callback(self._minute.cancel)
            self._minute.start()
            for shell in self.blocked:
                shell.in_loop(partial(time.sleep, BLOCKED_S))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the clients; a second call does nothing."""
        self._stack.close()

    def _end_minute(self) -> None:
        for shell in (*self.fixed, *self.asking):
            self.logins[shell.client_id] = logins_on_one_connection(shell)

    def record_minute(self, seen: Seen) -> None:
        """Waits for the end of the minute, and records what the clients did until now."""
        self._minute.join()
        name = named(self.kafka)
        for shell in (*self.fixed, *self.asking):
            seen.add("sessions", name, shell.kind, self.logins[shell.client_id])
            self.record_disconnects("sessions-kept", shell, seen)
        for shell in self.blocked:
            shell.call("refresh", timeout=30)
            assert logins_on_one_connection(shell) > 0
            self.record_disconnects("sessions-blocked", shell, seen)

    def record_disconnects(self, key: str, shell: Shell, seen: Seen) -> None:
        """Records how many connections a client has lost, which are none."""
        seen.add(key, named(self.kafka), shell.kind, len(shell.errors))
        assert texts(shell) == []

    def change(self, password: str) -> float:
        """Changes the user's password; returns the time of the change."""
        with self.vault.changing(password):
            alter_password(self.kafka, password)
            return time.monotonic()


def logins_on_one_connection(shell: Shell) -> int:
    """Returns the logins after the first on one connection: the most of a node with just one."""
    nodes = shell.call("stats")["nodes"].values()
    return max((int(n["reauthentications"]) for n in nodes if not n["reconnects"]), default=0)


def alter_password(kafka: RealKafka, password: str) -> None:
    """Gives BOB another password, and returns when every broker takes it."""
    admin = kafka.admin
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion(BOB, info, password.encode())
    for done in admin.alter_user_scram_credentials([change]).values():
        done.result(30)


@pytest.fixture(scope="module")
def first_minute(
    clusters: Callable[[str, int], RealKafka], security: KafkaSecurity
) -> Iterator[list[Sessions]]:
    """Yields clients with short sessions, which run while other tests do."""
    found = [with_topics(clusters(version, NODES[version])) for version in VERSIONS]
    with ExitStack() as stack:
        yield [stack.enter_context(Sessions(kafka, security, BOBS_PASSWORD)) for kafka in found]


# ---- a denied topic -----------------------------------------------------------------------------


def denial(topic: str, kind: Any = AclBinding, permission: Any = AclPermissionType.DENY) -> Any:
    """Returns the rule that denies ALICE to describe a topic."""
    return kind(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{ALICE}", "*",
        AclOperation.DESCRIBE, permission,
    )  # fmt: skip


@on_both
@pytest.mark.usefixtures("first_minute")
def test_describe_is_denied_for_one_topic_and_then_granted(
    kafka: RealKafka,
    security: KafkaSecurity,
    admin: AdminClient,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
) -> None:
    conf = {"bootstrap.servers": every_bootstrap(kafka, SECURE), **security.conf()}
    caplog.set_level(logging.WARNING)
    for number in rounds:
        topic, other = f"denied-{number}", f"beside-{number}"
        for each in (topic, other):
            kafka.create(each, [list(kafka.nodes)])
        for done in admin.create_acls([denial(topic)]).values():
            done.result(30)
        caplog.clear()
        known = [LED, other]
        with both(conf, "forcing", known) as forcing, both(conf, "waiting", known) as waiting:
            denied_at = [raised_to_each(shell, topic) for shell in (*forcing, *waiting)]
            waits = [
                (s, s.timed("wait_for_topic", other, 1, timeout=30)) for s in forcing + waiting
            ]
            for widened in admin.create_partitions([NewPartitions(other, 2)]).values():
                widened.result(30)
            for shell, wait in waits:
                seen.add("denied-others", brokers_name, shell.kind, wait.result(60))
                shell.call("refresh", timeout=30)
                assert shell.cache.state(topic) == DENIED
            for removed in admin.delete_acls([denial(topic, AclBindingFilter)]).values():
                removed.result(30)
            # A broker may take the rule a moment later than the controller.
            time.sleep(0.3)
            for shell in forcing:
                begin = time.monotonic()
                shell.call("refresh", [topic], timeout=30, force=True)
                seen.add("denied-forced", brokers_name, shell.kind, time.monotonic() - begin)
                assert shell.cache.leader(topic, 0) is not None
            found = [shell.begin_until(partial(has_leader, topic)) for shell in waiting]
            for shell, at, since in zip(waiting, found, denied_at[len(forcing) :], strict=True):
                seen.add("denied-alone", brokers_name, shell.kind, at.result(60) - since)
            for shell in (*forcing, *waiting):
                assert {problem.topic for problem in shell.errors} == {topic}
        lines = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        assert [line for line in lines if topic not in line] == []
    seen.check("denied-others", "denied-forced", "denied-alone")


def raised_to_each(shell: Shell, topic: str) -> float:
    """Checks that waits for a denied topic raise; returns a time (time.time()) before it was."""
    begin = time.time()
    waits = [shell.begin("wait_for_topic", topic, timeout=30) for _ in range(8)]
    for wait in waits:
        assert isinstance(wait.exception(30), TopicAuthorizationError)
    return begin


def has_leader(topic: str, cache: MetadataCache) -> bool:
    """Returns whether a cache knows a leader of the topic."""
    return cache.leader(topic, 0, None) is not None


# ---- certificates -------------------------------------------------------------------------------


def install(kafka: RealKafka, security: KafkaSecurity, admin: AdminClient, store: str) -> None:
    """Has every node use another certificate for BRIEF; returns when new connections get it."""
    key = f"listener.name.{BRIEF.lower()}.ssl.keystore.location"
    entry = ConfigEntry(key, store, incremental_operation=AlterConfigOpType.SET)
    wanted = Path(store).read_text()

    def is_used(node: int) -> bool:
        place = ("127.0.0.1", kafka.ports_of[BRIEF][node])
        # Each of the broker's network threads takes the new one at its own time.
        return all(ssl.get_server_certificate(place).strip() in wanted for _ in range(9))

    for node in kafka.nodes:
        of_node = ConfigResource(ConfigResource.Type.BROKER, str(node), incremental_configs=[entry])
        admin.incremental_alter_configs([of_node])[of_node].result(30)
        until(partial(is_used, node), "a broker uses its new certificate")


def trust(path: Path, *authorities: Authority) -> None:
    """Replaces the file of the CAs that clients trust, in one step."""
    new = path.with_suffix(".new")
    new.write_text("".join(each.pem for each in authorities))
    os.replace(new, path)


def drop_all(kafka: RealKafka) -> float:
    """Breaks every connection to BRIEF; returns the time."""
    for proxy in kafka.proxies_of[BRIEF].values():
        proxy.drop()
    return time.monotonic()


@on_both
def test_a_certificate_expires_and_the_ca_is_replaced(
    kafka: RealKafka,
    security: KafkaSecurity,
    admin: AdminClient,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    tmp_path: Path,
) -> None:
    path = tmp_path / "trusted.pem"
    tls = {"security.protocol": "ssl", "ssl.ca.location": str(path)}
    conf = {
        **tls,
        "bootstrap.servers": every_bootstrap(kafka, BRIEF),
        "topic.metadata.refresh.interval.ms": 500,
        "reconnect.backoff.max.ms": 1000,
    }
    for number in rounds:
        name = f"{kafka.version}-{number}"
        old, new = Authority("the old CA"), Authority("the new CA")
        trust(path, old)
        ends = datetime.now(timezone.utc) + timedelta(seconds=6)
        install(kafka, security, admin, security.store(f"old-{name}.pem", old, ends))
        with both(conf, "brief", [LED]) as shells:
            answers = [Answers(shell) for shell in shells]
            time.sleep(max(0.0, ends.timestamp() + 1 - time.time()))
            with pytest.raises(TlsError, match="expired on"):
                fetch(MetadataCache(), kafka.address(1, BRIEF), (), conf=tls, timeout=20)
            after = time.monotonic()
            for shell, each in zip(shells, answers, strict=True):
                each.wait(after)
                seen.add("certificate-ended", brokers_name, shell.kind, count(shell, "reconnects"))
                assert texts(shell) == []
            trust(path, old, new)
            install(kafka, security, admin, security.store(f"new-{name}.pem", new))
            before = [len(shell.errors) for shell in shells]
            for trusted in ((old, new), (new,)):
                trust(path, *trusted)
                broken = drop_all(kafka)
                for shell, each in zip(shells, answers, strict=True):
                    seen.add("ca-replaced", brokers_name, shell.kind, each.wait(broken) - broken)
            for shell, count_before in zip(shells, before, strict=True):
                assert "is not trusted" not in "".join(texts(shell)[count_before:])
    seen.check("certificate-ended", "ca-replaced")


# ---- tokens -------------------------------------------------------------------------------------

# Seconds in which requests of tokens are counted.
ASKED_S = 10.0


def oidc(kafka: RealKafka, server: TokenServer) -> dict[str, object]:
    """Returns the configuration of a client that asks a server for tokens."""
    return {
        "bootstrap.servers": every_bootstrap(kafka, SIGNED),
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": server.url,
        "sasl.oauthbearer.client.id": ALICE,
        "sasl.oauthbearer.client.secret": SECRET,
        "topic.metadata.refresh.interval.ms": 500,
        "reconnect.backoff.max.ms": 2000,
    }


@contextmanager
def raising(
    conf: Mapping[str, object], label: str, *words: str
) -> Iterator[tuple[list[Shell], dict[str, float]]]:
    """Yields clients whose first call raises these words, and the seconds until then.

    The server of tokens gets the kind of each client in its client id.
    """
    with ExitStack() as stack:
        shells = [
            stack.enter_context(Shell(kind, {**conf, **ids(kind, label)}, starts=False))
            for kind in KINDS
        ]
        begin = time.monotonic()
        calls = [shell.begin("wait_for_topic", LED, timeout=30) for shell in shells]
        took: dict[str, float] = {}
        for shell, call in zip(shells, calls, strict=True):
            error = call.exception(60)
            took[shell.kind] = time.monotonic() - begin
            assert isinstance(error, AuthenticationError)
            assert [word for word in words if word not in str(error)] == [], error
        yield shells, took


def ids(kind: str, label: str) -> dict[str, str]:
    """Returns what a client calls itself."""
    return {"client.id": f"{kind}-{label}", "sasl.oauthbearer.client.id": f"{kind}-{label}"}


def asked_by(server: TokenServer, kind: str, label: str) -> int:
    """Returns the number of requests of a client."""
    return server.askers.count(f"{kind}-{label}")


def have_logged_in_again(shells: list[Shell]) -> bool:
    """Returns whether each client has logged in again on its connection."""
    return all(count(shell, "reauthentications") > 0 for shell in shells)


@on_both
def test_the_server_of_tokens_is_slow_then_down_and_comes_back(
    kafka: RealKafka, security: KafkaSecurity, brokers_name: str, rounds: range, seen: Seen
) -> None:
    url = "sasl.oauthbearer.token.endpoint.url"
    for _ in rounds:
        with TokenServer(ALICE, SECRET) as server, ExitStack() as stack:
            good_answer = server.answer = security.signer.answer(ALICE, 600)
            conf = oidc(kafka, server)
            good = []
            for kind in KINDS:
                shell = stack.enter_context(Shell(kind, {**conf, "client.id": f"{kind}-good"}))
                begin = time.monotonic()
                shell.call("wait_for_topic", LED, timeout=30)
                seen.add("oidc", brokers_name, kind, time.monotonic() - begin)
                good.append(shell)
            others = [Answers(shell) for shell in good]
            server.delay = 15.0
            with raising(conf, "slow", url, "gave no answer in 10 s") as (_, took):
                for kind, seconds in took.items():
                    seen.add("token-slow", brokers_name, kind, seconds)
                    assert asked_by(server, kind, "slow") <= 2
            server.delay, server.answer = 0.0, (503, b"")
            begin = time.monotonic()
            with raising(conf, "busy", url, "503"):
                time.sleep(max(0.0, begin + ASKED_S - time.monotonic()))
                for kind in KINDS:
                    seen.add("token-asked", brokers_name, kind, asked_by(server, kind, "busy"))
            server.stop()
            server.answer = good_answer
            with raising(conf, "down", url, "cannot be reached") as (shells, _):
                answers = [Answers(shell) for shell in shells]
                until(partial(have_logged_in_again, good), "a login with the kept token")
                stopped = time.monotonic()
                for each in others:
                    each.wait(stopped)
                server.start()
                back = time.monotonic()
                for shell, each in zip(shells, answers, strict=True):
                    seen.add("token-back", brokers_name, shell.kind, each.wait(back) - back)
            for shell in good:
                assert (count(shell, "reconnects"), texts(shell)) == (0, [])
    seen.check("oidc", "token-slow", "token-asked", "token-back")


# ---- the end of the minute ----------------------------------------------------------------------


def test_sessions_of_five_seconds_last_a_minute_and_then_the_password_is_changed(
    first_minute: list[Sessions],
    security: KafkaSecurity,
    rounds: range,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in rounds:
        if number == 0:
            check_minute(first_minute, number, seen, caplog)
            continue
        with ExitStack() as stack:
            clusters = [each.kafka for each in first_minute]
            again = [
                stack.enter_context(Sessions(kafka, security, new_password(number - 1)))
                for kafka in clusters
            ]
            check_minute(again, number, seen, caplog)
    seen.check("sessions", "sessions-kept", "sessions-blocked")
    seen.check("password-changed", "password-line", "password-followed")


def new_password(number: int) -> str:
    """Returns the password after a round."""
    return f"{MARK}-new-{number}"


def check_minute(
    sessions: list[Sessions], number: int, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    """Waits for the end of the minute, changes the password, and checks all clients."""
    for each in sessions:
        each.record_minute(seen)
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    changes = [Change(each, new_password(number)) for each in sessions]
    for change in changes:
        change.check_refusals(seen)
    for change in changes:
        change.check_end(caplog.records, seen)
    for each in sessions:
        each.close()  # its clients do not learn of the next password
    assert MARK not in "".join(record.getMessage() for record in caplog.records)


class Refusals:
    """The times (time.monotonic()) at which a client has reported refused logins."""

    def __init__(self, shell: Shell) -> None:
        self.at: list[float] = []
        shell.call("on_error", self._take)

    def _take(self, problems: Sequence[rdmeta.Problem]) -> None:
        if any(isinstance(problem.error, AuthenticationError) for problem in problems):
            self.at.append(time.monotonic())


class Change:
    """A change of a cluster's password, and what its clients do about it."""

    def __init__(self, sessions: Sessions, password: str) -> None:
        self._kafka, self._asking = sessions.kafka, sessions.asking
        for shell in sessions.blocked:
            shell.call("close")
        self._refusals = [(shell, Refusals(shell)) for shell in sessions.fixed]
        self._at = sessions.change(password)
        self._before = [logins_on_one_connection(shell) for shell in self._asking]

    def check_refusals(self, seen: Seen) -> None:
        """Checks that clients that have the old password raise a clear error."""
        for shell, refusals in self._refusals:
            until(partial(len, refusals.at), "the error")
            took = refusals.at[0] - self._at
            seen.add("password-changed", named(self._kafka), shell.kind, took)
            with pytest.raises(AuthenticationError, match=r"sasl\.password"):
                shell.call("refresh", timeout=30)

    def check_end(self, records: Sequence[logging.LogRecord], seen: Seen) -> None:
        """Checks all clients CHANGED_S after the change."""
        time.sleep(max(0.0, self._at + CHANGED_S - time.monotonic()))
        name = named(self._kafka)
        for shell, before in zip(self._asking, self._before, strict=True):
            logins = logins_on_one_connection(shell) - before
            seen.add("password-followed", name, shell.kind, logins)
            assert texts(shell) == []
        for shell, refusals in self._refusals:
            assert len(refusals.at) > 1
            seen.add("password-line", name, shell.kind, self._check_lines(shell, records))

    def _check_lines(self, shell: Shell, records: Sequence[logging.LogRecord]) -> int:
        """Checks that a client's lines name the server, the cause and the option; counts them."""
        thread = shell.in_loop(threading.get_ident).result(30)
        own = [each for each in records if each.thread == thread]
        lines = [each.getMessage() for each in own if each.levelno >= logging.WARNING]
        servers = [self._kafka.address(node, SECURE) for node in self._kafka.nodes]
        for line in lines:
            assert any(line.startswith(f"{server}: ") for server in servers), line
            assert "invalid credentials" in line
            assert "check sasl.username and sasl.password" in line
        return len(lines)


# ---- storms -------------------------------------------------------------------------------------

CLIENTS, STORM_S = 100, 15.0


def close_in(loop: LoopThread, client: rdmeta.AsyncClient) -> None:
    """Closes an asyncio client in its loop."""
    loop.run(client.__aexit__(None, None, None))


def async_stats(loop: LoopThread, client: rdmeta.AsyncClient) -> dict[str, Any]:
    """Returns the statistics of an asyncio client."""
    return loop.call(client.stats)


@contextmanager
def crowd(kind: str, conf: dict[str, object]) -> Iterator[Callable[[], list[int]]]:
    """Runs CLIENTS started clients of a kind; yields what returns how often each has tried."""
    with ExitStack() as stack:
        stats: list[Callable[[], dict[str, Any]]] = []
        loop = stack.enter_context(LoopThread("crowd"))
        for _ in range(CLIENTS):
            if kind == "Client":
                client = stack.enter_context(rdmeta.Client(conf, topics=[LED]))
                client.refresh(wait=False)
                stats.append(client.stats)
            else:
                each = loop.call(partial(rdmeta.AsyncClient, conf, topics=[LED]))
                loop.run(each.__aenter__())
                stack.callback(close_in, loop, each)
                stats.append(partial(async_stats, loop, each))
        yield lambda: [
            sum(int(node["attempts"]) for node in each()["nodes"].values()) for each in stats
        ]


def have_clients(doors: list[Proxy]) -> bool:
    """Returns whether each client has connected once."""
    return all(len(door.accepted) >= CLIENTS for door in doors)


def tries_at(shell: Shell, proxy: Proxy) -> int:
    """Returns how often a client has tried to connect to the node behind a proxy."""
    nodes = shell.call("stats")["nodes"].values()
    return sum(int(node["attempts"]) for node in nodes if node["port"] == proxy.port)


def have_met(shells: list[Shell], proxy: Proxy) -> bool:
    """Returns whether each client has tried to connect to the node behind a proxy."""
    return all(tries_at(shell, proxy) > 0 for shell in shells)


@on_both
def test_two_hundred_clients_have_a_wrong_password(
    kafka: RealKafka, security: KafkaSecurity, brokers_name: str, rounds: range, seen: Seen
) -> None:
    right = security.conf()
    wrong = {**right, "sasl.password": f"{MARK}-wrong"}
    for _ in rounds:
        with LoopThread("doors") as loop, ExitStack() as stack:
            doors, tries = {}, {}
            for kind in KINDS:
                proxy = Proxy(loop, kafka.address(1, SECURE))
                doors[kind] = stack.enter_context(proxy)
                conf = {"bootstrap.servers": proxy.address, **wrong}
                tries[kind] = stack.enter_context(crowd(kind, conf))
            until(partial(have_clients, list(doors.values())), "a login of each client")
            first = {kind: min(door.accepted) for kind, door in doors.items()}
            fetch(MetadataCache(), kafka.address(1, SECURE), (), conf=right, timeout=20)
            for kind in sorted(KINDS, key=lambda kind: first[kind]):
                time.sleep(max(0.0, first[kind] + STORM_S - time.monotonic()))
                tried = tries[kind]()
                seen.add("login-storm", brokers_name, kind, max(tried))
                assert min(tried) >= 1
                assert len(doors[kind].accepted) <= 2 * CLIENTS
    seen.check("login-storm")


def test_a_password_is_wrong_on_one_broker_only(
    kafka: RealKafka,
    security: KafkaSecurity,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Nodes, "_from_random_place", lambda _, servers: servers)
    proxies = kafka.proxies_of[CUT]
    last = kafka.nodes[-1]
    conf = {
        **security.conf("PLAIN"),
        "bootstrap.servers": ",".join(proxies[node].address for node in (last, *kafka.nodes)),
        "sasl.username": CAROL,
        "sasl.password": CAROLS_PASSWORD,
        "topic.metadata.refresh.interval.ms": 500,
    }
    for _ in rounds:
        begin = time.monotonic()
        with both(conf, "one-refuses", [LED]) as shells:
            until(partial(have_met, shells, proxies[last]), "a refusal of each")
            while time.monotonic() < begin + STORM_S:
                for shell in shells:
                    shell.call("refresh", timeout=20)
                time.sleep(0.2)
            for shell in shells:
                seen.add("one-refuses", brokers_name, shell.kind, tries_at(shell, proxies[last]))
                assert {type(problem.error) for problem in shell.errors} == {AuthenticationError}
    seen.check("one-refuses")
