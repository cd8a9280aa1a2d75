"""Tokens of OAUTHBEARER: by a callable, unsecured ones, and how long one is kept."""

from __future__ import annotations

import base64
import json
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import OauthSettings
from rdmeta.errors import AuthenticationError, ConfigError
from rdmeta.net.oauth import TokenSource, unsecured_token
from rdmeta.net.sasl import Token

MARK = "m4rked-S3cret"


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Tokens:
    """An `oauth_cb` that counts its calls; its tokens live `life` seconds by the clock."""

    def __init__(self, clock: Clock, life: float = 100.0) -> None:
        self.clock = clock
        self.life = life
        self.calls: list[str] = []
        self.failure: Exception | None = None

    def __call__(self, config: str) -> tuple[str, float]:
        self.calls.append(config)
        if self.failure is not None:
            raise self.failure
        return f"token{len(self.calls)}", self.clock.now + self.life


def source_of(
    callback: Callable[[str], tuple[Any, ...]], clock: Clock | None = None
) -> TokenSource:
    return TokenSource(OauthSettings(callback, config="scope=x"), clock=clock or Clock())


def value(token: Token) -> str:
    return token.value.reveal()


def claims(token: Token) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the header and the claims of an unsecured token."""
    header, body, signature = value(token).split(".")
    assert signature == ""
    parts = [base64.urlsafe_b64decode(each + "=" * (-len(each) % 4)) for each in (header, body)]
    return json.loads(parts[0]), json.loads(parts[1])


def test_a_token_is_kept_until_80_percent_of_its_life() -> None:
    clock = Clock()
    tokens = Tokens(clock)
    source = source_of(tokens, clock)
    assert tokens.calls == []
    assert value(source.token()) == "token1"
    clock.now += 79.9
    assert value(source.token()) == "token1"
    clock.now += 0.2
    assert value(source.token()) == "token2"
    assert tokens.calls == ["scope=x"] * 2


def test_a_renewal_that_fails_uses_the_old_token_until_it_expires() -> None:
    clock = Clock()
    tokens = Tokens(clock)
    source = source_of(tokens, clock)
    source.token()
    tokens.failure = OSError("down")
    clock.now += 81
    for _ in range(5):
        assert value(source.token()) == "token1"
    assert len(tokens.calls) == 2  # not once for each connection
    clock.now += 10
    assert value(source.token()) == "token1"
    assert len(tokens.calls) == 3
    clock.now += 10
    with pytest.raises(AuthenticationError, match="oauth_cb raised OSError in __call__"):
        source.token()
    tokens.failure = None
    assert value(source.token()) == "token5"


def test_after_a_failure_no_token_is_asked_for_during_a_pause_that_doubles() -> None:
    clock = Clock()
    tokens = Tokens(clock)
    settings = OauthSettings(tokens, config="scope=x")
    source = TokenSource(settings, backoff=(1.0, 3.0), clock=clock)
    tokens.failure = OSError("the vault is down")
    begin, asked_at = clock.now, []
    for _ in range(48):
        before = len(tokens.calls)
        with pytest.raises(AuthenticationError, match="oauth_cb raised OSError") as caught:
            source.token()
        assert caught.value.retriable
        if len(tokens.calls) > before:
            asked_at.append(clock.now - begin)
        clock.now += 0.25
    assert asked_at == [0.0, 1.0, 3.0, 6.0, 9.0]
    tokens.failure = None
    clock.now += 3.0
    assert value(source.token()) == "token6"
    source.forget()
    tokens.failure = ValueError()
    with pytest.raises(AuthenticationError, match="oauth_cb raised ValueError"):
        source.token()
    tokens.failure = None
    clock.now += 1.1  # the first pause again
    assert value(source.token()) == "token8"


def test_a_token_that_was_forgotten_is_asked_for_anew() -> None:
    clock = Clock()
    source = source_of(Tokens(clock), clock)
    source.token()
    source.forget()
    assert value(source.token()) == "token2"


def fetched(config: str) -> str:
    """Raises, as a library does that shows what it was sent."""
    raise LookupError(f"refused: client_secret={MARK}\n{config}")


def test_a_callable_that_raises_is_named_with_the_place_and_without_the_text() -> None:
    def callback(config: str) -> tuple[str, float]:
        try:
            return fetched(config), 2e10
        except LookupError as error:
            raise ValueError(f"no token: {error}") from error

    with pytest.raises(AuthenticationError) as caught:
        source_of(callback).token()
    line = callback.__code__.co_firstlineno + 4
    assert str(caught.value) == (
        f"oauth_cb raised ValueError in callback (test_oauth.py:{line});"
        " its text may have a secret and is not shown"
    )
    assert caught.value.retriable
    assert MARK not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None
    with pytest.raises(AuthenticationError, match=r"LookupError in fetched \(test_oauth\.py:"):
        source_of(lambda config: (fetched(config), 2e10)).token()


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (None, "NoneType; expected"),
        ("token", "str; expected"),
        (("token",), "a tuple of 1; expected"),
        (("token", 1, "p", {}, 5), "a tuple of 5; expected"),
        ((b"token", 2e9), "a token of type bytes"),
        (("token", "2e9"), "an expiry of type str"),
        (("token", True), "an expiry of type bool"),
        (("token", 1.7e12), "seems to be in milliseconds"),
        (("token", float("nan")), "expected seconds"),
        (("token", float("inf")), "expected seconds"),
        (("token", 2e9, "alice", ["a"]), "no dict of str to str"),
        (("token", 2e9, "alice", {"a": 1}), "no dict of str to str"),
    ],
)
def test_a_callable_with_another_answer_is_told_what_is_expected(answer: Any, what: str) -> None:
    with pytest.raises(ConfigError, match=f"oauth_cb returned .*{what}"):
        source_of(lambda config: answer).token()


@pytest.mark.parametrize(
    ("answer", "principal", "extensions"),
    [
        (("t", 2e9), "", ()),
        (("t", 2_000_000_000, "alice"), "alice", ()),
        (("t", 2e9, None, None), "", ()),
        (("t", 2e9, "alice", {"logicalCluster": "l"}), "alice", (("logicalCluster", "l"),)),
    ],
)
def test_the_principal_and_the_extensions_of_a_callable_are_taken(
    answer: tuple[Any, ...], principal: str, extensions: tuple[tuple[str, str], ...]
) -> None:
    token = source_of(lambda config: answer).token()
    assert (token.principal, token.extensions) == (principal, extensions)
    assert token.origin == "what oauth_cb returns"


def test_a_token_that_has_expired_is_an_error_that_names_the_clock() -> None:
    clock = Clock()
    source = source_of(lambda config: ("token", clock.now - 5), clock)
    with pytest.raises(AuthenticationError, match="expired 5 s ago: check what oauth_cb.*clock"):
        source.token()


def test_an_unsecured_token_has_the_claims_of_librdkafkas() -> None:
    config = (
        "principalClaimName=azp principal=admin  scopeClaimName=roles scope=r1,,r2 lifeSeconds=60"
        " extension_traceId=123"
    )
    token = unsecured_token(config, 1000.5)
    header, body = claims(token)
    assert header == {"alg": "none"}
    assert body == {"azp": "admin", "roles": ["r1", "r2"], "iat": 1000.5, "exp": 1060.5}
    assert (token.expires_at, token.principal) == (1060.5, "admin")
    assert token.extensions == (("traceId", "123"),)
    assert token.origin == "sasl.oauthbearer.config"
    assert claims(unsecured_token("principal=bob", 0))[1] == {"sub": "bob", "iat": 0, "exp": 3600}


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ("", "has no principal=NAME"),
        ("scope=x", "has no principal=NAME"),
        ("principal=", "'principal' has no value"),
        ("principal=a colour=red", "part 2 has an unknown name; expected principal, "),
        ("principal=a red", "part 2 has no value; expected NAME=VALUE"),
        ("principal=a lifeSeconds=0", "number of seconds"),
        ("principal=a lifeSeconds=-1", "number of seconds"),
        ("principal=a lifeSeconds=x", "number of seconds"),
        ("principal=a lifeSeconds=" + "9" * 5000, "number of seconds"),
        ("principal=a lifeSeconds=²", "number of seconds"),
    ],
)
def test_a_wrong_configuration_of_unsecured_tokens_is_refused_at_once(
    config: str, what: str
) -> None:
    with pytest.raises(ConfigError, match=f"^sasl.oauthbearer.config.*{what}"):
        TokenSource(OauthSettings(config=config, unsecured=True))


def test_an_unsecured_configuration_by_a_callable_is_asked_at_each_renewal() -> None:
    clock, asked = Clock(), []

    def config() -> str:
        asked.append(1)
        return "principal=alice lifeSeconds=100"

    secret = Secret(config, "sasl.oauthbearer.config")
    source = TokenSource(OauthSettings(config=secret, unsecured=True), clock=clock)
    assert asked == []
    source.token()
    clock.now += 50
    source.token()
    assert len(asked) == 1
    clock.now += 31
    source.token()
    assert len(asked) == 2


def test_confluent_calls_the_same_callable() -> None:
    seen: list[tuple[Any, ...]] = []

    def callback(config: str) -> tuple[str, float, str, dict[str, str]]:
        answer = "abc.def", 2e9, "alice", {"name": "value"}
        seen.append((config, *answer))
        return answer

    conf: dict[str, Any] = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.config": "scope=x",
        "oauth_cb": callback,
        "log_level": 0,
    }
    client, end = AdminClient(conf), time.monotonic() + 30
    while not seen and time.monotonic() < end:
        client.poll(0.1)
    assert seen == [("scope=x", "abc.def", 2e9, "alice", {"name": "value"})]
    token = source_of(callback).token()
    assert (value(token), token.expires_at, token.principal) == ("abc.def", 2e9, "alice")


def test_no_repr_of_a_token_shows_it() -> None:
    token = source_of(lambda config: (MARK, 2e9)).token()
    assert MARK not in repr(token)
