"""A security prepares each connection anew, beside the loop, and once for all that wait."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority

from rdmeta.config import Config
from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import OauthSettings, SaslSettings, TlsSettings
from rdmeta.errors import AuthenticationError, ConfigError, Error, TransportError
from rdmeta.net import security
from rdmeta.net.resolve import Endpoint
from rdmeta.net.security import Prepared, Security, for_config

ours = Authority()


OIDC = OauthSettings(
    method="oidc",
    endpoint="https://localhost/token",
    client_id="alice",
    client_secret=Secret("secret", "sasl.oauthbearer.client.secret"),
)


def by_password(password: Any, mechanism: str = "PLAIN", **more: Any) -> Security:
    secret = Secret(password, "sasl.password")
    found = for_config(Config(sasl=SaslSettings(mechanism, "alice", secret), **more))
    assert found is not None
    return found


def first_message(prepared: Prepared) -> bytes:
    assert prepared.login is not None
    return next(prepared.login.exchange())


def test_plaintext_needs_no_security() -> None:
    assert for_config(Config()) is None


def test_tls_gives_a_tunnel_to_the_host_and_no_login() -> None:
    found = for_config(Config(tls=TlsSettings(ca_pem=ours.pem)))
    assert found is not None
    prepared = found.prepare()
    assert prepared.login is None
    tunnel = prepared.tunnel("kafka.example")
    assert tunnel is not None
    assert b"kafka.example" in tunnel.data_to_send(), "the server's name is in the first message"


def test_sasl_without_tls_gives_a_login_and_no_tunnel() -> None:
    prepared = by_password("secret").prepare()
    assert prepared.tunnel("localhost") is None
    assert first_message(prepared) == b"\0alice\0secret"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_each_mechanism_has_its_login(mechanism: str) -> None:
    prepared = by_password("secret", mechanism, tls=TlsSettings()).prepare()
    assert prepared.context is not None
    assert prepared.login is not None
    assert prepared.login.mechanism == mechanism
    assert first_message(prepared).startswith(b"n,,n=alice,r=")


def test_a_callable_is_asked_for_each_connection() -> None:
    passwords = iter(("one", "two"))
    found = by_password(lambda: next(passwords))
    assert first_message(found.prepare()) == b"\0alice\0one"
    assert first_message(found.prepare()) == b"\0alice\0two"


def test_a_token_is_kept_until_a_broker_refuses_it() -> None:
    given: list[str] = []

    def oauth_cb(config: str) -> tuple[str, float]:
        given.append(config)
        return f"token{len(given)}", time.time() + 100

    oauth = OauthSettings(callback=oauth_cb, config="some")
    found = for_config(Config(sasl=SaslSettings("OAUTHBEARER", oauth=oauth)))
    assert found is not None
    assert b"Bearer token1\1" in first_message(found.prepare())
    assert b"Bearer token1\1" in first_message(found.prepare())
    found.refused(Endpoint(socket.AF_INET, ("127.0.0.1", 9092)))
    assert b"Bearer token2\1" in first_message(found.prepare())
    assert given == ["some", "some"]


def test_addresses_that_refused_a_login_come_last_the_newest_refusal_at_the_end() -> None:
    found = by_password("secret")
    one, two, three = (Endpoint(socket.AF_INET, (f"127.0.0.{i}", 9092)) for i in (1, 2, 3))
    assert found.in_order((one, two, three)) == [one, two, three]
    found.refused(one)
    assert found.in_order((one, two, three)) == [two, three, one]
    found.refused(two)
    found.refused(three)
    found.refused(one)
    assert found.in_order((one, two, three)) == [two, three, one]


def test_calls_at_one_time_share_a_result_and_later_ones_have_their_own() -> None:
    entered, go_on, asked = threading.Event(), threading.Event(), []

    def password() -> str:
        asked.append(threading.current_thread())
        entered.set()
        go_on.wait(30)
        return "secret"

    async def main() -> None:
        found, loop = by_password(password), asyncio.get_running_loop()
        first = found.begin(loop)
        entered.wait(30)
        others = [found.begin(loop) for _ in range(10)]
        go_on.set()
        results = await asyncio.gather(first, *others)
        assert all(each is results[0] for each in results)
        await found.begin(loop)

    asyncio.run(main())
    assert len(asked) == 2
    assert all(thread.daemon and thread is not threading.main_thread() for thread in asked)


def test_a_hanging_callable_keeps_no_attempt_that_was_given_up() -> None:
    go_on = threading.Event()

    def password() -> str:
        go_on.wait(30)
        return "secret"

    async def main() -> None:
        found, loop = by_password(password), asyncio.get_running_loop()
        for _ in range(100):
            found.begin(loop).cancel()
        last = found.begin(loop)
        assert [each for _, each in found._waiters] == [last]
        go_on.set()
        await last

    asyncio.run(main())


def test_an_error_reaches_each_that_waits() -> None:
    async def main() -> None:
        tls = TlsSettings(ca_location="/nowhere")
        found = for_config(Config(tls=tls))
        assert found is not None
        for _ in range(2):
            with pytest.raises(ConfigError, match="ssl.ca.location = /nowhere: No such file"):
                await found.begin(asyncio.get_running_loop())

    asyncio.run(main())


def test_the_frames_of_an_error_keep_no_secret() -> None:
    """Tools that report errors also show the local variables of their frames."""
    identity = ours.issue("client")
    key = Secret(ours.issue("other").key, "ssl.key.pem")
    tls = TlsSettings(certificate_pem=identity.certificate, key_pem=key)
    with pytest.raises(ConfigError, match="the key is not the one of") as caught:
        by_password("hunter2", tls=tls).prepare()
    assert caught.value.__context__ is None
    frame = caught.value.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename != __file__:
            for value in frame.tb_frame.f_locals.values():
                assert key.reveal()[40:80] not in repr(value)
                assert "hunter2" not in repr(value)
        frame = frame.tb_next


def test_a_fault_shows_the_type_only_as_its_text_may_have_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: Security) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr(Security, "prepare", fail)

    async def main() -> None:
        with pytest.raises(Error, match="RuntimeError") as caught:
            await by_password("secret").begin(asyncio.get_running_loop())
        assert "hunter2" not in str(caught.value)

    asyncio.run(main())


@pytest.mark.parametrize("raised", [SystemExit, asyncio.CancelledError, KeyboardInterrupt])
def test_a_callable_that_raises_no_exception_ends_its_connection_only(
    raised: type[BaseException],
) -> None:
    asked: list[str] = []

    def password() -> str:
        asked.append("once")
        if len(asked) == 1:
            raise raised("hunter2")
        return "secret"

    async def main() -> None:
        found, loop = by_password(password), asyncio.get_running_loop()
        expected = f"a callable of the configuration raised {raised.__name__}"
        with pytest.raises(ConfigError, match=f"{expected}$") as caught:
            await asyncio.wait_for(found.begin(loop), 30)
        assert caught.value.retriable
        again = await asyncio.wait_for(found.begin(loop), 30)
        assert first_message(again) == b"\0alice\0secret"

    asyncio.run(main())


def test_a_thread_that_cannot_start_fails_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        found = by_password("secret")
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            future = found.begin(asyncio.get_running_loop())
            with pytest.raises(TransportError, match="can't start new thread"):
                await future
        await found.begin(asyncio.get_running_loop())

    asyncio.run(main())


def test_a_loop_that_closed_meanwhile_does_not_matter() -> None:
    entered, go_on = threading.Event(), threading.Event()

    def password() -> str:
        entered.set()
        go_on.wait(30)
        return "secret"

    found = by_password(password)

    async def leave() -> None:
        found.begin(asyncio.get_running_loop())
        await asyncio.to_thread(entered.wait, 30)

    async def stay() -> Prepared:
        future = found.begin(asyncio.get_running_loop())
        go_on.set()
        return await future

    asyncio.run(leave())
    assert first_message(asyncio.run(stay())) == b"\0alice\0secret"


HANGS = """
import asyncio, threading
from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import SaslSettings
from rdmeta.config import Config
from rdmeta.net.security import Security

entered = threading.Event()
secret = Secret(lambda: entered.set() or threading.Event().wait(), "sasl.password")

async def main():
    future = Security(Config(sasl=SaslSettings("PLAIN", "alice", secret))).begin(
        asyncio.get_running_loop()
    )
    entered.wait(30)
    future.cancel()

asyncio.run(main())
"""


def test_a_callable_that_hangs_does_not_hold_up_the_exit() -> None:
    subprocess.run([sys.executable, "-c", HANGS], check=True, timeout=60, env=dict(os.environ))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (SaslSettings("PLAIN", "alice"), "the files and callables of the configuration"),
        (SaslSettings("OAUTHBEARER", oauth=OauthSettings(callback=lambda _: ())), "oauth_cb"),
        (SaslSettings("OAUTHBEARER", oauth=OIDC), "sasl.oauthbearer.token.endpoint.url"),
    ],
)
def test_a_time_out_says_what_took_too_long(settings: SaslSettings, expected: str) -> None:
    assert expected in str(Security(Config(sasl=settings)).timed_out())


def test_a_wrong_token_is_an_error_of_the_login() -> None:
    oauth = OauthSettings(callback=lambda _: ("no token\n", time.time() + 60))
    found = Security(Config(sasl=SaslSettings("OAUTHBEARER", oauth=oauth)))
    with pytest.raises(AuthenticationError, match="oauth_cb"):
        found.prepare()


def test_importing_rdmeta_and_preparing_nothing_loads_no_ssl(tmp_path: Path) -> None:
    code = (
        "import sys, rdmeta, rdmeta.net.security;"
        "assert not {'ssl', 'asyncio', 'urllib.request'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
    assert security.__name__ in sys.modules
