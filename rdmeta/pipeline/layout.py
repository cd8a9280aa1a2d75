"""The names in an output folder, its version, and the parts of each cluster's tables.

    OUT/layout.json                                     the version; period and parts by cluster
    OUT/bronze/cluster=ID/day=DAY/changes-….parquet     history files, as the recorder names them
    OUT/bronze/cluster=ID/log/node=N/                   files of metadata logs, as Kafka names them
    OUT/input.parquet                                   a row for each input file
    OUT/silver/v1/TABLE/cluster=ID/period=P/part-I-of-N.parquet
    OUT/silver/v1/_state/cluster=ID/ORIGIN.DAY.….state  the state at a midnight within a recording
    OUT/gold/v1/MEASURE/cluster=ID/month=YYYY-MM.parquet
    OUT/manifest/cluster=ID/MONTH.json                  files, rows, digests, by cluster and month
    OUT/manifest.json                                   the digests of these
    OUT/lock

With `--tables delta` or `iceberg` a file of silver or gold is stored under a name of its content,
and the log of its table lies beside it. All else calls it by its name above.

    OUT/silver/v1/TABLE/cluster_id=ID/period=P/part-DIGEST-I-of-N.parquet
    OUT/gold/v1/MEASURE/cluster_id=ID/month=YYYY-MM/part-DIGEST-0-of-1.parquet

A cluster's period and number of parts follow from the history that a run finds when the cluster
first comes. They stay as they are in that folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.store import Store

VERSION = 1
BRONZE = "bronze"
SILVER_VERSION = 1
SILVER = f"silver/v{SILVER_VERSION}"
GOLD_VERSION = 1
GOLD = f"gold/v{GOLD_VERSION}"
LAYOUT = "layout.json"
MANIFEST = "manifest.json"
MANIFEST_PARTS = "manifest"
INPUT = "input.parquet"
CATALOG = "catalog.db"
KINDS = ("folder", "delta", "iceberg")
# Of a folder whose tables have logs, so that an older rdmeta refuses it.
_VERSION_OF_LOGS = 2

# Below this many rows a day, a month makes a better file than a day.
_SMALL_DAY = 20_000
# Above this many rows, a day is more than one part.
_PART_ROWS = 10_000_000

_OLD = ("_made_from", "partition_interval", "leader_change")


class Parts(NamedTuple):
    """How a cluster's tables are cut: `period` is "day" or "month"; `buckets` of a period."""

    period: str
    buckets: int


class TableKind(NamedTuple):
    """The kind of the tables of a folder; `catalog` names the one of Iceberg, "" is OUT's own."""

    name: str = "folder"
    catalog: str = ""

    @property
    def has_logs(self) -> bool:
        return self.name != "folder"

    @property
    def shown(self) -> str:
        return f"{self.name}, in the catalog {self.catalog}," if self.catalog else self.name


class StoredName(NamedTuple):
    """What the name of a file of content says; `layer` is silver or gold."""

    layer: str
    table: str
    cluster_id: str
    period: str
    digest: str
    bucket: int
    buckets: int

    @classmethod
    def parse(cls, name: str) -> StoredName | None:
        """Returns what a name says, None if rdmeta gives no such names."""
        found = _STORED.fullmatch(name)
        if found is None:
            return None
        layer, table, cluster, period, digest, bucket, buckets = found.groups()
        return cls(layer, table, unquote(cluster), period, digest, int(bucket), int(buckets))

    @property
    def logical(self) -> str:
        """The name that the file has where it is not of content."""
        if self.layer == "gold":
            return gold_file(self.table, self.cluster_id, self.period)
        return table_file(self.table, self.cluster_id, self.period, self.bucket, self.buckets)

    @property
    def partition(self) -> dict[str, str]:
        """The columns by which its table is partitioned, and their values."""
        return {"cluster_id": self.cluster_id, _PERIODS[self.layer]: self.period}


def cluster_folder(cluster_id: str) -> str:
    """Returns the name of a cluster's folder, quoted as the history's names are."""
    return f"cluster={quote(cluster_id, safe='')}"


def bronze_file(cluster_id: str, day: str, name: str) -> str:
    """Returns the name of the copy of a history file of a recording that began on `day`."""
    return f"{BRONZE}/{cluster_folder(cluster_id)}/day={day}/{name}"


def log_file(cluster_id: str, node: int, name: str) -> str:
    """Returns the name of the copy of a file of a node's metadata log."""
    return f"{BRONZE}/{cluster_folder(cluster_id)}/log/node={node}/{name}"


def is_log_file(name: str) -> bool:
    """Returns whether a name of the output folder is that of a metadata log's file."""
    return _LOG_FILE.match(name) is not None


def table_file(table: str, cluster_id: str, period: str, bucket: int, buckets: int) -> str:
    """Returns the one name for a table's part."""
    folder = f"{SILVER}/{table}/{cluster_folder(cluster_id)}/period={period}"
    return f"{folder}/part-{bucket}-of-{buckets}.parquet"


def state_file(cluster_id: str, origin: str, day: str, key: str, bucket: int, buckets: int) -> str:
    """Returns the name of the state at the end of `day`; `key` tells what it rests on."""
    folder = f"{SILVER}/_state/{cluster_folder(cluster_id)}"
    return f"{folder}/{origin}.{day}.part-{bucket}-of-{buckets}.{key[:32]}.state"


def gold_file(measure: str, cluster_id: str, month: str) -> str:
    """Returns the one name for a measure of a month such as 2026-11."""
    return f"{GOLD}/{measure}/{cluster_folder(cluster_id)}/month={month}.parquet"


_LOG_FILE = re.compile(rf"{BRONZE}/cluster=[^/]+/log/node=\d+/")
_PERIODS = {"silver": "period", "gold": "month"}
_STORED = re.compile(
    r"(silver|gold)/v\d+/([^/]+)/cluster_id=([^/]+)/(?:period|month)=([^/]+)"
    r"/part-([0-9a-f]{32})-(\d+)-of-(\d+)\.parquet"
)


def is_of_logs(name: str) -> bool:
    """Returns whether a file is of a table's log, or one that only a log tells of."""
    return (
        StoredName.parse(name) is not None
        or "/_delta_log/" in name
        or "/metadata/" in name
        or name.startswith(CATALOG)
    )


def stored_name(logical: str, digest: str) -> str:
    """Returns the name of content for a file; `digest` is that of what it is made from."""
    name = logical.replace("/cluster=", "/cluster_id=", 1)
    if name.startswith(GOLD):
        return f"{name.removesuffix('.parquet')}/part-{digest[:32]}-0-of-1.parquet"
    return name.replace("/part-", f"/part-{digest[:32]}-")


def period_of(day: str, parts: Parts) -> str:
    """Returns the period to which a day such as 2026-11-22 belongs."""
    return day if parts.period == "day" else day[:7]


def choose_parts(rows_of_days: Iterable[int]) -> Parts:
    """Returns the parts for a cluster with these numbers of change records a day."""
    rows = list(rows_of_days) or [0]
    if sum(rows) < _SMALL_DAY * len(rows):
        return Parts("month", 1)
    return Parts("day", parts_of_rows(max(rows)))


def parts_of_rows(rows: int) -> int:
    """Returns in how many parts, by the topic, a day of so many rows is cut."""
    return max(1, -(-rows // _PART_ROWS))


def read_layout(out: Store) -> dict[str, Parts]:
    """Returns the parts of the clusters that are in `out`; none if the folder is new.

    Raises PipelineError, with both versions, for a folder of another version.
    """
    return _read(out)[1]


def read_kind(out: Store) -> TableKind | None:
    """Returns the kind of the tables of `out`, None if it is new; raises as `read_layout`."""
    return _read(out)[0]


def _read(out: Store) -> tuple[TableKind | None, dict[str, Parts]]:
    text = out.read(LAYOUT)
    if text is None:
        _refuse_older(out)
        return None, {}
    try:
        found: dict[str, Any] = json.loads(text)
        versions = (int(found["layout"]), int(found["silver"]))
        version = _VERSION_OF_LOGS if found.get("tables") in KINDS[1:] else VERSION
        if versions != (version, SILVER_VERSION):
            raise PipelineError(
                f"{out.where}: it has layout {versions[0]} with silver v{versions[1]}, and this"
                f" version of rdmeta makes layout {VERSION} with silver v{SILVER_VERSION}:"
                " name a new folder, or use the rdmeta that made it"
            )
        clusters: Mapping[str, Any] = found["clusters"]
        parts = {each: Parts(str(p["period"]), int(p["parts"])) for each, p in clusters.items()}
        kind = TableKind(str(found.get("tables", "folder")), str(found.get("catalog", "")))
        return kind, parts
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, PipelineError):
            raise
        raise PipelineError(f"{out.shown(LAYOUT)}: it is damaged: {error}; restore it") from error


def has_logs(out: Store) -> bool:
    """Returns whether the tables have logs: then the manifest says which files count, no listing.

    Raises as `read_layout`.
    """
    kind = read_kind(out)
    return kind is not None and kind.has_logs


def require_kind(out: Store, kind: TableKind) -> None:
    """Raises PipelineError if a folder has tables of another kind."""
    found = read_kind(out)
    if found not in (None, kind):
        raise PipelineError(
            f"{out.where}: another run makes tables of the kind {found.shown} there:"
            " name a new folder"
        )


def write_layout(out: Store, clusters: Mapping[str, Parts], kind: TableKind | None = None) -> None:
    """Writes the version and the parts; a file that says the same stays as it is.

    Raises PipelineError if the tables are of another kind.
    """
    shown = {each: {"period": p.period, "parts": p.buckets} for each, p in clusters.items()}
    values: dict[str, Any] = {"layout": VERSION, "silver": SILVER_VERSION, "clusters": shown}
    if kind is not None and kind.has_logs:
        values |= {"layout": _VERSION_OF_LOGS, "tables": kind.name}
        values |= {"catalog": kind.catalog} if kind.catalog else {}
    text = (json.dumps(values, indent=1, sort_keys=True) + "\n").encode()
    if out.read(LAYOUT) != text:
        require_kind(out, kind or TableKind())
        out.put(LAYOUT, text)


def _refuse_older(out: Store) -> None:
    """Raises PipelineError if the folder has the tables of the job before this layout."""
    if not out.exists():
        return
    for folder in _OLD:
        entry = next(iter(out.files(folder)), None)
        if entry is not None:
            raise PipelineError(
                f"{out.where}: it has {folder}/ of layout 0, which `python -m rdmeta.spark` made,"
                f" and this version of rdmeta makes layout {VERSION}: name a new folder"
            )
    for entry in out.files("silver"):
        raise PipelineError(
            f"{out.where}: it has {entry.name}, but no {LAYOUT}: restore it, or name a new folder"
        )
