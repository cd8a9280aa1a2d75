"""The tables of a state: a live cluster, which is asked once, an image, or metadata logs.

The driver has the whole state before a task starts, and sends each task its rows. So all tasks see
one moment, and none needs a connection, a credential or the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta import config
from rdmeta.cache import MetadataCache
from rdmeta.errors import ConfigError, Error
from rdmeta.net.fetch import fetch
from rdmeta.spark.source.files import Slice
from rdmeta.spark.source.logged import state_tables
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.row_filter import RowFilter
from rdmeta.spark.source.schemas import arrow_schema

# Spark keeps what a task gets in the driver's memory, and sends it together with the task.
_SLICE_BYTES = 4 << 20


class RowsSlice(Slice):
    """Rows themselves, as a stream of Arrow's IPC format."""

    def __init__(self, rows: pa.Table) -> None:
        super().__init__()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        self._bytes: bytes = sink.getvalue().to_pybytes()

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yields the rows."""
        yield pa.ipc.open_stream(self._bytes).read_all()


def slices_of_state(options: Options, filter_: RowFilter) -> list[Slice]:
    """Returns the wanted rows of a table of a cluster, an image or a folder's logs, in slices.

    A cluster is asked for the wanted topics only. Raises the errors of `rdmeta.fetch` and
    `Client.describe_configs`, ConfigError for an image that cannot be read, and the errors of logs.
    """
    if options.source == "path":
        rows = _of_logs(options, filter_)
    elif options.source == "image":
        rows = _of_image(options, filter_)
    elif options.table == "configs":
        rows = _configs(options, filter_)
    else:
        rows = _with_cluster(_asked(options, filter_).image(), options, filter_)
    count = max(1, -(-rows.nbytes // _SLICE_BYTES))
    step = max(1, -(-rows.num_rows // count))
    return [RowsSlice(rows.slice(n, step)) for n in range(0, rows.num_rows, step)]


def _asked(options: Options, filter_: RowFilter) -> MetadataCache:
    """Returns what a cluster answers."""
    cache = MetadataCache()
    topics = None if filter_.topics is None else sorted(filter_.topics)
    if options.table == "brokers":
        topics = []
    timeout = config.parse(options.client).max_block
    fetch(cache, topics=topics, timeout=timeout, conf=dict(options.client))
    return cache


def _of_image(options: Options, filter_: RowFilter) -> pa.Table:
    from rdmeta._core import Image

    if not Path(options.where).is_file():
        raise ConfigError(f"option image = {options.where!r}: there is no such file")
    try:
        return _with_cluster(Image.open(options.where), options, filter_)
    except (Error, OSError) as error:
        raise ConfigError(f"option image = {options.where!r}: {error}") from error


def _of_logs(options: Options, filter_: RowFilter) -> pa.Table:
    columns = arrow_schema(options.table)
    found = [
        configs if options.table == "configs" else _with_cluster(state.image(), options, filter_)
        for state, configs in state_tables(options, filter_)
    ]
    return pa.concat_tables([columns.empty_table(), *found])


def _with_cluster(state: Any, options: Options, filter_: RowFilter) -> pa.Table:
    """Returns the rows of a table with the cluster's id."""
    columns = arrow_schema(options.table)
    reader = pa.RecordBatchReader.from_stream(state.to_arrow(options.table))
    rows = reader.read_all()
    if "cluster_id" not in rows.schema.names:
        cluster = pa.repeat(pa.scalar(state.cluster_id, pa.string()), rows.num_rows)
        rows = rows.append_column("cluster_id", cluster)
    if filter_.topics is not None and "topic" in columns.names:
        names = pa.array(sorted(filter_.topics), pa.string())
        rows = rows.filter(pc.is_in(rows["topic"], names))
    if filter_.partitions is not None and "partition" in columns.names:
        numbers = pa.array(sorted(filter_.partitions), pa.int64())
        rows = rows.filter(pc.is_in(rows["partition"].cast(pa.int64()), numbers))
    return rows.select(columns.names).cast(columns)


def _configs(options: Options, filter_: RowFilter) -> pa.Table:
    """Returns a row for each configuration of a topic, or for the error of a topic."""
    from rdmeta.client.blocking import Client

    cache = _asked(options, filter_)
    names = sorted(topic.name for topic in cache.image().topics())
    found: Mapping[str, Any] = {}
    if names:
        timeout = config.parse(options.client).max_block
        with Client(dict(options.client)) as client:
            found = client.describe_configs(names, timeout=timeout)
    rows = [
        {"cluster_id": cache.cluster_id, "topic": topic, "key": key, "value": value, "error": error}
        for topic, config in sorted(found.items())
        for key, value, error in _config_rows(config)
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema("configs"))


def _config_rows(config: Any) -> list[tuple[str | None, str | None, str | None]]:
    if config.error is not None:
        return [(None, None, str(config.error))]
    return [(key, value, None) for key, value in sorted(config.values.items())]
