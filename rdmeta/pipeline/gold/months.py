"""The months of gold that differ from silver: a task for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rdmeta.pipeline.days import day_at
from rdmeta.pipeline.gold.making import digest_of_month
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.layout import Parts, gold_file, period_of, table_file
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import made_from
from rdmeta.pipeline.work import MadeMonth, MonthTask, Settings, tables_of

_DAY = 10


def names_of_month(cluster_id: str, month: str) -> list[str]:
    """Returns the names of all files of a month."""
    return [gold_file(name, cluster_id, month) for name in MEASURES]


def aside_of(files: Iterable[Input]) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Returns the days and states of inputs that were set aside, by cluster and month.

    The day is that of the folder in which a file lies. A file outside such a folder counts on the
    day on which it begins, if that is known.
    """
    found: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for each in files:
        day = _day_of(each)
        if each.state in ("quarantined", "set aside") and each.cluster_id and day:
            months = found.setdefault(each.cluster_id, {})
            months.setdefault(day[:7], []).append((day, each.state))
    return found


def month_tasks(
    out: str,
    cluster_id: str,
    days: Iterable[str],
    parts: Parts,
    settings: Settings,
    digest: Callable[[str], str | None],
    made: Mapping[str, MadeMonth],
    aside: Mapping[str, Sequence[tuple[str, str]]],
    rows: Callable[[str], int],
) -> Iterator[MonthTask]:
    """Yields a task for each month of a cluster that differs from what it was made from.

    The months are those from the first to the last period of silver.

    `digest` gives the SHA-256 of a part of silver, None for one that will be made. `made` are the
    months whose files are in place. `rows` gives the number of rows of a part.
    """
    periods = sorted({period_of(day, parts) for day in days})
    digests = {
        name: found
        for name in _parts_of(cluster_id, periods, parts)
        if (found := digest(name)) is not None
    }
    for month in _months_of(periods):
        mine = tuple(each for each in periods if each[:7] == month)
        intervals = _parts_of(cluster_id, mine, parts, ("partition_interval",))
        task = MonthTask(
            out,
            cluster_id,
            month,
            parts,
            tuple(each for each in periods if each[:7] < month),
            mine,
            tuple(each for each in periods if each[:7] > month),
            digests,
            settings,
            tuple(sorted(aside.get(month, ()))),
            sum(rows(name) for name in intervals),
            "",
        )
        reason = _reason(task, made.get(month))
        if reason is not None:
            yield replace(task, reason=reason)


def months_of_footers(out: Store, names: Iterable[str]) -> dict[str, dict[str, MadeMonth]]:
    """Returns what files of gold say that they were made from, by cluster and month.

    A month counts only if all its files are there and say the same. Raises OSError.
    """
    there = set(names)
    found: dict[str, dict[str, MadeMonth]] = {}
    first = next(iter(MEASURES))
    for name in sorted(there):
        footer = _footer(out, name) if name.split("/")[2:3] == [first] else {}
        if not footer:
            continue
        cluster_id, month = str(footer.pop("cluster_id")), str(footer.pop("month"))
        files = names_of_month(cluster_id, month)
        if there.issuperset(files) and all(
            _footer(out, each) == _footer(out, name) for each in files
        ):
            found.setdefault(cluster_id, {})[month] = MadeMonth(**footer)
    return found


def _months_of(periods: Sequence[str]) -> Iterator[str]:
    """Yields each month from the first to the last one; one without silver lies in a hole."""
    months = [period[:7] for period in periods]
    year, number = (int(each) for each in min(months, default="1-13").split("-"))
    while months and f"{year:04d}-{number:02d}" <= max(months):
        yield f"{year:04d}-{number:02d}"
        year, number = year + number // 12, number % 12 + 1


def _footer(out: Store, name: str) -> dict[str, Any]:
    text = made_from(out, name)
    footer: dict[str, Any] = {} if text is None else json.loads(text)
    return footer


def _reason(task: MonthTask, made: MadeMonth | None) -> str | None:
    """Returns why a month is to be made, None if it stays as it is."""
    if made is None:
        return f"gold of {task.month} is new or lost"
    if digest_of_month(task, made) != made.digest:
        return f"silver of {task.month}, what follows it, or the settings differ"
    return None


def _parts_of(
    cluster_id: str, periods: Iterable[str], parts: Parts, tables: Sequence[str] | None = None
) -> Iterator[str]:
    for period in periods:
        for bucket in range(parts.buckets):
            for table in tables_of(bucket):
                if tables is None or table in tables:
                    yield table_file(table, cluster_id, period, bucket, parts.buckets)


def _day_of(each: Input) -> str | None:
    """Returns the day to which an input belongs, None if nothing tells it."""
    for folder in each.name.split("/")[:-1]:
        if folder.startswith("day=") and len(folder) == len("day=") + _DAY:
            return folder.removeprefix("day=")
    return day_at(each.from_us) if each.from_us else None
