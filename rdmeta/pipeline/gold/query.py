"""Runs the SQL of measures in DuckDB.

The caller gives a connection the tables of silver. `prepare` adds the views that the measures
share, and `rows` runs one measure.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta.errors import MissingExtraError
from rdmeta.pipeline.gold.measures import MEASURES, text_of
from rdmeta.pipeline.tables import IDS

if TYPE_CHECKING:
    import duckdb

_MEMORY_SHARE = 0.6
# Where Linux says how much memory a container may have, in versions 2 and 1 of cgroups.
_OF_CONTAINER = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def connected(beside: int = 1) -> duckdb.DuckDBPyConnection:
    """Returns a DuckDB in memory whose times are in UTC; the caller closes it.

    `beside` is the number of processes that work at a time. They share the CPUs and the memory.
    Raises MissingExtraError without DuckDB.
    """
    require_duckdb()
    import duckdb

    room = room_here()
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": room.cpus // room.at_a_time(beside),
            "memory_limit": f"{room.memory // room.at_a_time(beside) >> 20}MiB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class Room(NamedTuple):
    """The bytes that DuckDB may have, and the CPUs, of all processes of a machine together."""

    memory: int
    cpus: int

    def at_a_time(self, beside: int) -> int:
        """Returns how many of so many processes share them at a time."""
        return min(beside, self.cpus)


def room_here() -> Room:
    """Returns what this machine, or the limits of this process, leave for DuckDB."""
    return Room(int(_memory() * _MEMORY_SHARE), os.cpu_count() or 1)


def _memory() -> int:
    """Returns how many bytes a process may have: those of the machine, or a limit below that.

    The limit is that of its container, as of a pod of Kubernetes, or of its address space, which is
    how Spark enforces `spark.executor.pyspark.memory`.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    if (most := resource.getrlimit(resource.RLIMIT_AS)[0]) != resource.RLIM_INFINITY:
        limits.append(most)
    for path in _OF_CONTAINER:
        with suppress(OSError, ValueError):  # no such version, or "max", which is none
            limits.append(int(path.read_text()))
    return min(limits)


def require_duckdb() -> None:
    """Raises MissingExtraError without DuckDB."""
    try:
        import duckdb  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.of("gold tables", "pipeline") from error


def prepare(
    connection: duckdb.DuckDBPyConnection, *, min_isr: int | None = None, flap_seconds: int = 600
) -> None:
    """Creates the views of the prelude over the tables of silver.

    `min_isr` counts for partitions whose min ISR silver does not know. `flap_seconds` is the
    longest time for which a broker that flaps is out of an ISR.
    """
    known = "NULL::INTEGER" if min_isr is None else f"{int(min_isr)}::INTEGER"
    connection.execute(f"SET VARIABLE min_isr = {known}")
    connection.execute(f"SET VARIABLE flap_us = {int(flap_seconds) * 1_000_000}::BIGINT")
    connection.execute(text_of("prelude"))


def rows(connection: duckdb.DuckDBPyConnection, name: str, where: str = "true") -> pa.Table:
    """Returns the rows of a measure that match `where`, as `in_order()` does."""
    columns = ", ".join(f'"{each}"' for each in MEASURES[name].schema.names)
    query = f"SELECT {columns} FROM (\n{text_of(name)}\n) WHERE {where}"
    return in_order(name, connection.sql(query).to_arrow_table())


def in_order(name: str, found: pa.Table) -> pa.Table:
    """Returns the rows of a measure in order, with exactly its schema.

    The order is that of the key, then of all other columns: episodes without duration may have the
    same key. A list of ids counts as its text; other lists do not count. Raises ValueError for a
    null where none is.
    """
    rows = _exact(name, found)
    if not rows.num_rows:
        return rows
    keys = {}
    for each in (*MEASURES[name].order, *rows.column_names):
        column = rows[each]
        if column.type == IDS:
            keys[each] = pc.binary_join(column.cast(pa.list_(pa.string())), ",")
        elif not pa.types.is_nested(column.type):
            keys[each] = column
    order: Any = [(each, "ascending", "at_start") for each in keys]
    return rows.take(pc.sort_indices(pa.table(keys), order))


def _exact(name: str, rows: pa.Table) -> pa.Table:
    """Returns rows with exactly a measure's schema; raises ValueError for a null where none is."""
    found = rows.cast(MEASURES[name].schema)
    for field in found.schema:
        if not field.nullable and found[field.name].null_count:
            raise ValueError(f"{name}: column {field.name} has nulls")
    return found
