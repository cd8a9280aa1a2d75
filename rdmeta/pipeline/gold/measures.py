"""The measures of gold: columns, keys and SQL.

Each measure is one SELECT over silver and over the views of `sql/prelude.sql`. docs/measures.md
shows the same text.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import pyarrow as pa

from rdmeta.pipeline.tables import schema_of

__all__ = ["MEASURES", "Measure", "text_of"]


@dataclass(frozen=True)
class Measure:
    """A table of gold.

    `time` is the column that tells to which month a row belongs. Rows are in the order of the
    columns `order`, which identify a row.
    """

    name: str
    schema: pa.Schema
    time: str
    order: tuple[str, ...]


def text_of(name: str) -> str:
    """Returns the SQL of a measure, or that of `prelude`."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def _measure(name: str, order: str, columns: str) -> Measure:
    """Returns a measure; the second column of `order` is its time."""
    keys = tuple(order.split())
    return Measure(name, schema_of("cluster_id str, " + columns), keys[1], keys)


# One entry for each file of sql/, in the order of docs/measures.md.
_ALL: tuple[Measure, ...] = ()

MEASURES: dict[str, Measure] = {each.name: each for each in _ALL}
