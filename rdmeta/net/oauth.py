"""Tokens for SASL OAUTHBEARER: by a callable, by OIDC client credentials, or unsecured ones.

source = TokenSource(settings)
token = source.token()  # blocks; the same token until 80 % of its life are over
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

from rdmeta.config.secret import Secret, cause_of
from rdmeta.config.security_settings import OauthSettings
from rdmeta.errors import AuthenticationError, ConfigError
from rdmeta.net import oidc
from rdmeta.net.sasl import Token

# The share of a token's life after which it is asked for anew, as in KIP-255.
_RENEWED_AT = 0.8
# Seconds without another try after a failed one, while the old token is good.
_PAUSE = 10.0
# Seconds for one answer of the token endpoint.
_TIMEOUT = 10.0
# Seconds since the epoch in the year 5138: a later expiry is one in milliseconds.
_MILLISECONDS = 1e11

_CONFIG = "sasl.oauthbearer.config"
_UNSECURED = ("principal", "principalClaimName", "scope", "scopeClaimName", "lifeSeconds")


class _Failed(NamedTuple):
    """An attempt without a token: its error, and how long the source asks no more."""

    text: str
    code: int | None
    is_retriable: bool
    at: float
    pause: float


class TokenSource:
    """Gives a token that is good, and keeps it until 80 % of its life are over.

    After a failure it raises the same error for a while without asking. Otherwise an endpoint that
    is down would be asked once for each broker. That while doubles with each failure (KIP-768).
    Threads may share a source. Two that ask at once may both ask for a new token.
    """

    def __init__(
        self,
        settings: OauthSettings,
        *,
        timeout: float = _TIMEOUT,
        backoff: tuple[float, float] = (0.0, 0.0),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Asks for nothing yet; raises ConfigError for settings that can give no token.

        `timeout` is the number of seconds that the token endpoint has for its whole answer.
        `backoff` is the first and the longest pause after a failure, in seconds.
        """
        self._settings = settings
        self._timeout = timeout
        self._backoff = backoff
        self._clock = clock
        self._failed: _Failed | None = None
        # The token, and when a new one is asked for.
        self._kept: tuple[Token, float] | None = None
        if settings.callback is None and settings.unsecured:
            if isinstance(settings.config, str):
                unsecured_token(settings.config, clock())
        elif settings.callback is None:
            oidc.check(settings)

    def token(self, timeout: float = math.inf) -> Token:
        """Returns the kept token, or a new one; blocks while a callable or an endpoint is asked.

        An endpoint has `timeout` seconds, and no more than those of the constructor. If no new one
        comes, it returns the kept one until that expires. Raises AuthenticationError,
        which is retriable if the endpoint is down or slow, or the callable raised. Raises
        ConfigError.
        """
        now = self._clock()
        kept = self._kept
        if kept is not None and now < kept[1]:
            return kept[0]
        try:
            token = self._asked(now, timeout)
        except (AuthenticationError, ConfigError):
            if kept is None or now >= kept[0].expires_at:
                raise
            self._kept = kept[0], now + min(_PAUSE, (kept[0].expires_at - now) / 2)
            return kept[0]
        self._kept = token, now + (token.expires_at - now) * _RENEWED_AT
        return token

    def forget(self) -> None:
        """Drops the kept token, for example after a broker refused it."""
        self._kept = None

    def _asked(self, now: float, timeout: float) -> Token:
        """Returns a new token, or raises the error of the last attempt during its pause."""
        failed, (first, longest) = self._failed, self._backoff
        if failed is not None and failed.at <= now < failed.at + failed.pause:
            raise AuthenticationError(failed.text, failed.code, failed.is_retriable)
        try:
            token = self._new(now, timeout)
        except AuthenticationError as error:
            pause = min(first if failed is None else 2 * failed.pause, longest)
            self._failed = _Failed(str(error), error.code, error.retriable, self._clock(), pause)
            raise
        self._failed = None
        return token

    def _new(self, now: float, timeout: float) -> Token:
        settings = self._settings
        config = settings.config
        text = config.reveal() if isinstance(config, Secret) else config
        if settings.callback is not None:
            token = _called(settings, text)
        elif settings.unsecured:
            token = unsecured_token(text, now)
        else:
            token = oidc.fetch(settings, min(self._timeout, timeout), now)
        if token.expires_at <= now:
            raise AuthenticationError(
                f"the token expired {now - token.expires_at:.0f} s ago: check {token.origin},"
                " and this machine's clock"
            )
        return token


def unsecured_token(config: str, now: float) -> Token:
    """Returns a token that no server signed, as librdkafka makes it for tests (KIP-255).

    `config` is sasl.oauthbearer.config: "principal=alice scope=a,b lifeSeconds=600", also
    principalClaimName, scopeClaimName and extension_NAME. Raises ConfigError.
    """
    options, extensions = {"principalClaimName": "sub", "scopeClaimName": "scope"}, []
    for i, part in enumerate(config.split(), 1):
        name, _, value = part.partition("=")
        # A part without a known name may be a secret, so no error shows it.
        if not value:
            which = repr(name) if name in _UNSECURED else f"part {i}"
            raise ConfigError(f"{_CONFIG}: {which} has no value; expected NAME=VALUE")
        if name.startswith("extension_"):
            extensions.append((name.removeprefix("extension_"), value))
        elif name in _UNSECURED:
            options[name] = value
        else:
            known = ", ".join(_UNSECURED)
            raise ConfigError(f"{_CONFIG}: part {i} has an unknown name; expected {known}")
    if "principal" not in options:
        raise ConfigError(f"{_CONFIG} has no principal=NAME, which an unsecured token needs")
    life = options.get("lifeSeconds", "3600")
    if not (life.isascii() and life.isdigit() and len(life) <= 9 and int(life)):
        raise ConfigError(f"{_CONFIG}: lifeSeconds must be a number of seconds")
    expires_at = now + int(life)
    claims: dict[str, Any] = {
        options["principalClaimName"]: options["principal"],
        "iat": round(now, 3),
        "exp": round(expires_at, 3),
    }
    if "scope" in options:
        claims[options["scopeClaimName"]] = [each for each in options["scope"].split(",") if each]
    value = f"{_base64({'alg': 'none'})}.{_base64(claims)}."
    return Token(
        Secret(value, _CONFIG), expires_at, options["principal"], tuple(extensions), _CONFIG
    )


def _called(settings: OauthSettings, config: str) -> Token:
    """Returns the token of the user's callable."""
    origin = "what oauth_cb returns"
    found: Any = None
    cause = ""
    try:
        found = settings.callback(config) if settings.callback else None
    except Exception as error:
        cause = cause_of(error)
    if cause:  # outside the handler, so that the error has no context with the secret
        raise AuthenticationError(f"oauth_cb raised {cause}", retriable=True)
    if not isinstance(found, tuple) or not 2 <= len(found) <= 4:
        kind = f"a tuple of {len(found)}" if isinstance(found, tuple) else type(found).__name__
        raise ConfigError(
            f"oauth_cb returned {kind}; expected (token, expiry in seconds since 1970[, principal[,"
            " extensions]])"
        )
    value, expires_at, principal, extensions = (*found, "", {})[:4] if len(found) < 4 else found
    if not isinstance(value, str):
        raise ConfigError(f"oauth_cb returned a token of type {type(value).__name__}; expected str")
    if isinstance(expires_at, bool) or not isinstance(expires_at, Real):
        kind = type(expires_at).__name__
        raise ConfigError(
            f"oauth_cb returned an expiry of type {kind}; expected seconds since 1970"
        )
    if not expires_at < _MILLISECONDS:
        raise ConfigError(
            f"oauth_cb returned the expiry {expires_at}, which seems to be in milliseconds;"
            " expected seconds since 1970 (divide by 1000)"
        )
    token = Secret(value, "oauth_cb")
    return Token(token, float(expires_at), str(principal or ""), _pairs(extensions), origin)


def _pairs(extensions: Any) -> tuple[tuple[str, str], ...]:
    """Returns the extensions of a callable's answer as pairs."""
    pairs = tuple((extensions or {}).items()) if isinstance(extensions or {}, dict) else None
    if pairs is None or not all(isinstance(each, str) for pair in pairs for each in pair):
        raise ConfigError("oauth_cb returned extensions that are no dict of str to str")
    return pairs


def _base64(value: dict[str, Any]) -> str:
    data = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
