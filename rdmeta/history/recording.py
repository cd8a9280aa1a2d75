"""One unbroken observation of one cluster: its rows that are not in a file yet, and its footers."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from rdmeta.history.columns import single, stamped
from rdmeta.history.pace import Sight
from rdmeta.history.schema import CHANGE_SCHEMA, FileName, Footer, day_folder

__all__ = ["OpenRecording"]


class OpenRecording:
    """A recording from its baseline on. Its rows go through `add`; times never run backwards.

    `until` is the version that the rows reach, `observed_to` the time until which they tell all.
    """

    def __init__(self, cluster_id: str, begin: datetime, continues: str | None = None) -> None:
        self.cluster_id = cluster_id
        self.session = str(uuid4())
        self.until = 0
        self.begin = self.observed_to = self.flushed_at = begin
        self.has_file = False
        self._continues = continues
        self._ended_by: str | None = None
        self._rows: list[pa.Table] = []
        self._since = 0
        self._from = begin
        self._longest: float | None = None

    @property
    def row_count(self) -> int:
        """The number of rows that are not in a file yet."""
        return sum(map(len, self._rows))

    def begin_with(self, state: pa.Table, version: int, reason: str | None = None) -> int:
        """Adds the whole state at `version`; returns the number of rows.

        `reason` says why observation was interrupted before, None if it was not.
        """
        mark = {"version": version, "source": "poll", "observed_at": self.begin}
        marks = [{**mark, "kind": "observed_from"}]
        if reason is not None:
            marks.append({**mark, "kind": "resync", "detail": reason})
        place = CHANGE_SCHEMA.get_field_index("observed_at")
        field = CHANGE_SCHEMA.field(place)
        begin = pa.repeat(pa.scalar(self.begin, field.type), len(state))
        rows = pa.concat_tables([single(marks), state.set_column(place, field, begin)])
        self.add(rows, version, self.begin)
        return len(rows)

    def add(
        self,
        rows: pa.Table,
        until: int,
        now: datetime,
        before: datetime | None = None,
    ) -> None:
        """Adds rows that lead up to version `until`, and that an observation at `now` saw.

        `before` is the time of the observation before it, None for rows that tell themselves.
        """
        span = self.observed_to, max(self.observed_to, now)
        if len(rows):
            self._rows.append(stamped(rows, self.cluster_id, self.session, span, before))
        self.until = until
        self.observed_to = span[1]

    def note(self, sight: Sight) -> None:
        """Notes how far an observation lies behind the one before."""
        if sight.passed is not None:
            self._longest = max(self._longest or 0.0, sight.passed)

    def end(self, ended_by: str, at: datetime | None = None) -> None:
        """Adds the last row; `at` is a time up to which all is known, None: `observed_to`."""
        self._ended_by = ended_by
        self.observed_to = at or self.observed_to
        row: dict[str, Any] = {"version": self.until, "source": "poll", "kind": "observed_to"}
        self.add(single([row | {"observed_at": self.observed_to}]), self.until, self.observed_to)

    def file(self, directory: Path, **about: Any) -> tuple[Path, pa.Table]:
        """Returns the path and the table of the next file; `about` are more entries of a footer."""
        name = FileName(self.cluster_id, self.session, self._since, self.until)
        footer = Footer(
            name,
            self._from,
            self.observed_to,
            continues=self._continues,
            ended_by=self._ended_by,
            longest_gap_us=None if self._longest is None else round(1e6 * self._longest),
            **about,
        )
        rows = pa.concat_tables(self._rows) if self._rows else CHANGE_SCHEMA.empty_table()
        path = directory / day_folder(self.cluster_id, self.begin) / str(name)
        return path, rows.replace_schema_metadata(footer.metadata())

    def written(self) -> None:
        """Drops the rows, which are in a file now.

        The next file replaces one that reached no later version: it begins where that one began.
        So it needs that one's rows and time.
        """
        self.has_file = True
        self.flushed_at = self.observed_to
        if self._since == self.until:
            return
        self._from = self.observed_to
        self._since = self.until
        self._longest = None
        self._rows.clear()
