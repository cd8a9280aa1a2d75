"""The figures of the report: the page beside the gold that it reads."""

from __future__ import annotations

from collections.abc import Iterable

from bench.figure import Figure, Goal, Job, Scale, series


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


PARTS = (_page,)
