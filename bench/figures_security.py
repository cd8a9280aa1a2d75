"""The figures of secured clusters: causes that are named, how soon, a login, a refresh by TLS.

The rows with Apache Kafka need Java and `make kafka-jars`, and some need another client's package.
Without these they are missing, and the run says why.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.figure import PER_TOPIC, Figure, Goal, Job, Scale, count, series

TOLD = ("wrong password", "unknown CA", "plaintext to TLS", "TLS to plaintext")


def _figure(
    name: str, unit: str, job: Job, keys: tuple[str, str], reference: str, goal: Goal | None = None
) -> Figure:
    value, other = keys
    return Figure("security", name, unit, job, series(value), series(other), reference, goal)


def _wrong(scale: Scale) -> Iterable[Figure]:
    job = Job("client", ("wrong", f"--rounds={scale.rounds if scale.kills else 0}"))
    for ours, key, theirs, peer in (
        ("Client", "client", "confluent", "confluent-kafka"),
        ("AsyncClient", "async_client", "aiokafka", "aiokafka"),
        ("fetch()", "fetch", "kafka-python", "kafka-python"),
    ):
        name = f"wrong configurations: causes that {ours} does not name in what it raises"
        yield _figure(name, "of 6", job, (key, theirs), peer, Goal())
    broker, goal = "until the broker has said it", Goal(factor=1.5)
    name = "until Client raises the cause, the four that a broker tells together"
    yield _figure(name, "ms", job, ("all, client", "all, told"), broker, goal)
    for way, ours in (("client", "Client"), ("fetch", "fetch()")):
        for case in TOLD:
            keys = (f"{case}, {way}", f"{case}, told")
            yield _figure(f"until {ours} raises the cause: {case}", "ms", job, keys, broker, goal)


def _login(scale: Scale) -> Iterable[Figure]:
    job = Job("client", ("login", f"--rounds={scale.rounds if scale.kills else 0}"))
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


PARTS = (_wrong, _login, _tls)
