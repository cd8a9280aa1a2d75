"""The figures of secured clusters: causes that are named, how soon, a login, a refresh by TLS.

The rows with Apache Kafka need Java and `make kafka-jars`, and some need another client's package.
Without these they are missing, and the run says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bench.figure import PER_TOPIC, Figure, Goal, Job, Scale, beside, count

TOLD = ("wrong password", "unknown CA", "plaintext to TLS", "TLS to plaintext")
RAISED = 7  # rounds of some 5 s: brokers delay their word of a wrong password
LOGINS = 12

_figure = partial(beside, "security")


def _wrong(scale: Scale) -> Iterable[Figure]:
    job = Job("client", ("wrong", f"--rounds={1 if scale.kills else 0}"))
    for ours, key, theirs, peer in (
        ("Client", "client", "confluent", "confluent-kafka"),
        ("AsyncClient", "async_client", "aiokafka", "aiokafka"),
        ("fetch()", "fetch", "kafka-python", "kafka-python"),
    ):
        name = f"wrong configurations: causes that {ours} does not name in what it raises"
        yield _figure(name, "of 6", job, (key, theirs), peer, Goal())


def _raised(scale: Scale) -> Iterable[Figure]:
    job = Job("client", ("raised", f"--rounds={RAISED if scale.kills else 0}"))
    broker, ready = "until the broker has said it", "the same, with the CA loaded before"
    always = "That takes as long with any broker, and this one answers within a few ms."
    thread = f"Before it connects, it makes its cache and starts a thread with a loop. {always}"
    pause = f"It runs more code than a plain socket, and code is slow after a pause. {always}"
    loop = f"Before it connects, it makes its cache, and a thread reads the CA. {always}"
    for key, ours, told, reference, why in (
        ("client", "a new Client", "told", broker, thread),
        ("started", "a Client that has started", "told prepared", ready, pause),
        ("async_client", "a new AsyncClient", "told", broker, loop),
        ("fetch", "fetch()", "told", broker, ""),
    ):
        for case in TOLD:
            name, keys = (
                f"until {ours} raises the cause: {case}",
                (f"{case}, {key}", f"{case}, {told}"),
            )
            yield _figure(name, "ms", job, keys, reference, Goal(factor=1.5), why)


def _login(scale: Scale) -> Iterable[Figure]:
    job = Job("client", ("login", f"--rounds={LOGINS if scale.kills else 0}"))
    name = "a new Client to its first answer, SASL_SSL with SCRAM-SHA-512"
    peer = "confluent AdminClient, list_topics()"
    yield _figure(name, "ms", job, ("client", "confluent"), peer, Goal(factor=1.2))


def _tls(scale: Scale) -> Iterable[Figure]:
    topics = scale.python
    arguments = ("tls", f"--topics={topics}", f"--rounds={scale.rounds}")
    job = Job("client", arguments, min(2, scale.processes))
    name = f"Client.refresh over TLS, {count(topics)} topics of {PER_TOPIC}, canned frames"
    floor = "blocking recv of ssl and apply"
    yield _figure(name, "ms", job, ("client", "floor"), floor, Goal(factor=1.3))


PARTS = (_wrong, _raised, _login, _tls)
