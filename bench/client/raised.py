"""Times how soon a wrong configuration is raised as an error, beside the broker's own word.

The four cases are those of wrong.py that a broker tells. A plain socket does what the configuration
says until it has been told. Ours are asked beside it, by turns, and each after a pause:

- A new Client, with the start of its thread in the time.
- A Client that has started, and waits for the name of its server. The clock starts when the name is
  resolved. The plain socket beside it has loaded its CA before, as that Client has.
- A new AsyncClient in a loop that runs, and fetch().

Where no broker answers, a client goes on to try, and raises the cause when its time is over. So
those two cases have no time.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import perf_counter, sleep
from typing import Any, NamedTuple
from unittest.mock import patch

from kafka_security import ALICE, SECURE, KafkaSecurity
from real_kafka import RealKafka

import rdmeta
from bench.client import kafka
from bench.client.wrong import OURS_S, cases

PATIENCE = 30.0  # seconds in which a broker answers
PAUSE = 0.1
API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
HOST, NAME = "127.0.0.1", "localhost"  # of the broker; its certificate has both


class ToldSocket(NamedTuple):
    """A plain socket that is told what is wrong: its CA, None without TLS, and what it does."""

    ca: str | None
    ask: Callable[[ssl.SSLContext | None], object]

    def context(self) -> ssl.SSLContext | None:
        """Loads the CA."""
        return None if self.ca is None else ssl.create_default_context(cafile=self.ca)


# ---- what the broker says -----------------------------------------------------------------------


def frame(api_key: int, version: int, body: bytes) -> bytes:
    """Returns a request without a client id, with the header of old versions."""
    message = struct.pack(">hhih", api_key, version, 1, -1) + body
    return struct.pack(">i", len(message)) + message


def answer(connection: socket.socket, request: bytes) -> bytes:
    """Sends a request and returns the bytes of its answer, or those that came instead."""
    connection.sendall(request)
    return connection.recv(1 << 16)


def connect(address: str) -> socket.socket:
    """Returns a connection."""
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), PATIENCE)


def shake_hands(address: str, context: ssl.SSLContext | None) -> None:
    """Fails to shake hands."""
    assert context is not None
    with connect(address) as connection, suppress(OSError):
        context.wrap_socket(connection, server_hostname=HOST)
        raise SystemExit(f"{address} has shaken hands")


def be_alerted(address: str, context: ssl.SSLContext | None) -> None:
    """Sends plain bytes to a port of TLS, and reads its alert."""
    with connect(address) as connection:
        if answer(connection, frame(API_VERSIONS, 0, b""))[:1] != b"\x15":
            raise SystemExit(f"{address} sends no TLS alert")


def log_in(address: str, password: str, context: ssl.SSLContext | None) -> None:
    """Has a login refused."""
    assert context is not None
    token = f"\0{ALICE}\0{password}".encode()
    with (
        connect(address) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as connection,
    ):
        answer(connection, frame(SASL_HANDSHAKE, 1, struct.pack(">h", 5) + b"PLAIN"))
        body = struct.pack(">i", len(token)) + token
        said = answer(connection, frame(SASL_AUTHENTICATE, 0, body))
        if said[8:10] != struct.pack(">h", 58):
            raise SystemExit(f"the login is not refused: {said!r}")


def tellers(cluster: RealKafka, security: KafkaSecurity) -> dict[str, ToldSocket]:
    """Returns the plain sockets by the names of their cases."""
    plain, secure = cluster.address(1), cluster.address(1, SECURE)
    return {
        "wrong password": ToldSocket(security.ca, partial(log_in, secure, "wrong")),
        "unknown CA": ToldSocket(security.other_ca, partial(shake_hands, secure)),
        "plaintext to TLS": ToldSocket(None, partial(be_alerted, secure)),
        "TLS to plaintext": ToldSocket(security.ca, partial(shake_hands, plain)),
    }


# ---- our clients --------------------------------------------------------------------------------


def raised(ask: Callable[[], object]) -> float:
    """Returns when a call has raised its error."""
    try:
        ask()
    except rdmeta.Error:
        return perf_counter()
    raise SystemExit("a wrong configuration works")


def client(conf: dict[str, Any]) -> float:
    """Asks with a new Client; returns seconds."""
    begin = perf_counter()
    with rdmeta.Client(conf, topics=rdmeta.ALL) as it:
        return raised(lambda: it.refresh(timeout=OURS_S)) - begin


def started(conf: dict[str, Any]) -> float:
    """Asks with a Client that has started and waits for the name of its server."""
    resolved = []

    def resolve(name: str, *rest: Any, **options: Any) -> Any:
        sleep(PAUSE)
        resolved.append(perf_counter())
        return look_up(HOST, *rest, **options)

    look_up = socket.getaddrinfo
    servers = conf["bootstrap.servers"].replace(HOST, NAME)
    with (
        patch("socket.getaddrinfo", resolve),
        rdmeta.Client({**conf, "bootstrap.servers": servers}, topics=rdmeta.ALL) as it,
    ):
        return raised(lambda: it.refresh(timeout=OURS_S)) - resolved[0]


def async_client(conf: dict[str, Any]) -> float:
    """Asks with a new AsyncClient, in a loop that runs."""

    async def ask() -> float:
        begin = perf_counter()
        async with rdmeta.AsyncClient(conf, topics=rdmeta.ALL) as it:
            try:
                await it.refresh(timeout=OURS_S)
            except rdmeta.Error:
                return perf_counter() - begin
        raise SystemExit("a wrong configuration works")

    return asyncio.run(ask())


def fetch(conf: dict[str, Any]) -> float:
    """Asks with fetch()."""
    cache, begin = rdmeta.MetadataCache(), perf_counter()
    return raised(lambda: rdmeta.fetch(cache, conf=conf, timeout=OURS_S)) - begin


OURS = {"client": client, "started": started, "async_client": async_client, "fetch": fetch}


def one_round(told: dict[str, ToldSocket], confs: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Returns milliseconds by case and way."""
    out: dict[str, float] = {}
    for case, each in told.items():
        sleep(PAUSE)
        begin = perf_counter()
        each.ask(each.context())
        out[f"{case}, told"] = perf_counter() - begin
        context = each.context()
        sleep(PAUSE)
        begin = perf_counter()
        each.ask(context)
        out[f"{case}, told prepared"] = perf_counter() - begin
        for way, ask in OURS.items():
            sleep(PAUSE)
            out[f"{case}, {way}"] = ask(confs[case])
    return {name: 1e3 * seconds for name, seconds in out.items()}


def measure(rounds: int) -> dict[str, Any]:
    """Returns milliseconds by case and way; a first round loads modules, and is not kept."""
    out: dict[str, Any] = {}
    with kafka.secured() as (cluster, security):
        told = tellers(cluster, security)
        confs = {name: case.conf for name, case in cases(cluster, security).items()}
        one_round(told, confs)
        for _ in range(rounds):
            for name, took in one_round(told, confs).items():
                out.setdefault(name, []).append(took)
    return out
