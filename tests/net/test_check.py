"""check() tries each bootstrap server and each advertised broker, and names the step that fails."""

from __future__ import annotations

import datetime
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import METADATA, Brokers, Fault, black_hole
from certificates import LONG_AGO, Authority
from frames import B
from login_server import LoginServer
from marked_secrets import Secrets, described
from secured import Guard
from waiting import PROMPT

import rdmeta
from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    MalformedError,
    RequestTimedOutError,
    TlsError,
    TransportError,
)
from rdmeta.net.check import STEPS, CheckedServer, check

PASSWORD = "m4rked-password"
ours = Authority()
END = datetime.datetime(2099, 3, 4, tzinfo=datetime.timezone.utc)


@pytest.fixture
def secrets() -> Secrets:
    found = Secrets()
    found.add("the password", PASSWORD)
    return found


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Yields a listener whose connections get no answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def guarded(**options: Any) -> Guard:
    """Returns the security of brokers whose certificate is for 127.0.0.1, until END."""
    options.setdefault("not_after", END)
    return Guard(ours.server("127.0.0.1", **options), LoginServer({"alice": PASSWORD}))


def secured(bootstrap: str, **more: object) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
        "ssl.ca.pem": ours.pem,
        **more,
    }


def plain(bootstrap: str) -> dict[str, object]:
    return {"bootstrap.servers": bootstrap}


def failures(servers: tuple[CheckedServer, ...]) -> list[tuple[str | None, type[Error]]]:
    return [(each.failed, type(each.error)) for each in servers if each.error is not None]


def test_a_server_without_a_fault_has_each_step_with_its_time() -> None:
    with Brokers(1) as brokers:
        brokers[1].fault.delay = 0.05
        began = time.monotonic()
        (found,) = rdmeta.check(plain(brokers[1].address))
    assert list(found.seconds) == ["name", "tcp", "versions", "metadata"]
    assert found.seconds["versions"] >= 0.05
    assert found.seconds["metadata"] >= 0.05
    assert sum(found.seconds.values()) <= time.monotonic() - began
    assert (found.server, found.broker, found.is_bootstrap) == (brokers[1].address, 1, True)
    assert (found.failed, found.error, found.cluster_id) == (None, None, "cluster")
    assert (found.tls, found.expires) == (None, None)
    assert found.versions[METADATA] == (0, 13)


def test_advertised_brokers_are_tried_after_the_bootstrap_servers() -> None:
    with Brokers(3) as brokers:
        found = check(plain(brokers[2].address))
        assert [(each.broker, each.is_bootstrap) for each in found] == [
            (2, True),
            (1, False),
            (3, False),
        ]
        assert [each.server for each in found] == [brokers[id].address for id in (2, 1, 3)]
        assert [len(broker.accepted) for broker in brokers] == [1, 1, 1]


def test_a_broker_that_is_advertised_wrong_is_found() -> None:
    with Brokers(1) as brokers:
        brokers.truth.brokers[7] = B(7, "no-such-host.invalid", 9092)
        brokers.truth.brokers[8] = B(8, "127.0.0.1", 1)
        here, no_name, no_port = check(plain(brokers[1].address))
    assert here.error is None
    assert (no_name.broker, no_name.failed, no_name.seconds) == (7, "name", {})
    assert isinstance(no_name.error, TransportError)
    assert (no_port.broker, no_port.failed, list(no_port.seconds)) == (8, "tcp", ["name"])
    assert "cannot connect: Connection refused" in str(no_port.error)


def test_a_bootstrap_server_that_no_broker_advertises_has_no_id() -> None:
    with Brokers(1) as brokers:
        alias = f"localhost:{brokers[1].port}"
        first, second = check(plain(alias))
    assert (first.server, first.broker, first.error) == (alias, None, None)
    assert (second.broker, second.is_bootstrap) == (1, False)


def test_tls_and_the_login_are_steps() -> None:
    with Brokers(2, guard=guarded()) as brokers:
        found = check(secured(brokers.bootstrap))
    for each in found:
        assert tuple(each.seconds) == STEPS
        assert (each.error, each.tls, each.expires) == (None, "TLSv1.3", END)


def test_a_certificate_that_is_not_trusted_fails_at_tls() -> None:
    with Brokers(1, guard=guarded()) as brokers:
        conf = secured(brokers.bootstrap) | {"ssl.ca.pem": Authority().pem}
        (found,) = check(conf)
    assert failures((found,)) == [("tls", TlsError)]
    assert list(found.seconds) == ["name", "tcp"]
    assert found.expires == END
    assert "set ssl.ca.location" in str(found.error)


def test_a_certificate_that_has_expired_is_dated() -> None:
    with Brokers(1, guard=guarded(not_after=LONG_AGO)) as brokers:
        (found,) = check(secured(brokers.bootstrap))
    assert failures((found,)) == [("tls", TlsError)]
    assert found.expires == LONG_AGO


def test_a_wrong_password_fails_at_sasl_and_is_not_shown(secrets: Secrets) -> None:
    with Brokers(1, guard=guarded()) as brokers:
        assert brokers[1].guard is not None
        brokers[1].guard.logins = LoginServer({"alice": "another"})
        (found,) = check(secured(brokers.bootstrap))
    assert failures((found,)) == [("sasl", AuthenticationError)]
    assert list(found.seconds) == ["name", "tcp", "tls", "versions"]
    assert isinstance(found.error, AuthenticationError)
    secrets.check(repr(found) + described(found.error))


@pytest.mark.parametrize("delay", [0.1, 0.4])
def test_a_login_that_two_servers_refuse_is_not_tried_at_a_third(delay: float) -> None:
    with Brokers(4, guard=replace(guarded(), delay=delay)) as brokers:
        found = check(secured(brokers.bootstrap, **{"sasl.password": "wrong-password"}))
        assert [len(broker.logins) for broker in brokers] == [1, 1, 0, 0]
    assert failures(found) == [("sasl", AuthenticationError)] * 4
    assert str(found[2].error).startswith("not tried: two servers refused the login alike")


def test_no_token_fails_at_sasl() -> None:
    with Brokers(1, guard=guarded()) as brokers, socket.create_server(("127.0.0.1", 0)) as dead:
        url = f"http://127.0.0.1:{dead.getsockname()[1]}/token"
        dead.close()
        conf = {
            **secured(brokers.bootstrap),
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": PASSWORD,
            "sasl.oauthbearer.token.endpoint.url": url,
        }
        conf = {key: conf[key] for key in conf if key not in ("sasl.username", "sasl.password")}
        (found,) = check(conf)
    assert found.failed == "sasl"
    assert found.seconds == {}


def test_a_port_that_is_no_brokers_fails_at_versions() -> None:
    with Brokers(1) as brokers:
        brokers[1].greeting = b"SSH-2.0-OpenSSH_9.2\r\n"
        (found,) = check(plain(brokers.bootstrap))
    assert failures((found,)) == [("versions", MalformedError)]


def test_a_broker_that_refuses_metadata_fails_there() -> None:
    with Brokers(1) as brokers:
        brokers[1].next(Fault(error=129))
        (found,) = check(plain(brokers.bootstrap))
    assert found.failed == "metadata"
    assert found.error is not None
    assert found.error.code == 129


def test_a_server_that_is_silent_costs_the_time_out(silent: socket.socket) -> None:
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    began = time.monotonic()
    (found,) = check(plain(address), 0.2)
    assert 0.2 <= time.monotonic() - began < PROMPT
    assert failures((found,)) == [("versions", RequestTimedOutError)]


def test_bootstrap_servers_that_are_silent_cost_the_time_out_once() -> None:
    with Brokers(1) as brokers, ExitStack() as stack:
        holes = [stack.enter_context(black_hole()) for _ in range(6)]
        begin = time.monotonic()
        servers = check(plain(",".join([*holes, brokers.bootstrap])), timeout=1.0)
        assert time.monotonic() - begin < PROMPT
    assert [each.failed for each in servers] == ["tcp"] * 6 + [None]


def test_advertised_brokers_that_are_silent_cost_the_time_out_once() -> None:
    with Brokers(1) as brokers, socket.create_server(("0.0.0.0", 0)) as everywhere:
        for id in range(2, 8):
            brokers.truth.brokers[id] = B(id, f"127.0.0.{id}", everywhere.getsockname()[1])
        began = time.monotonic()
        found = check(plain(brokers[1].address), 1.0)
        assert time.monotonic() - began < PROMPT
    assert failures(found) == [("versions", RequestTimedOutError)] * 6


def test_servers_of_two_clusters_say_so() -> None:
    with Brokers(1) as one, Brokers(1, "another") as other:
        found = check(plain(f"{one.bootstrap},{other.bootstrap}"))
    assert [each.cluster_id for each in found] == ["cluster", "another"]


@pytest.mark.parametrize(
    ("conf", "timeout", "error"),
    [
        ({}, 1.0, ConfigError),
        ({"bootstrap.servers": "x", "sasl.pasword": PASSWORD}, 1.0, ConfigError),
        (
            {
                "bootstrap.servers": "127.0.0.1:1",
                "security.protocol": "ssl",
                "ssl.ca.location": "/missing",
            },
            1.0,
            ConfigError,
        ),
        ({"bootstrap.servers": "x"}, -1, ValueError),
        ({"bootstrap.servers": "x"}, "soon", TypeError),
    ],
)
def test_what_is_wrong_everywhere_is_raised(
    conf: dict[str, object], timeout: Any, error: type[Exception], secrets: Secrets
) -> None:
    with pytest.raises(error) as caught:
        check(conf, timeout)
    secrets.check(described(caught.value))


def test_what_is_wrong_with_a_file_of_later_connections_is_raised(tmp_path: Path) -> None:
    with Brokers(2, guard=guarded()) as brokers:
        ca = ours.write(tmp_path)
        conf = secured(brokers[1].address, **{"ssl.ca.location": ca})
        del conf["ssl.ca.pem"]
        assert failures(check(conf)) == []
        brokers[1].next(Fault(delay=0.5))
        timer = threading.Timer(0.25, lambda: (tmp_path / "ca.pem").unlink())
        timer.start()
        with pytest.raises(ConfigError, match=r"ssl\.ca\.location"):
            check(conf)
        timer.join()


def test_a_bootstrap_server_of_another_cluster_fails_with_both_ids_and_servers() -> None:
    with Brokers(1, "one") as one, Brokers(1, "two") as two:
        good, bad = rdmeta.check({"bootstrap.servers": f"{one.bootstrap},{two.bootstrap}"})
    assert (good.failed, bad.failed) == (None, "metadata")
    assert isinstance(bad.error, rdmeta.WrongClusterError)
    for word in ("'one'", "'two'", one.bootstrap, two.bootstrap):
        assert word in str(bad.error)
