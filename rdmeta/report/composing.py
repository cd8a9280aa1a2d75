"""Makes a report: chooses the span, reads gold, and asks DuckDB."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from rdmeta._version import __version__
from rdmeta.pipeline.days import DAY_US, begin_of, is_day
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.gold import query
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.layout import GOLD_VERSION
from rdmeta.pipeline.storage import Storage, using
from rdmeta.pipeline.store import Store, contacted
from rdmeta.report.facts import QUERIES, QUERIES_COMPARED, Facts
from rdmeta.report.gold_files import HOUR_US, ChangedError, GoldFiles, Span
from rdmeta.report.rendering import html_page, markdown_page
from rdmeta.report.section_parts import BIN_HOURS, MOST_BINS
from rdmeta.report.sections import sections
from rdmeta.report.wording import time_text


@dataclass(frozen=True)
class Report:
    """A report: `json` is the model; `html` and `markdown` are made of it. A notebook shows it."""

    json: str

    @property
    def html(self) -> str:
        """The page, without script and requests."""
        return html_page(self._model)

    @property
    def markdown(self) -> str:
        """The same in at most 60 000 characters; long lists end earlier for that."""
        return markdown_page(self._model)

    @property
    def _model(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.json)
        return found

    def _repr_html_(self) -> str:
        """Returns the page in a frame of its own, so that its styles stay in it."""
        shape = 'title="rdmeta report" style="width:100%;height:45em;border:0"'
        return f'<iframe {shape} sandbox srcdoc="{escape(self.html)}"></iframe>'


def make(
    out: str | os.PathLike[str],
    *,
    since: str | None = None,
    until: str | None = None,
    clusters: Iterable[str] | None = None,
    compare: str | bool | None = None,
    timeout: float = 30.0,
    storage: Mapping[str, str] | None = None,
) -> Report:
    """Returns the report of an output folder of the pipeline.

    `since` is the first day and `until` the first one that is left out; by default the last seven
    days. `clusters` are ids or names. `compare` is the day at which a span of equal length begins,
    or True for the span before. `timeout` and `storage` are as in rdmeta.pipeline.plan().

    Raises PipelineError if there is no gold, or if it is damaged, for a cluster that is not there
    and for a span without rows; ValueError for what is no day; and OSError.
    """
    chosen = None if clusters is None else sorted({*clusters})
    asked = _ReportScope(since, until, chosen, compare)
    for name, day in (("since", since), ("until", until), ("compare", compare)):
        if isinstance(day, str) and not is_day(day):
            raise ValueError(f"{name} must be a day such as 2026-11-22, not {day!r}")
    with using(Storage.parse(storage)):
        store = contacted(out, timeout)
        try:
            gold = GoldFiles(store, chosen)
            found = _read_gold(gold, store, asked)
            is_changed = gold.is_changed
        except ChangedError:
            is_changed = True
        if is_changed:
            found = _read_gold(GoldFiles(store, chosen, is_last=True), store, asked)
    return Report(json.dumps(found, separators=(",", ":")))


class _ReportScope(NamedTuple):
    """What the caller wants to see, as `make` takes it."""

    since: str | None
    until: str | None
    clusters: Sequence[str] | None
    compare: str | bool | None


def _read_gold(gold: GoldFiles, store: Store, asked: _ReportScope) -> dict[str, Any]:
    """Returns the model of a report; raises as `make`, and ChangedError."""
    span = _span(gold, asked.since, asked.until)
    spans, hours = [span], _bin_hours(span)
    if asked.compare:
        length = span.end - span.begin
        day = asked.compare
        begin = begin_of(day) if isinstance(day, str) else span.begin - length
        spans.append(Span(begin, begin + length))
    with query.connected(os.cpu_count() or 1) as connection:
        for measure in MEASURES:
            connection.register(measure, gold.rows(measure, spans))
        facts, *before = (
            Facts(connection, gold.names, each, hours, queries)
            for each, queries in zip(spans, (QUERIES, QUERIES_COMPARED), strict=False)
        )
    for each in (*before, facts):
        if not each.answers["coverage"]:
            first, last = each.span.days
            raise PipelineError(
                f"{store.where}: gold has no rows of {first} to {last}; {gold.clusters_and_days}"
            )
    return {
        "version": 1,
        "command": "report",
        "rdmeta": __version__,
        "gold": GOLD_VERSION,
        "call": _call(store.where, asked),
        "since": time_text(span.begin),
        "until": time_text(span.end),
        "days": span.days,
        "days_before": before[0].span.days if before else None,
        "clusters": len(gold.names),
        "is_run_at_work": gold.is_at_work,
        "sections": sections(facts, *before),
    }


def _span(gold: GoldFiles, since: str | None, until: str | None) -> Span:
    """Returns the days that were asked for; seven if only one end was named."""
    week = 7 * DAY_US
    if since is None and until is None:
        return gold.last_week()
    end = begin_of(until) if until is not None else gold.last_week().end
    begin = begin_of(since) if since is not None else end - week
    if begin >= end:
        first, last = since, until or gold.last_week().days[1]
        raise PipelineError(
            f"there is no day from {first} to before {last}; {gold.clusters_and_days}"
        )
    return Span(begin, end)


def _bin_hours(span: Span) -> int:
    """Returns the hours of a cell of a strip; raises PipelineError for a span that is too long."""
    hours = (span.end - span.begin) // HOUR_US
    for each in BIN_HOURS:
        if hours <= each * MOST_BINS:
            return each
    most = BIN_HOURS[-1] * MOST_BINS // 24
    raise PipelineError(
        f"a report has at most {most} days, not {hours // 24}: name a later --since"
    )


def _call(where: str, asked: _ReportScope) -> str:
    named = asked._replace(compare=None) if asked.compare is True else asked
    options = {**named._asdict(), "clusters": ",".join(asked.clusters or ())}
    words = [f"--{name} {value}" for name, value in options.items() if value]
    return " ".join(["rdmeta report", where, *words, *["--compare"] * (asked.compare is True)])
