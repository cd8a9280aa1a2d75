"""Tries six wrong configurations with three of our clients, and three others, on one broker.

An error that is raised either names the cause or does not. Each client is tried once per
configuration, all at the same time, since some need half a minute. raised.py times four of the six.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from kafka_security import SECURE, KafkaSecurity
from listener import free_ports
from real_kafka import RealKafka

import rdmeta
from bench.client import kafka, lacks

OURS_S = 5.0  # seconds for a call of ours, which nothing else ends where no broker answers
THEIRS_S = 12  # seconds for a call of confluent's, which has no other end


class Case(NamedTuple):
    """A wrong configuration, in librdkafka's names, and a pattern of the words for its cause."""

    conf: dict[str, Any]
    cause: str


def cases(cluster: RealKafka, security: KafkaSecurity) -> dict[str, Case]:
    """Returns the wrong configurations by their names."""
    plain, secure = cluster.address(1), cluster.address(1, SECURE)
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    unknown = "no-such-host.invalid:9092"
    right = {"bootstrap.servers": secure, **security.conf("PLAIN")}
    tls = {"security.protocol": "ssl", "ssl.ca.location": security.ca}
    return {
        "wrong password": Case(
            {**right, "sasl.password": "wrong"}, "password|credential|authentication"
        ),
        "unknown CA": Case(
            {**right, "ssl.ca.location": security.other_ca}, "certificate|issuer|trust"
        ),
        "plaintext to TLS": Case({"bootstrap.servers": secure}, r"\b(TLS|SSL)"),
        "TLS to plaintext": Case({"bootstrap.servers": plain, **tls}, r"\b(TLS|SSL)|plaintext"),
        "nothing listens": Case({"bootstrap.servers": nowhere}, "refused"),
        "no such host": Case({"bootstrap.servers": unknown}, "resolve|not known|no such"),
    }


# ---- the clients --------------------------------------------------------------------------------


def client(conf: dict[str, Any]) -> None:
    """Asks with our Client."""
    with rdmeta.Client(conf, topics=rdmeta.ALL) as it:
        it.refresh(timeout=OURS_S)


def async_client(conf: dict[str, Any]) -> None:
    """Asks with our AsyncClient."""

    async def ask() -> None:
        async with rdmeta.AsyncClient(conf, topics=rdmeta.ALL) as it:
            await it.refresh(timeout=OURS_S)

    asyncio.run(ask())


def fetch(conf: dict[str, Any]) -> None:
    """Asks with our fetch()."""
    rdmeta.fetch(rdmeta.MetadataCache(), conf=conf, timeout=OURS_S)


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


# Each client's way to ask, and the module that it needs.
CLIENTS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "client": ("rdmeta", client),
    "async_client": ("rdmeta", async_client),
    "fetch": ("rdmeta", fetch),
    "confluent": ("confluent_kafka", confluent),
    "aiokafka": ("aiokafka", aiokafka),
    "kafka-python": ("kafka", kafka_python),
}


# ---- the causes ---------------------------------------------------------------------------------


def raised(ask: Callable[[], object]) -> str:
    """Returns the type and text of what a client raises."""
    try:
        ask()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise SystemExit("a wrong configuration works")


def unnamed(tried: dict[str, Case], errors: dict[str, str]) -> int:
    """Returns how many causes the errors of a client do not name."""
    found = [re.search(case.cause, errors[name], re.IGNORECASE) for name, case in tried.items()]
    return found.count(None)


def measure(rounds: int) -> dict[str, Any]:
    """Returns by client how many causes its errors do not name, and all errors as `said`."""
    out: dict[str, Any] = {"said": {}}
    missing = {key: lacks(module) for key, (module, _) in CLIENTS.items()}
    with (
        kafka.secured() as (cluster, security),
        ThreadPoolExecutor(len(CLIENTS) * 6) as pool,
    ):
        tried = cases(cluster, security)
        asked = {
            key: {n: pool.submit(raised, partial(ask, case.conf)) for n, case in tried.items()}
            for key, (_, ask) in CLIENTS.items()
            if not missing[key]
        }
        for key, futures in asked.items():
            errors = out["said"][key] = {name: each.result() for name, each in futures.items()}
            out[key] = [unnamed(tried, errors)]
    return {**out, "missing": {key: reason for key, reason in missing.items() if reason}}
