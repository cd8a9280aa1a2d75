"""Damaged handshakes of TLS and SASL: each ends in a clear error, soon, and harms nothing.

RDMETA_DAMAGE_SECONDS says how long; `make nightly` takes a minute. A failure repeats with the
RDMETA_SEED that it prints.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import struct
import time
from collections import Counter
from contextlib import suppress

import damage
import pytest
from broker import API_VERSIONS, RANGES
from certificates import Authority
from login_server import MECHANISMS, LoginServer
from peer import framed, read_requests, versions_body
from secured import SASL_AUTHENTICATE, SASL_HANDSHAKE, Entry, Guard

from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import Error
from rdmeta.net.sasl import Login, Token, oauth_login, plain_login, scram_login
from rdmeta.net.session import Session
from rdmeta.net.tls import Tls, Tunnel

ours = Authority()
USER, PASSWORD = "alice", "pass-MARKED-word"
# The first bytes of the requests of a handshake, in the versions that the broker announces.
KNOWN = {
    struct.pack(">hh", key, version)
    for key in (SASL_HANDSHAKE, SASL_AUTHENTICATE, API_VERSIONS)
    for version in range(RANGES[key][0], RANGES[key][1] + 1)
} | {struct.pack(">hh", API_VERSIONS, 4)}
TOKEN = Token(Secret("good-MARKED-token", "oauth_cb"), 2e10)


def login_by(mechanism: str) -> Login:
    if mechanism == "OAUTHBEARER":
        return oauth_login(TOKEN)
    if mechanism == "PLAIN":
        return plain_login(USER, PASSWORD)
    return scram_login(mechanism, USER, PASSWORD)


# ---- SASL: the answers of a broker, without a socket ---------------------------------------------


async def answer_to(entry: Entry, request: bytes) -> bytes:
    """Returns a broker's answer to a request of the handshake."""
    if entry.is_raw:
        data = await entry.answer_raw(request[4:]) or b""
        return struct.pack(">i", len(data)) + data
    (asked,) = read_requests(request)
    if asked.api_key == API_VERSIONS:
        return framed(asked.correlation_id, versions_body(asked.version, RANGES))
    reply = await entry.answer(asked)
    return framed(asked.correlation_id, reply.body, b"\0" if asked.flexible else b"")


async def logged_in(rng: random.Random, mechanism: str) -> Session:
    """Returns a session after a login that may have been damaged; raises its error."""
    logins = LoginServer({USER: PASSWORD}, tokens={TOKEN.value.reveal()})
    entry = Entry(Guard(logins=logins, delay=0.0), logins, 1, [])
    session, at = Session(login=login_by(mechanism)), rng.randrange(6)
    for number in range(6):
        request = session.data_to_send()
        # Without a SaslAuthenticate in damaged versions, messages come without SaslHandshake v0.
        is_known = entry.is_raw or request[4:8] in KNOWN
        if session.ready or not is_known:
            break
        answer = await answer_to(entry, request)
        session.receive(damaged(rng, answer) if number == at else answer)
    if not session.ready:
        session.closed()
    return session


def damaged(rng: random.Random, frame: bytes) -> bytes:
    """Returns a frame with other bytes, cut, longer, doubled, or another one."""
    how = rng.randrange(6)
    if how == 0:
        return frame[: rng.randrange(len(frame))]
    if how == 1:
        return frame + rng.randbytes(rng.randint(1, 40))
    if how == 2:
        body = frame[4 : rng.randrange(4, len(frame) + 1)] + rng.randbytes(
            rng.choice([0, 0, 1, 30])
        )
        return struct.pack(">i", len(body)) + body
    if how == 3:
        return frame * 2
    if how == 4:
        return struct.pack(">i", rng.choice([-1, 0, 3, 1 << 19, 1 << 30, 2**31 - 1])) + frame[4:]
    return damage.corrupted(rng, frame, rng.choice([0, 4, 8]))


@pytest.mark.slow
def test_damaged_answers_of_a_login_end_in_an_error_without_a_secret() -> None:
    rng = random.Random(damage.seed())
    done: Counter[str] = Counter()
    errors = []

    async def run() -> None:
        end = time.monotonic() + damage.seconds(2.0)
        while time.monotonic() < end:
            mechanism = rng.choice(MECHANISMS)
            try:
                await logged_in(rng, mechanism)
                done["ready"] += 1
            except Error as error:
                done[type(error).__name__] += 1
                errors.append(error)

    asyncio.run(run())
    print(done)
    for error in errors:
        assert "MARKED" not in f"{error!r} {error.__cause__!r} {error.__context__!r}"
        assert len(str(error)) < 2000
    assert {"ready", "AuthenticationError", "MalformedError", "TransportError"} <= set(done)


# ---- TLS: the records of a broker, without a socket ---------------------------------------------


def test_damaged_records_of_tls_end_in_an_error() -> None:
    rng = random.Random(damage.seed())
    settings = TlsSettings(ca_pem=ours.pem)
    context, server = Tls(settings).context(), ours.server("127.0.0.1")
    done: Counter[str] = Counter()
    end = time.monotonic() + damage.seconds(0.5)
    while time.monotonic() < end:
        done[shaken(rng, Tunnel(context, settings, "127.0.0.1"), server)] += 1
    print(done)
    assert done["TlsError"] > 10


def shaken(rng: random.Random, tunnel: Tunnel, server: ssl.SSLContext) -> str:
    """Shakes hands with a server whose bytes are damaged once; returns how that ended."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = server.wrap_bio(incoming, outgoing, server_side=True)
    at = rng.randrange(3)
    try:
        for number in range(6):
            incoming.write(tunnel.data_to_send())
            with suppress(ssl.SSLError):
                peer.do_handshake()
            data = outgoing.read()
            if number == at:
                data = damaged(rng, data) if len(data) > 16 else rng.randbytes(64)
            tunnel.receive(data)
            tunnel.read(100)
        tunnel.closed()
    except Error as error:
        return type(error).__name__
    return "ready" if tunnel.is_ready else "waits"
