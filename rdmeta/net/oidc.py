"""Tokens by OIDC client credentials: one request to a token endpoint (RFC 6749, 4.4; KIP-768)."""

from __future__ import annotations

import base64
import binascii
import json
import time
from typing import TYPE_CHECKING, Any

from rdmeta.config.secret import MASK, Secret
from rdmeta.config.security_rules import ENDPOINT
from rdmeta.config.security_settings import OauthSettings
from rdmeta.errors import AuthenticationError, ConfigError
from rdmeta.net.sasl import Token, shown

if TYPE_CHECKING:
    import ssl
    from urllib.request import Request

# Bytes: a longer answer is refused, with its headers.
_LONGEST = 1 << 20
# Bytes: no more of the body of an error is read.
_LONGEST_ERROR = 1 << 16
# Seconds: no token lives longer, and no expiry is later.
_MOST_SECONDS = 1e11

_CLIENT = "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"


def check(settings: OauthSettings) -> None:
    """Raises ConfigError if the settings have no usable URL of an endpoint."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(settings.endpoint)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        has_user = "@" in parts.netloc
    except ValueError:
        is_usable = has_user = False
    if has_user:
        raise ConfigError(f"{ENDPOINT} must have no user and no password; set {_CLIENT}")
    if not is_usable or not all("!" <= each <= "~" for each in settings.endpoint):
        raise ConfigError(f"{ENDPOINT} must be a URL of https:// or http:// with a host")


def _where(endpoint: str) -> str:
    """Returns the endpoint without a user, a password and a query, which may be secret."""
    from urllib.parse import urlsplit

    parts = urlsplit(endpoint)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return shown(f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}")


def fetch(settings: OauthSettings, timeout: float, now: float) -> Token:
    """Returns a new token; the answer, also one of an error, is over after `timeout` seconds.

    Before that, each address of the host has as long to accept a connection. `now` is in seconds
    since the epoch. Raises AuthenticationError, which is retriable if the endpoint is down or slow,
    and ConfigError for a secret or a CA that cannot be read.
    """
    from urllib.error import HTTPError

    from rdmeta.net.bounded_http import opener  # only OIDC pays for importing urllib

    secret = settings.client_secret.reveal() if settings.client_secret else ""
    request = _request(settings, secret)
    is_secure = settings.endpoint.lower().startswith("https:")
    context = _context(settings) if is_secure else None
    bounded = opener(time.monotonic() + timeout, _LONGEST, context)
    where, problem = _where(settings.endpoint), ""
    retriable, advice, body = False, ENDPOINT, b""
    hidden = secret, request.get_header("Authorization", "").removeprefix("Basic ")
    try:
        with bounded.open(request, timeout=timeout) as answer:
            body = answer.read()
    except HTTPError as error:
        with error:
            problem, retriable, advice = _http_problem(error, hidden)
    except Exception as error:
        problem, retriable, advice = _connection_problem(error, timeout)
    if problem:
        raise AuthenticationError(
            f"the token endpoint {where} {problem}; check {advice}", retriable=retriable
        )
    return _token_in(body, settings, where, now, hidden)


def _request(settings: OauthSettings, secret: str) -> Request:
    from urllib.parse import urlencode
    from urllib.request import Request

    fields = {"grant_type": "client_credentials"}
    if settings.scope:
        fields["scope"] = settings.scope
    pair = f"{settings.client_id}:{secret}".encode("utf-8", "surrogatepass")
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {base64.b64encode(pair).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return Request(settings.endpoint, urlencode(fields).encode(), headers, method="POST")


def _context(settings: OauthSettings) -> ssl.SSLContext:
    import os
    import ssl

    location = settings.https_ca_location
    is_folder = bool(location) and os.path.isdir(location)
    try:
        return ssl.create_default_context(
            cafile=None if is_folder else location or None,
            capath=location if is_folder else None,
            cadata=settings.https_ca_pem or None,
        )
    except (OSError, ValueError) as error:
        key = "https.ca.location" if location else "https.ca.pem"
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ConfigError(f"{key} {location}: cannot be loaded: {shown(reason)}") from None


def _http_problem(error: Any, hidden: tuple[str, ...]) -> tuple[str, bool, str]:
    """Returns what the endpoint's refusal says, whether it may pass, and what to check.

    The texts `hidden` are not shown.
    """
    body = b""
    try:
        body = error.read(_LONGEST_ERROR)
    except Exception as cause:  # the status alone says much
        body = type(cause).__name__.encode()
    text = body.decode("utf-8", "replace")
    found = _object(body)
    if isinstance(found.get("error"), str):  # RFC 6749, 5.2
        more = found.get("error_description")
        text = f"{found['error']}{f': {more}' if isinstance(more, str) else ''}"
    elif "<" in text:  # a page for a browser
        text = ""
    said = f"answers HTTP {error.code} {shown(_without(hidden, str(error.reason)))}"
    said += f": {shown(_without(hidden, text))}" if text.strip() else ""
    if error.code in (400, 401, 403):
        scope = " and sasl.oauthbearer.scope" if error.code == 400 else ""
        return said, False, f"{_CLIENT.replace(' and ', ', ') if scope else _CLIENT}{scope}"
    return said, error.code >= 500 or error.code in (408, 429), ENDPOINT


def _connection_problem(error: Exception, timeout: float) -> tuple[str, bool, str]:
    """Returns why the endpoint gave no answer, whether it may pass, and what to check."""
    import socket
    import ssl
    from http.client import HTTPException

    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return f"gave no answer in {timeout:.3g} s", True, ENDPOINT
    if isinstance(cause, ssl.SSLCertVerificationError):
        said = f"has a certificate that is not trusted: {shown(cause.verify_message)}"
        return said, False, "https.ca.location"
    if isinstance(cause, ssl.SSLError):
        said = f"failed the TLS handshake: {shown(cause.reason or str(cause))}"
        return said, False, f"{ENDPOINT} (https or http)"
    if isinstance(cause, socket.gaierror):
        return f"has a host that is not found: {shown(cause.strerror or '')}", True, ENDPOINT
    if isinstance(cause, OSError):
        said = f"cannot be reached: {shown(cause.strerror or type(cause).__name__)}"
        return said, True, ENDPOINT
    if isinstance(cause, HTTPException):
        return f"does not answer as an HTTP server: {type(cause).__name__}", False, ENDPOINT
    return f"gave an answer that is no use: {shown(str(cause))}", False, ENDPOINT


def _without(hidden: tuple[str, ...], text: str) -> str:
    """Returns a text of the endpoint without the secrets that it was sent."""
    for secret in filter(None, hidden):
        text = text.replace(secret, MASK)
    return text


def _token_in(
    body: bytes, settings: OauthSettings, where: str, now: float, hidden: tuple[str, ...]
) -> Token:
    """Returns the token of the endpoint's answer; its JWT completes the expiry and principal.

    An error does not show the texts `hidden`.
    """
    found = _object(body)
    value = found.get("access_token") or found.get("id_token")
    if not isinstance(value, str) or not value:
        keys = shown(_without(hidden, ", ".join(sorted(found)))) or "no JSON object"
        raise AuthenticationError(
            f"the token endpoint {where} gave no access_token (it gave {keys}); check {ENDPOINT}"
        )
    claims = _claims(value)
    life, expires_at = _number(found.get("expires_in")), _number(claims.get("exp"))
    if life is not None:
        expires_at = now + life if expires_at is None else min(expires_at, now + life)
    if expires_at is None:
        raise AuthenticationError(
            f"the token endpoint {where} gave a token without expires_in, and without the claim"
            f" exp of a JWT; check {ENDPOINT}"
        )
    principal = claims.get("sub")
    origin = f"{ENDPOINT} and sasl.oauthbearer.scope"
    name = principal if isinstance(principal, str) else ""
    return Token(Secret(value, ENDPOINT), expires_at, name, settings.extensions, origin)


def _object(data: bytes) -> dict[str, Any]:
    """Returns a JSON object, an empty one if the bytes are none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _claims(token: str) -> dict[str, Any]:
    """Returns a JWT's claims, without a check of its signature; none for another token."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return _object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}


def _number(value: Any) -> float | None:
    """Returns a number of JSON, also one in quotes, as a float; None for another value."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < _MOST_SECONDS else None
