"""The list of figures of the cache itself: where each comes from, and its limit. See figure.py.

figures_live.py lists the figures of what is built around the cache, figures_client.py those of the
client, figures_security.py those of the client on secured clusters, figures_cli.py those of the
command and of metrics.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench import (
    figures_cli,
    figures_client,
    figures_fold,
    figures_live,
    figures_log,
    figures_report,
    figures_security,
)
from bench.figure import (
    PER_TOPIC,
    QUICK,
    Figure,
    Goal,
    Job,
    Run,
    Runs,
    Samples,
    Scale,
    count,
    number,
    series,
)

__all__ = [
    "PER_TOPIC",
    "QUICK",
    "Figure",
    "Goal",
    "Job",
    "Run",
    "Runs",
    "Samples",
    "Scale",
    "all_figures",
    "count",
    "number",
    "series",
]


def _lookups(scale: Scale) -> Iterable[Figure]:
    table = "bare table"
    for topics in scale.lookups:
        arguments = (str(topics), str(scale.rounds), str(scale.queries), "{seed}")
        job = Job("lookup", arguments, scale.processes)
        yield Figure(
            "lookup",
            f"C leader lookup, random of {count(topics)} topics",
            "ns",
            job,
            series("random_cache"),
            series("random_floor"),
            table,
            Goal(factor=1.2),
        )
        if topics == scale.lookups[1]:
            yield Figure(
                "lookup",
                f"C leader lookup, 8 hot of {count(topics)} topics",
                "ns",
                job,
                series("hot_cache"),
                series("hot_floor"),
                table,
                Goal(factor=1.3),
            )


FILLS: tuple[tuple[str, str, Goal | None], ...] = (
    ("cold", "C response -> empty cache", None),
    ("warm", "C the same in memory that the process has", None),
    ("walk", "C first ordered walk after that", None),
    ("rewalk", "C second walk", None),
    ("drop", "C giving that cache up", None),
    ("same", "C same response again, same order", Goal(factor=1.5, enough=4)),
    ("shuffled", "C same response again, shuffled", None),
    ("changed", "C response with 0.1 % of topics changed", None),
)


def _fills(scale: Scale) -> Iterable[Figure]:
    for key, name, goal in FILLS:
        for topics in scale.fills:
            yield Figure(
                "apply",
                f"{name}, {count(topics * PER_TOPIC)} partitions",
                "ns/partition",
                Job("apply", (str(topics), str(scale.rounds), "{seed}"), scale.processes),
                series(key),
                series("memcpy"),
                "memcpy",
                goal,
            )
    for ids, title in (("8", ""), ("16", ", ids <= 32767"), ("32", ", any ids")):
        topics = scale.fills[-1]
        yield Figure(
            "first",
            f"C first fill of a fresh process, {count(topics * PER_TOPIC)} partitions{title}",
            "ns/partition",
            Job("fresh", (str(topics), ids, "{seed}"), scale.rounds),
            number("first_ns", "partitions"),
            number("memcpy_ns", "partitions"),
            "memcpy to fresh pages",
        )


def _memory(scale: Scale) -> Iterable[Figure]:
    rows: list[tuple[str, str, float | None, tuple[int, ...], tuple[str, ...]]] = [
        ("16", "ids <= 32767", 40, scale.fills, ("own", "rss")),
        ("32", "any ids", 50, scale.fills, ("own", "rss")),
        ("8", "ids <= 127", None, scale.fills[-1:], ("own", "rss")),
    ]
    for ids, title, limit, sizes, ways in rows:
        for topics in sizes:
            for way in ways:
                how = "own count" if way == "own" else "RSS"
                yield Figure(
                    "memory",
                    f"memory by {how}, {title}, {count(topics * PER_TOPIC)} partitions",
                    "B/partition",
                    Job("fresh", (str(topics), ids, "{seed}"), scale.rounds),
                    number(f"{way}_again", "partitions"),
                    number("bytes", "partitions"),
                    "response",
                    None if limit is None else Goal(plus=limit),
                )
    yield Figure(
        "memory",
        f"memory at most while filling, any ids, {count(scale.fills[-1] * PER_TOPIC)} partitions",
        "B/partition",
        Job("fresh", (str(scale.fills[-1]), "32", "{seed}"), scale.rounds),
        number("rss_peak", "partitions"),
        number("bytes", "partitions"),
        "response",
    )


def _python(scale: Scale) -> Iterable[Figure]:
    options = {"topics": scale.python, "queries": scale.python_queries, "rounds": scale.rounds}
    arguments = [f"--{key}={value}" for key, value in options.items()]
    job = Job("leader", (*arguments, "--seed={seed}"), scale.processes)
    rows = (
        ("random", f"random of {count(scale.python)} topics"),
        ("hot", f"8 hot of {count(scale.python)} topics"),
    )
    for key, what in rows:
        for label, title in (("cache", "cache.leader"), ("dict", "dict of lists")):
            yield Figure(
                "python",
                f"Python {title}, {what}",
                "ns",
                job,
                series(f"{key}_{label}"),
                series(f"{key}_noop"),
                "no-op method",
            )


def _startup(scale: Scale) -> Iterable[Figure]:
    yield Figure(
        "import",
        "import rdmeta",
        "ms",
        Job("startup", (str(2 * scale.rounds),)),
        series("imported"),
        series("bare"),
        "bare interpreter",
    )


def all_figures(scale: Scale) -> list[Figure]:
    """Returns every row, in the order of the table."""
    parts = (
        _lookups,
        _fills,
        _memory,
        _python,
        _startup,
        *figures_live.PARTS,
        *figures_client.PARTS,
        *figures_security.PARTS,
        *figures_cli.PARTS,
        *figures_fold.PARTS,
        *figures_log.PARTS,
        *figures_report.PARTS,
    )
    return [figure for part in parts for figure in part(scale)]
