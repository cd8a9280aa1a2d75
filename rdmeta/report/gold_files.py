"""Gold of an output folder as a report reads it: clusters, days, and rows of a span.

Each file is compared with its digest in the manifest, so that all rows are of one run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rdmeta._moments import moment
from rdmeta.pipeline import lock
from rdmeta.pipeline.days import DAY_US, begin_of, day_at
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.layout import GOLD, MANIFEST, gold_file, read_layout
from rdmeta.pipeline.manifest import read_manifest
from rdmeta.pipeline.store import Store

# The column with the end of a row, where it may lie in a later month than its begin.
_ENDS = dict.fromkeys(("incident", "recovery", "reassignment", "controller"), "ended_at")
# Columns that no query of a report asks for, of the measures with many rows.
_UNREAD = {
    "coverage_hour": {"origins"},
    "risk_hour": {
        *("observed", "unknown_min_isr", "unknown_reassigning", "unknown_racks", "eff_is_exact"),
    },
    "balance_hour": {
        *("preferred", "preferred_led_by_others", "replica_skew", "variation", "leaderless"),
        "brokers",
    },
}
_MANY = 65_536
_ANY_GOLD = re.compile(r"gold/v\d+/")

HOUR_US = DAY_US // 24


class ChangedError(Exception):
    """The files of gold are no longer those of the manifest that was read."""


class Span(NamedTuple):
    """Whole days, in microseconds since 1970."""

    begin: int
    end: int

    @property
    def days(self) -> tuple[str, str]:
        """The first and the last day."""
        return day_at(self.begin), day_at(self.end - 1)


class GoldFiles:
    """The files of gold in `out`, as its manifest has them.

    While a run is at work, the last read takes a file also if it is not that of the manifest.
    `names` are the clusters by id, with what people call them. Raises PipelineError if there is no
    gold, or that of another version, and for a cluster that is not there.
    """

    def __init__(
        self, out: Store, clusters: Iterable[str] | None = None, *, is_last: bool = False
    ) -> None:
        self._is_last = is_last
        read_layout(out)
        self._text = out.read(MANIFEST)
        manifest = read_manifest(out)
        self._files = manifest.files
        self._out = Store(out.where, {n: f.stored for n, f in self._files.items() if f.stored})
        self._is_locked = lock.is_marked(out)
        self.months = {c: sorted(found) for c, found in manifest.months.items() if found}
        if not self.months:
            raise PipelineError(f"{out.where}: {self._why_none()}")
        self._days = {c: sorted(manifest.days.get(c, ())) for c in self.months}
        self.names = {each: manifest.names.get(each, each) for each in sorted(self.months)}
        if unknown := set(clusters or ()) - {*self.names, *self.names.values()}:
            raise PipelineError(
                f"there is no cluster {sorted(unknown)[0]!r} in {out.where};"
                f" {self.clusters_and_days}"
            )
        if clusters is not None:
            self.names = {c: n for c, n in self.names.items() if {c, n} & {*clusters}}

    @property
    def is_changed(self) -> bool:
        """Whether the manifest is another one than that which was read."""
        return self._out.read(MANIFEST) != self._text

    @property
    def is_at_work(self) -> bool:
        """Whether a run works on the folder, or has changed it since the manifest was read."""
        return self._is_locked or self.is_changed

    @property
    def clusters_and_days(self) -> str:
        """The clusters with their first and last days, for errors."""
        pairs = [(name, self._days[cluster]) for cluster, name in self.names.items()]
        shown = [f"{name} ({days[0]} to {days[-1]})" if days else name for name, days in pairs]
        rest = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
        return f"it has {', '.join(shown[:20])}{rest}"

    def last_week(self) -> Span:
        """Returns the last seven days of coverage_hour."""
        months = sorted({month for cluster in self.names for month in self.months[cluster]})
        end = begin_of(f"{months[-1]}-01")
        for month in reversed(months):
            found = [pc.max(part["hour"]) for part in self._parts("coverage_hour", {month})]
            if ends := [each.cast(pa.int64()).as_py() for each in found if each.is_valid]:
                end = max(ends) // DAY_US * DAY_US + DAY_US
                break
        return Span(end - 7 * DAY_US, end)

    def rows(self, measure: str, spans: Sequence[Span]) -> pa.Table:
        """Returns the rows of a measure that reach into one of the spans.

        Raises ChangedError, PipelineError for a damaged file, and OSError.
        """
        wanted = {
            month
            for cluster in self.names
            for month in self.months[cluster]
            if any(_is_of(measure, month, *span.days) for span in spans)
        }
        first, last = min(s.begin for s in spans), max(s.end for s in spans)
        parts = [_cut(measure, part, first, last) for part in self._parts(measure, wanted)]
        return pa.concat_tables([_schema(measure).empty_table(), *parts])

    def _parts(self, measure: str, months: Iterable[str]) -> Iterator[pa.Table]:
        for cluster in self.names:
            for month in sorted(set(months) & set(self.months[cluster])):
                yield self._read(measure, gold_file(measure, cluster, month))

    def _read(self, measure: str, name: str) -> pa.Table:
        known = self._files.get(name)
        content = self._out.read(name) if known is not None else None
        if known is None or content is None or hashlib.sha256(content).hexdigest() != known.sha256:
            if not self.is_at_work:
                what = "it is missing" if content is None else "it is damaged"
                raise PipelineError(f"{self._out.shown(name)}: {what}; run rdmeta pipeline check")
            if not self._is_last:
                raise ChangedError
            known = None
        schema = _schema(measure)
        if content is None or (known is not None and not known.rows):
            return schema.empty_table()
        try:
            # To hand few rows to threads takes longer than to read them.
            file = pq.ParquetFile(pa.BufferReader(content))
            return file.read(schema.names, use_threads=file.metadata.num_rows > _MANY).cast(schema)
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            what = f"{self._out.shown(name)}: it is no file of {GOLD}: {error}"
            raise PipelineError(f"{what}; run rdmeta pipeline gold") from error

    def _why_none(self) -> str:
        if self._text is None:
            return f"it has no gold; run rdmeta pipeline all IN {self._out.where}"
        other = sorted({n[: n.index("/", 5)] for n in self._files if _ANY_GOLD.match(n)} - {GOLD})
        has = f"it has {other[0]}, and this version of rdmeta reads {GOLD}" if other else "no gold"
        return f"{has}; run rdmeta pipeline gold {self._out.where}"


def _is_of(measure: str, month: str, first: str, last: str) -> bool:
    """Returns whether a month may have rows of days; long rows are in that of their begin."""
    return month <= last[:7] and (month >= first[:7] or measure in _ENDS)


def _schema(measure: str) -> pa.Schema:
    """Returns the columns of a measure that are read."""
    unread = _UNREAD.get(measure, set())
    return pa.schema([each for each in MEASURES[measure].schema if each.name not in unread])


def _cut(measure: str, rows: pa.Table, first: int, last: int) -> pa.Table:
    """Returns the rows that reach into the time from `first` to before `last`, or have no end.

    Topics and controllers have a row for each month, and their queries look at whole months.
    """
    if measure in ("topic_life", "controller"):
        return rows
    begin, end = rows[MEASURES[measure].time], rows[_ENDS.get(measure, MEASURES[measure].time)]
    late = pc.or_kleene(pc.greater_equal(end, moment(first)), pc.is_null(end))
    # A filter by an expression would start threads for each of many small tables.
    return rows.filter(pc.and_(pc.less(begin, moment(last)), late))
