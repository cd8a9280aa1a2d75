"""The figures of what is built around the cache: handles, many rows, threads, images, waits, Arrow.

Few of them have a goal. Most are information, printed beside their floor.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable

from bench.figure import PER_TOPIC, Figure, Goal, Job, Samples, Scale, count, number, series


def scaled(key: str, by: float) -> Samples:
    """Returns the samples called `key` times `by`."""
    read = series(key)
    return lambda runs: [sample * by for sample in read(runs)]


def _c(program: str, scale: Scale, topics: int, queries: int, *more: str) -> Job:
    arguments = (str(topics), str(scale.rounds), str(queries), "{seed}", *more)
    return Job(program, arguments, scale.processes)


def _live(part: str, scale: Scale, topics: int, queries: int, rounds: int, runs: int) -> Job:
    options = {"topics": topics, "queries": queries, "rounds": rounds}
    arguments = (part, *(f"--{key}={value}" for key, value in options.items()), "--seed={seed}")
    return Job("live", arguments, min(runs, scale.processes))


def _handles(scale: Scale) -> Iterable[Figure]:
    topics = scale.python
    job = _c("handle", scale, topics, scale.queries)
    call = "a call"
    yield Figure(
        "handle", "C handle, leader of 8 hot", "ns", job, series("hot"), series("hot_call"), call
    )
    yield Figure(
        "handle",
        f"C handle, leader of {count(topics)} at random",
        "ns",
        job,
        series("random"),
        series("random_call"),
        call,
    )
    job = _live("handle", scale, topics, scale.python_queries, scale.rounds, 3)
    rows: tuple[tuple[str, str, str, str, Goal | None], ...] = (
        ("Cython nogil, handle of 8 hot", "nogil_handle", "nogil_name", "by name", None),
        ("Python t.leader(p)", "handle", "noop", "no-op method", Goal(factor=1, plus=8)),
        ("Python t.leader(p), no-op of its own", "handle", "noop_handle", "no-op method", None),
    )
    for name, value, reference, title, goal in rows:
        yield Figure("handle", name, "ns", job, series(value), series(reference), title, goal)


def _bulk(scale: Scale) -> Iterable[Figure]:
    topics = scale.bulk
    yield Figure(
        "bulk",
        f"C leaders(), {count(topics)} topics, prepared buffers",
        "ns/row",
        _c("bulk", scale, topics, topics),
        series("bulk"),
        series("one"),
        "one by one",
    )
    job = _live("bulk", scale, topics, topics, scale.rounds, 3)
    for title, key in (
        ("cffi leaders(), prepared buffers", "cffi"),
        ("Python leaders(), prepared buffers", "prepared"),
        ("Python leaders(), lists of str and int", "list"),
    ):
        yield Figure(
            "bulk",
            f"{title}, {count(topics)} topics",
            "ns/row",
            job,
            series(key),
            series("one"),
            "one by one",
        )


def _threads(scale: Scale) -> Iterable[Figure]:
    topics = scale.python
    yield Figure(
        "threads",
        f"C 2 reader threads, a lookup of both, random of {count(topics)} topics",
        "ns",
        _c("threads", scale, topics, scale.queries),
        series("two"),
        series("one"),
        "one thread",
    )
    topics = scale.fills[-1]
    yield Figure(
        "threads",
        f"C lookup p99.9 while {count(topics * PER_TOPIC)} partitions apply",
        "ns",
        _c("tail", scale, topics, max(1000, scale.queries // 4)),
        series("busy"),
        series("idle"),
        "p99.9 idle",
    )


def _images(scale: Scale) -> Iterable[Figure]:
    topics = scale.fills[-1]
    what = f"{count(topics * PER_TOPIC)} partitions"
    queries = max(1000, scale.queries // 8)
    taken = _c("image", scale, topics, queries)
    mapped = _c("mapped", scale, topics, queries, tempfile.gettempdir())
    yield Figure(
        "image",
        f"image() of {what}",
        "ms",
        taken,
        scaled("take", 1e-6),
        scaled("release", 1e-6),
        "letting it go",
    )
    yield Figure(
        "image",
        f"open a saved image of {what}, with a lookup",
        "ms",
        mapped,
        series("open"),
        series("save"),
        "saving it",
    )
    yield Figure(
        "image",
        f"private memory of an opened image of {what}",
        "KiB",
        mapped,
        scaled("private", 1 / 1024),
        scaled("file", 1 / 1024),
        "the file",
    )
    topics = scale.python
    job = _c("mapped", scale, topics, scale.queries, tempfile.gettempdir())
    for title, key in (("attached", "attached"), ("opened", "opened")):
        yield Figure(
            "image",
            f"C leader lookup, {title} file, random of {count(topics)} topics",
            "ns",
            job,
            series(key),
            series("owner"),
            "the owner's",
        )


def _waits(scale: Scale) -> Iterable[Figure]:
    topics = scale.python
    job = _live("waits", scale, topics, scale.python_queries, min(5, scale.rounds), 1)
    for title, key, reference, other in (
        ("thread", "thread", "event", "threading.Event"),
        ("asyncio task", "task", "soon", "call_soon_threadsafe"),
    ):
        yield Figure(
            "waits",
            f"change -> {title} woken, p99",
            "us",
            job,
            series(key),
            series(reference),
            other,
        )
    job = _live("attach", scale, topics, scale.python_queries, min(5, scale.rounds), 1)
    yield Figure(
        "waits",
        "change -> seen by an attached process, p99",
        "ms",
        job,
        series("p99"),
        series("median"),
        "median",
    )


def _arrow(scale: Scale) -> Iterable[Figure]:
    topics = scale.fills[-1]
    yield Figure(
        "arrow",
        f"to_arrow, {count(topics * PER_TOPIC)} partitions",
        "ns/row",
        _live("arrow", scale, topics, 1, scale.rounds, 1),
        series("export"),
        series("copy"),
        "copying the bytes",
    )


def _churn(scale: Scale) -> Iterable[Figure]:
    job = Job("churn", (str(scale.churn), str(scale.churn_seconds), "{seed}"))
    what = f"{count(scale.churn * PER_TOPIC)} partitions, {scale.churn_seconds} s of it"
    for way, title in (("own", "own count"), ("rss", "RSS")):
        yield Figure(
            "churn",
            f"memory after churn by {title}, ids <= 32767, {what}",
            "B/partition",
            job,
            number(way, "partitions"),
            number("own_fresh", "partitions_first"),
            "a new cache",
            Goal(plus=40),
        )


PARTS: tuple[Callable[[Scale], Iterable[Figure]], ...] = (
    _handles,
    _bulk,
    _threads,
    _images,
    _waits,
    _arrow,
    _churn,
)
