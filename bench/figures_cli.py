"""The figures of the command `rdmeta` and of metrics: whole processes, and a scrape.

The row with Apache Kafka needs Java and `make kafka-jars`, and some need another client's package,
or kcat. Without these they are missing, and the run says why.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.figure import PER_TOPIC, Figure, Goal, Job, Scale, count, series

WAITED = 20


def _figure(
    name: str, unit: str, job: Job, keys: tuple[str, str], reference: str, goal: Goal | None = None
) -> Figure:
    value, other = keys
    return Figure("cli", name, unit, job, series(value), series(other), reference, goal)


def _list(scale: Scale) -> Iterable[Figure]:
    topics = scale.listed
    job = Job("cli", ("listing", f"--topics={topics}", f"--rounds={scale.rounds}"))
    name = f"rdmeta list into a pipe, {count(topics)} topics of {PER_TOPIC}: the process"
    other = "a script over confluent's list_topics()"
    yield _figure(name, "ms", job, ("command", "confluent"), other, Goal(factor=0.6))
    yield _figure(f"{name}, beside kcat", "ms", job, ("command", "kcat"), "kcat -L")


def _json(scale: Scale) -> Iterable[Figure]:
    topics = scale.python
    job = Job("cli", ("json", f"--topics={topics}", f"--rounds={scale.rounds}"))
    name = f"rdmeta list --json, {count(topics)} topics of {PER_TOPIC}"
    keys = ("json", "plain")
    yield _figure(f"{name}: the process", "ms", job, keys, "without --json", Goal(factor=1.5))
    keys = ("memory", "output")
    yield _figure(f"{name}: memory at most", "MiB", job, keys, "its output", Goal(factor=3))


def _start(scale: Scale) -> Iterable[Figure]:
    job = Job("cli", ("start", f"--rounds={2 * scale.rounds}"))
    other = 'python -c "import click"'
    for key in ("help", "version"):
        yield _figure(f"rdmeta --{key}", "ms", job, (key, "click"), other, Goal(factor=1.5))


def _wait(scale: Scale) -> Iterable[Figure]:
    job = Job("cli", ("waiting", f"--rounds={WAITED if scale.kills else 0}"))
    name = "topic created -> rdmeta wait, started then, has ended"
    other = "a script over Client.wait_for_topic()"
    yield _figure(name, "ms", job, ("command", "script"), other, Goal(factor=1.2))


def _scrape(scale: Scale) -> Iterable[Figure]:
    topics = scale.python
    rounds = f"--rounds={3 * scale.rounds}"
    job = Job("cli", ("scrape", f"--topics={topics}", rounds), min(2, scale.processes))
    name = f"a Prometheus scrape, {count(topics)} topics of {PER_TOPIC}"
    other = 'one pass of to_arrow("partitions")'
    yield _figure(name, "ms", job, ("scrape", "arrow"), other, Goal(factor=1.5))


PARTS = (_list, _json, _start, _wait, _scrape)
