"""Tries six wrong configurations with three of our clients, and three others, on one broker.

What is raised either names the cause or does not. The other clients are tried once, all at the same
time, since some need half a minute.

Four of the six are wrong in a way that the broker tells. Client and fetch() are timed until they
raise that, beside a plain socket that does what the configuration says until it has been told. The
time of Client has the start of its thread in it. Where no broker answers, Client goes on to try:
one may be about to start. So it raises the cause when its time is over.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter, sleep
from typing import Any, NamedTuple

from kafka_security import ALICE, SECURE, KafkaSecurity
from listener import free_ports
from real_kafka import RealKafka

import rdmeta
from bench.client import kafka, lacks

PATIENCE = 30.0  # seconds in which a broker answers
OURS_S = 5.0  # seconds for a call of ours, which nothing else ends where no broker answers
THEIRS_S = 12  # seconds for a call of confluent's, which has no other end
PAUSE = 0.1
API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36


class Case(NamedTuple):
    """A wrong configuration, in librdkafka's names, and a pattern of the words for its cause.

    `told` returns once the broker has said what is wrong; None if no broker does.
    """

    conf: dict[str, Any]
    cause: str
    told: Callable[[], object] | None = None


# ---- what the broker says, and how soon ---------------------------------------------------------


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


def shake_hands(address: str, ca: str) -> None:
    """Fails to shake hands."""
    context = ssl.create_default_context(cafile=ca)
    with connect(address) as connection, suppress(OSError):
        context.wrap_socket(connection, server_hostname="127.0.0.1")
        raise SystemExit(f"{address} has shaken hands")


def alerted(address: str) -> None:
    """Sends plain bytes to a port of TLS, and reads its alert."""
    with connect(address) as connection:
        if answer(connection, frame(API_VERSIONS, 0, b""))[:1] != b"\x15":
            raise SystemExit(f"{address} sends no TLS alert")


def log_in(address: str, ca: str, password: str) -> None:
    """Has a login refused."""
    token = f"\0{ALICE}\0{password}".encode()
    context = ssl.create_default_context(cafile=ca)
    with (
        connect(address) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        answer(connection, frame(SASL_HANDSHAKE, 1, struct.pack(">h", 5) + b"PLAIN"))
        body = struct.pack(">i", len(token)) + token
        said = answer(connection, frame(SASL_AUTHENTICATE, 0, body))
        if said[8:10] != struct.pack(">h", 58):
            raise SystemExit(f"the login is not refused: {said!r}")


def cases(cluster: RealKafka, security: KafkaSecurity) -> dict[str, Case]:
    """Returns the wrong configurations by their names."""
    plain, secure = cluster.address(1), cluster.address(1, SECURE)
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    unknown = "no-such-host.invalid:9092"
    right = {"bootstrap.servers": secure, **security.conf("PLAIN")}
    ca, other = security.ca, security.other_ca
    tls = {"security.protocol": "ssl", "ssl.ca.location": ca}
    return {
        "wrong password": Case(
            {**right, "sasl.password": "wrong"},
            r"password|credential|authentication",
            lambda: log_in(secure, ca, "wrong"),
        ),
        "unknown CA": Case(
            {**right, "ssl.ca.location": other},
            r"certificate|issuer|trust",
            lambda: shake_hands(secure, other),
        ),
        "plaintext to TLS": Case(
            {"bootstrap.servers": secure}, r"\b(TLS|SSL)", lambda: alerted(secure)
        ),
        "TLS to plaintext": Case(
            {"bootstrap.servers": plain, **tls},
            r"\b(TLS|SSL)|plaintext",
            lambda: shake_hands(plain, ca),
        ),
        "nothing listens": Case({"bootstrap.servers": nowhere}, "refused"),
        "no such host": Case({"bootstrap.servers": unknown}, "resolve|not known|no such"),
    }


# ---- the clients --------------------------------------------------------------------------------


def client(conf: dict[str, Any]) -> tuple[BaseException, float]:
    """Asks with our Client."""
    begin = perf_counter()
    with rdmeta.Client(conf, topics=rdmeta.ALL) as it:
        return raised(lambda: it.refresh(timeout=OURS_S), begin)


def async_client(conf: dict[str, Any]) -> tuple[BaseException, float]:
    """Asks with our AsyncClient."""

    async def ask() -> None:
        async with rdmeta.AsyncClient(conf, topics=rdmeta.ALL) as it:
            await it.refresh(timeout=OURS_S)

    return raised(lambda: asyncio.run(ask()), perf_counter())


def fetch(conf: dict[str, Any]) -> tuple[BaseException, float]:
    """Asks with our fetch()."""
    cache, begin = rdmeta.MetadataCache(), perf_counter()
    return raised(lambda: rdmeta.fetch(cache, conf=conf, timeout=OURS_S), begin)


def confluent(conf: dict[str, Any]) -> None:
    """Asks with confluent-kafka's AdminClient."""
    from confluent_kafka.admin import AdminClient

    AdminClient({**conf, "log_level": 0}).list_topics(timeout=THEIRS_S)


def renamed(conf: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that kafka-python and aiokafka share."""
    out = {"bootstrap_servers": conf["bootstrap.servers"]}
    if "security.protocol" in conf:
        out["security_protocol"] = conf["security.protocol"].upper()
    if "sasl.mechanism" in conf:
        out["sasl_mechanism"] = conf["sasl.mechanism"]
        out["sasl_plain_username"] = conf["sasl.username"]
        out["sasl_plain_password"] = conf["sasl.password"]
    return out


def aiokafka(conf: dict[str, Any]) -> None:
    """Asks with aiokafka's client."""
    from aiokafka.admin import AIOKafkaAdminClient

    async def ask() -> None:
        options = renamed(conf)
        if "ssl.ca.location" in conf:
            options["ssl_context"] = ssl.create_default_context(cafile=conf["ssl.ca.location"])
        admin = AIOKafkaAdminClient(**options)
        try:
            await admin.start()
        finally:
            await admin.close()

    asyncio.run(ask())


def kafka_python(conf: dict[str, Any]) -> None:
    """Asks with kafka-python's client."""
    from kafka import KafkaAdminClient

    KafkaAdminClient(**renamed(conf), ssl_cafile=conf.get("ssl.ca.location")).close()


def raised(ask: Callable[[], object], begin: float) -> tuple[BaseException, float]:
    """Returns what a client raises, and milliseconds since `begin`."""
    try:
        ask()
    except Exception as error:
        return error, (perf_counter() - begin) * 1e3
    raise SystemExit("a wrong configuration works")


OURS = {"client": client, "async_client": async_client, "fetch": fetch}
THEIRS = {
    "confluent": ("confluent_kafka", confluent),
    "aiokafka": ("aiokafka", aiokafka),
    "kafka-python": ("kafka", kafka_python),
}


def unnamed(key: str, tried: dict[str, Case], errors: dict[str, str], out: dict[str, Any]) -> None:
    """Adds how many causes a client does not name in its errors, and the errors."""
    found = [re.search(tried[name].cause, errors[name], re.IGNORECASE) for name in tried]
    out[key] = [found.count(None)]
    out["said"][key] = errors


def words(error: BaseException) -> str:
    """Returns an exception's type and text."""
    return f"{type(error).__name__}: {error}"


def theirs(tried: dict[str, Case], out: dict[str, Any], missing: dict[str, str]) -> None:
    """Adds what the other clients raise."""
    with ThreadPoolExecutor(len(THEIRS) * len(tried)) as pool:
        asked = {}
        for key, (module, ask) in THEIRS.items():
            if reason := lacks(module):
                missing[key] = reason
                continue
            calls = {name: partial(ask, case.conf) for name, case in tried.items()}
            asked[key] = {name: pool.submit(raised, call, 0.0) for name, call in calls.items()}
        for key, futures in asked.items():
            errors = {name: words(future.result()[0]) for name, future in futures.items()}
            unnamed(key, tried, errors, out)


def one_round(tried: dict[str, Case]) -> dict[str, float]:
    """Returns milliseconds by case and way, and the sums of those that a broker tells."""
    out: dict[str, float] = {"all, told": 0.0, "all, client": 0.0}
    for name, case in tried.items():
        if case.told is None:
            continue
        sleep(PAUSE)
        begin = perf_counter()
        case.told()
        out[f"{name}, told"] = (perf_counter() - begin) * 1e3
        for way, ask in (("client", client), ("fetch", fetch)):
            sleep(PAUSE)
            out[f"{name}, {way}"] = ask(case.conf)[1]
        out["all, told"] += out[f"{name}, told"]
        out["all, client"] += out[f"{name}, client"]
    return out


def measure(rounds: int) -> dict[str, Any]:
    """Returns causes that are not named, by client; and milliseconds by case and way.

    The causes come first, and load the modules.
    """
    out: dict[str, Any] = {"said": {}}
    missing: dict[str, str] = {}
    with kafka.secured() as (cluster, security):
        tried = cases(cluster, security)
        for key, ask in OURS.items():
            unnamed(key, tried, {name: words(ask(tried[name].conf)[0]) for name in tried}, out)
        for _ in range(rounds):
            for series, took in one_round(tried).items():
                out.setdefault(series, []).append(took)
        theirs(tried, out, missing)
    return {**out, "missing": missing}
