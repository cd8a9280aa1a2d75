"""The recordings in a folder that a read asks for, as far as names and footers tell.

The folder is one of `rdmeta record`, or an OUT of `rdmeta pipeline`, whose copies lie in `bronze`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rdmeta.errors import ConfigError
from rdmeta.history.directory_scan import RecordingFilter
from rdmeta.history.schema import HistoryError
from rdmeta.pipeline.inputs import (
    InputRecording,
    Lister,
    arrange,
    cluster_of,
    entries,
    input_of,
    name_of,
    shown,
)
from rdmeta.pipeline.layout import LAYOUT
from rdmeta.pipeline.store import Store
from rdmeta.spark.source.files import Part
from rdmeta.spark.source.row_filter import RowFilter

__all__ = [
    "chosen_clusters",
    "history_place",
    "is_pipeline",
    "parts_of_changes",
    "recordings",
]

_BRONZE = "bronze"
_ADVICE = "move it elsewhere, or read tables of `rdmeta pipeline`, which sets it aside"


def is_pipeline(store: Store) -> bool:
    """Returns whether a folder is an OUT of the pipeline; raises ConfigError if it is not there."""
    if not store.exists():
        raise ConfigError(f"option path = {store.where!r}: there is no such folder")
    return store.read(LAYOUT) is not None


def parts_of_changes(store: Store, wanted: RowFilter) -> Iterator[Part]:
    """Yields the files with wanted change records; raises ConfigError and HistoryError."""
    for recording in recordings(store, wanted):
        for file in recording.files:
            if wanted.has(file.from_us, file.to_us):
                yield Part(file.store, file.name, file.bytes, file.rows)


def recordings(store: Store, wanted: RowFilter) -> list[InputRecording]:
    """Returns the recordings with a part in the wanted time.

    Raises ConfigError if there is no such cluster, or no history at all, and HistoryError for a
    file that is damaged or foreign, or rests on one that is.
    """
    store = history_place(store)
    lister = Lister()
    ids = {cluster_of(each.name) for each, _ in entries(store)} - {""}
    if not ids:
        raise ConfigError(f"option path = {store.where!r}: there are no history files")
    names: dict[str, str] = {}
    if wanted.clusters is not None and not wanted.clusters <= ids:
        files = lister.seen(store, RecordingFilter()).files
        names = {each.cluster_id: each.name for each in files if each.name is not None}
    clusters = frozenset(chosen_clusters(store, wanted, ids, names))
    limits = RecordingFilter(None, None, wanted.since, wanted.until)
    seen = lister.seen(store, limits, None if clusters == ids else clusters)
    for fault in seen.faults:
        raise HistoryError(f"{shown(store, fault)}: {fault.reason}; {_ADVICE}")
    # A name stands for the digest, which nothing here needs.
    named = [(name_of(store, file), file) for file in seen.files]
    made, _ = arrange(input_of(store, name, file, name) for name, file in named)
    return [each for each in made if wanted.has(each.from_us, each.to_us)]


def history_place(store: Store) -> Store:
    """Returns the folder with the recordings: an OUT of the pipeline has them in `bronze`.

    Raises ConfigError if it is not there.
    """
    if not is_pipeline(store):
        return store
    bronze = Store(store.shown(_BRONZE))
    if not bronze.exists():
        raise ConfigError(
            f"option path = {store.where!r}: there is no folder {_BRONZE} in it, as the tables were"
            " made with --in-place; give the folder of the recorder"
        )
    return bronze


def chosen_clusters(
    store: Store, wanted: RowFilter, ids: Iterable[str], names: dict[str, str]
) -> list[str]:
    """Returns the ids of the wanted clusters; `names` are those of ids.

    Raises ConfigError for a cluster that is not there.
    """
    every = sorted(set(ids))
    if wanted.clusters is not None:
        unknown = wanted.clusters - set(every) - {names[c] for c in every if c in names}
        if unknown:
            raise ConfigError(
                f"option cluster = {sorted(unknown)[0]!r}: {store.where} has"
                f" {', '.join(every) or 'no cluster'}"
            )
    return [
        each
        for each in every
        if wanted.clusters is None or not wanted.clusters.isdisjoint((each, names.get(each)))
        if wanted.cluster_ids is None or each in wanted.cluster_ids
    ]
