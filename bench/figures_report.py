"""The figures of the report: the page beside its gold, made-up clusters beside their tables."""

from __future__ import annotations

from collections.abc import Iterable

from bench.figure import Figure, Goal, Job, Scale, series
from bench.report.made import TIMES_LONGER


def _page(scale: Scale) -> Iterable[Figure]:
    clusters, days = scale.report_fleet
    arguments = (f"--number={clusters}", f"--days={days}", f"--rounds={scale.rounds}")
    job = Job("report", ("page", *arguments), 1)
    name = f"rdmeta report, {clusters} clusters, {days} days"
    other = "making gold of these months in one process"
    for what, unit, keys, beside, goal in (
        ("the process", "s", ("report", "gold"), other, Goal(factor=1 / 5)),
        ("the most memory", "MiB", ("report_memory", "gold_memory"), other, Goal(factor=1)),
        ("the page, compressed", "bytes", ("html", "json"), "its JSON, compressed", Goal(factor=4)),
    ):
        value, reference = map(series, keys)
        yield Figure("report", f"{name}: {what}", unit, job, value, reference, beside, goal)


def _made(scale: Scale) -> Iterable[Figure]:
    days = scale.generated_days
    job = Job("report", ("made", f"--days={days}", f"--rounds={scale.rounds}"), 1)
    name, pipeline = "rdmeta generate bad-friday", "rdmeta pipeline all --engine local of it"
    for what, unit, keys, beside, goal in (
        (f"{days} days", "s", ("generate", "pipeline"), pipeline, Goal(factor=4)),
        (
            f"the most memory for {TIMES_LONGER * days} days",
            "MiB",
            ("long", "short"),
            f"for {days} days",
            Goal(factor=1.3),
        ),
    ):
        value, reference = map(series, keys)
        yield Figure("report", f"{name}, {what}", unit, job, value, reference, beside, goal)


PARTS = (_page, _made)
