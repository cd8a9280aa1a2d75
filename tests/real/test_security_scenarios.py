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
from confluent_kafka.admin._acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
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
from real_kafka import RealKafka, missing
from scenario_run import LED, Seen, create
from token_server import TokenServer
from waiting import until

import rdmeta
from rdmeta import (
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
STALL_S = 0.15
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


class Stalls:
    """A thread that measures for how long the machine has not let this process run."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Stalls:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.01):
            now = time.monotonic()
            self.longest, last = max(self.longest, now - last), now


class Sessions:
    """Clients of one cluster whose sessions last 5 s: two with a password, two that ask for it."""

    def __init__(self, kafka: RealKafka, security: KafkaSecurity, password: str) -> None:
        self.kafka, self.password, self.vault = kafka, password, Vault(password)
        self._conf = {
            **security.conf("SCRAM-SHA-256"),
            "bootstrap.servers": every_bootstrap(kafka, SECURE),
            "topic.metadata.refresh.interval.ms": 1000,
            "sasl.username": BOB,
        }

    def __enter__(self) -> Sessions:
        self._stack = ExitStack()
        self.stalls = self._stack.enter_context(Stalls())
        fixed = {**self._conf, "sasl.password": self.password}
        asking = {**self._conf, "sasl.password": self.vault.password}
        self.fixed = self._stack.enter_context(both(fixed, "fixed", [LED]))
        self.asking = self._stack.enter_context(both(asking, "asking", [LED]))
        self.begun = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the clients; a second call does nothing."""
        self._stack.close()

    def check_unbroken(self, shell: Shell) -> None:
        """Checks that a client's connection never ended.

        A login may come 0.25 s before the end of a session. A process that did not run for so long
        is too late for one of them.
        """
        lost = count(shell, "reconnects")
        assert lost <= (1 if self.stalls.longest > STALL_S else 0), texts(shell)
        assert len(shell.errors) <= lost, texts(shell)

    def change(self, password: str) -> float:
        """Changes the user's password; returns the time of the change."""
        with self.vault.changing(password):
            alter_password(self.kafka, password)
            return time.monotonic()


def alter_password(kafka: RealKafka, password: str) -> None:
    """Gives BOB another password, and returns when every broker takes it."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion(BOB, info, password.encode())
    for done in admin.alter_user_scram_credentials([change]).values():
        done.result(30)


@pytest.fixture(scope="module")
def first_minute(
    clusters: Callable[[str], RealKafka], security: KafkaSecurity
) -> Iterator[list[Sessions]]:
    """Yields clients with short sessions, which run while other tests do."""
    if reason := next(filter(None, map(missing, VERSIONS)), None):
        pytest.skip(reason)
    with ExitStack() as stack:
        yield [
            stack.enter_context(Sessions(clusters(version), security, BOBS_PASSWORD))
            for version in VERSIONS
        ]


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
) -> None:
    conf = {"bootstrap.servers": every_bootstrap(kafka, SECURE), **security.conf()}
    for number in rounds:
        topic = f"denied-{number}"
        create(kafka, topic, [list(kafka.nodes)])
        for done in admin.create_acls([denial(topic)]).values():
            done.result(30)
        with both(conf, "forcing", [LED]) as forcing, both(conf, "waiting", [LED]) as waiting:
            for shell in (*forcing, *waiting):
                waits = [shell.begin("wait_for_topic", topic, timeout=30) for _ in range(8)]
                for wait in waits:
                    assert isinstance(wait.exception(30), TopicAuthorizationError)
                assert shell.cache.leader(LED, 0) is not None
                shell.call("refresh", timeout=30)
            for removed in admin.delete_acls([denial(topic, AclBindingFilter)]).values():
                removed.result(30)
            granted, granted_at = time.monotonic(), time.time()
            # A broker may take the rule a moment later than the controller.
            time.sleep(0.3)
            for shell in forcing:
                begin = time.monotonic()
                shell.call("refresh", [topic], timeout=30, force=True)
                seen.add("denied-forced", brokers_name, shell.kind, time.monotonic() - begin)
                assert shell.cache.leader(topic, 0) is not None
            known = [shell.begin_until(partial(has_leader, topic)) for shell in waiting]
            for shell, at in zip(waiting, known, strict=True):
                seen.add("denied-alone", brokers_name, shell.kind, at.result(60) - granted_at)
            assert time.monotonic() - granted < 30
    seen.check("denied-forced", "denied-alone")


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
                assert "certificate" not in "".join(texts(shell)[count_before:])
    seen.check("certificate-ended", "ca-replaced")


# ---- tokens -------------------------------------------------------------------------------------


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
    """Yields clients whose first call raises these words, and the seconds until then."""
    with ExitStack() as stack:
        shells = [
            stack.enter_context(Shell(kind, {**conf, "client.id": f"{kind}-{label}"}, starts=False))
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
            server.answer = security.signer.answer(ALICE, 600)
            conf = oidc(kafka, server)
            good = []
            for kind in KINDS:
                shell = stack.enter_context(Shell(kind, {**conf, "client.id": f"{kind}-good"}))
                begin = time.monotonic()
                shell.call("wait_for_topic", LED, timeout=30)
                seen.add("oidc", brokers_name, kind, time.monotonic() - begin)
                good.append(shell)
            server.delay = 15.0
            with raising(conf, "slow", url, "gave no answer in 10 s") as (_, took):
                for kind, seconds in took.items():
                    seen.add("token-slow", brokers_name, kind, seconds)
            server.stop()
            with raising(conf, "down", url, "cannot be reached") as (shells, _):
                answers = [Answers(shell) for shell in shells]
                until(partial(have_logged_in_again, good), "a login with the kept token")
                server.delay = 0.0
                server.start()
                back = time.monotonic()
                for shell, each in zip(shells, answers, strict=True):
                    seen.add("token-back", brokers_name, shell.kind, each.wait(back) - back)
            for shell in good:
                assert (count(shell, "reconnects"), texts(shell)) == (0, [])
    seen.check("oidc", "token-slow", "token-back")


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
    seen.check("sessions", "password-changed", "password-followed")


def new_password(number: int) -> str:
    """Returns the password after a round."""
    return f"{MARK}-new-{number}"


def check_minute(
    sessions: list[Sessions], number: int, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    """Waits for the end of the minute, changes the password, and checks all clients."""
    begun = max(each.begun for each in sessions)
    time.sleep(max(0.0, begun + MINUTE_S - time.monotonic()))
    for each in sessions:
        for shell in (*each.fixed, *each.asking):
            logins = count(shell, "reauthentications")
            logins_per_minute = logins * MINUTE_S / (time.monotonic() - each.begun)
            seen.add("sessions", named(each.kafka), shell.kind, logins_per_minute)
            assert logins_per_minute >= 10
            each.check_unbroken(shell)
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    for each in sessions:
        check_change(each, new_password(number), seen)
    for each in sessions:
        each.close()  # its clients do not learn of the next password
    fixed = sum(len(each.fixed) for each in sessions)
    lines = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    # One says that the session ended, another that a new connection is refused.
    assert fixed <= len(lines) <= 2 * fixed, lines
    assert all("sasl.password" in line for line in lines), lines
    assert MARK not in "".join(record.getMessage() for record in caplog.records)


def has_been_refused(shell: Shell) -> bool:
    """Returns whether a client has reported a login that failed."""
    return any(isinstance(problem.error, AuthenticationError) for problem in shell.errors)


def check_change(sessions: Sessions, password: str, seen: Seen) -> None:
    """Changes the password: clients that ask for it go on, the others raise one clear error."""
    name = named(sessions.kafka)
    before = {shell.client_id: count(shell, "reauthentications") for shell in sessions.asking}
    changed = sessions.change(password)
    for shell in sessions.fixed:
        until(partial(has_been_refused, shell), "the error")
        seen.add("password-changed", name, shell.kind, time.monotonic() - changed)
        with pytest.raises(AuthenticationError, match=r"sasl\.password"):
            shell.call("refresh", timeout=30)
    time.sleep(max(0.0, changed + 6 - time.monotonic()))
    for shell in sessions.asking:
        logins = count(shell, "reauthentications") - before[shell.client_id]
        seen.add("password-followed", name, shell.kind, logins)
        assert logins >= 1
        sessions.check_unbroken(shell)


# ---- storms -------------------------------------------------------------------------------------

CLIENTS, STORM_S = 100, 15.0


def close_in(loop: LoopThread, client: rdmeta.AsyncClient) -> None:
    """Closes an asyncio client in its loop."""
    loop.run(client.__aexit__(None, None, None))


@contextmanager
def crowd(kind: str, conf: dict[str, object]) -> Iterator[None]:
    """Runs CLIENTS started clients of a kind."""
    with ExitStack() as stack:
        if kind == "Client":
            for _ in range(CLIENTS):
                client = stack.enter_context(rdmeta.Client(conf, topics=[LED]))
                client.refresh(wait=False)
        else:
            loop = stack.enter_context(LoopThread("crowd"))
            for _ in range(CLIENTS):
                each = loop.call(partial(rdmeta.AsyncClient, conf, topics=[LED]))
                loop.run(each.__aenter__())
                stack.callback(close_in, loop, each)
        yield


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


def test_two_hundred_clients_have_a_wrong_password(
    kafka: RealKafka, security: KafkaSecurity, brokers_name: str, rounds: range, seen: Seen
) -> None:
    right = security.conf()
    wrong = {**right, "sasl.password": f"{MARK}-wrong"}
    for _ in rounds:
        with LoopThread("doors") as loop, ExitStack() as stack:
            doors = {}
            for kind in KINDS:
                proxy = Proxy(loop, kafka.address(1, SECURE))
                doors[kind] = stack.enter_context(proxy)
                stack.enter_context(crowd(kind, {"bootstrap.servers": proxy.address, **wrong}))
            until(partial(have_clients, list(doors.values())), "a login of each client")
            first = {kind: min(door.accepted) for kind, door in doors.items()}
            fetch(MetadataCache(), kafka.address(1, SECURE), (), conf=right, timeout=20)
            time.sleep(max(0.0, max(first.values()) + STORM_S - time.monotonic()))
            for kind, door in doors.items():
                logins = [at for at in door.accepted if at < first[kind] + STORM_S]
                seen.add("login-storm", brokers_name, kind, len(logins) / CLIENTS)
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
