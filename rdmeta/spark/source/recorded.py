"""The recordings in a folder that a read asks for, as far as names and footers tell.

The folder is one of `rdmeta record`, or an OUT of `rdmeta pipeline`, whose copies lie in `bronze`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rdmeta.errors import ConfigError
from rdmeta.history import look as look_at_folder
from rdmeta.history.listing import listed
from rdmeta.history.opening import HistoryFile
from rdmeta.history.schema import FileName, HistoryError, microseconds
from rdmeta.pipeline.inputs import Input, Recording, arrange, look
from rdmeta.pipeline.layout import LAYOUT, cluster_folder
from rdmeta.pipeline.place import Place
from rdmeta.spark.source.files import Part
from rdmeta.spark.source.wanted import Wanted

__all__ = [
    "chosen_clusters",
    "cluster_of",
    "history_place",
    "is_pipeline",
    "parts_of_changes",
    "recordings",
]

_BRONZE = "bronze"
_ADVICE = "move it elsewhere, or read tables of `rdmeta pipeline`, which sets it aside"


def is_pipeline(place: Place) -> bool:
    """Returns whether a folder is an OUT of the pipeline; raises ConfigError if it is not there."""
    if not place.exists():
        raise ConfigError(f"option path = {place.where!r}: there is no such folder")
    return place.read(LAYOUT) is not None


def parts_of_changes(place: Place, wanted: Wanted) -> Iterator[Part]:
    """Yields the files with wanted change records; raises ConfigError and HistoryError."""
    for recording in recordings(place, wanted):
        for file in recording.files:
            if wanted.has(file.from_us, file.to_us):
                yield Part(file.place, file.name, file.bytes, file.rows)


def recordings(place: Place, wanted: Wanted) -> list[Recording]:
    """Returns the recordings with a part in the wanted time.

    Raises ConfigError if there is no such cluster, or no history at all, and HistoryError for a
    file that is damaged or foreign, or rests on one that is.
    """
    place = history_place(place)
    found = _local(place, wanted) if place.is_local else _stored(place, wanted)
    return [each for each in found if wanted.has(each.from_us, each.to_us)]


def history_place(place: Place) -> Place:
    """Returns the folder with the recordings: an OUT of the pipeline has them in `bronze`.

    Raises ConfigError if it is not there.
    """
    if not is_pipeline(place):
        return place
    bronze = Place(place.shown(_BRONZE))
    if not bronze.exists():
        raise ConfigError(
            f"option path = {place.where!r}: there is no folder {_BRONZE} in it, as the tables were"
            " made with --in-place; give the folder of the recorder"
        )
    return bronze


def chosen_clusters(
    place: Place, wanted: Wanted, ids: Iterable[str], names: dict[str, str]
) -> list[str]:
    """Returns the ids of the wanted clusters; `names` are those of ids.

    Raises ConfigError for a cluster that is not there.
    """
    every = sorted(set(ids))
    if wanted.clusters is not None:
        unknown = wanted.clusters - set(every) - {names[c] for c in every if c in names}
        if unknown:
            raise ConfigError(
                f"option cluster = {sorted(unknown)[0]!r}: {place.where} has"
                f" {', '.join(every) or 'no cluster'}"
            )
    return [
        each
        for each in every
        if wanted.clusters is None or not wanted.clusters.isdisjoint((each, names.get(each)))
        if wanted.cluster_ids is None or each in wanted.cluster_ids
    ]


# ---- a folder of this machine -------------------------------------------------------------------


def _local(place: Place, wanted: Wanted) -> list[Recording]:
    root = Path(place.path())
    ids = {cluster_of(each.path) for each in listed(root)} - {""}
    if not ids:
        raise ConfigError(f"option path = {place.where!r}: there are no history files")
    names: dict[str, str] = {}
    if wanted.clusters is not None and not wanted.clusters <= ids:
        files = look_at_folder(root).files
        names = {each.cluster_id: each.name for each in files if each.name is not None}
    clusters = chosen_clusters(place, wanted, ids, names)
    found: list[HistoryFile] = []
    for cluster_id in [None] if set(clusters) == ids else clusters:
        seen = look_at_folder(root, cluster_id=cluster_id, since=wanted.since, until=wanted.until)
        for fault in seen.quarantined:
            raise HistoryError(f"{fault.path}: {fault.reason}; {_ADVICE}")
        found += seen.files
    return _arranged(_input(place, root, file) for file in found)


def cluster_of(path: str) -> str:
    """Returns the cluster that a file's name tells, "" for another name."""
    try:
        return FileName.parse(os.path.basename(path)).cluster_id
    except HistoryError:
        return ""


def _input(place: Place, root: Path, file: HistoryFile) -> Input:
    name = str(file.path.relative_to(root))
    return Input(
        place.where,
        name,
        file.bytes,
        0,
        name,  # it stands for the digest, which nothing here needs
        cluster_id=file.cluster_id,
        origin=file.session,
        from_version=file.since,
        to_version=file.until,
        from_us=microseconds(file.observed_from),
        to_us=microseconds(file.observed_to),
        rows=file.rows,
        continues=file.continues,
        ended_by=file.ended_by,
        label=file.name,
        longest_gap_us=file.longest_gap_us,
        unknown_columns=" ".join(file.unknown_columns),
        compacted=file.compacted,
    )


# ---- an object store ----------------------------------------------------------------------------


def _stored(place: Place, wanted: Wanted) -> list[Recording]:
    below = ""
    if wanted.cluster_ids is not None and len(wanted.cluster_ids) == 1:
        below = cluster_folder(next(iter(wanted.cluster_ids)))
    found = list(look(place, {}, below))
    for each in found:
        if each.state == "quarantined":
            raise HistoryError(f"{each.path}: {each.reason}; {_ADVICE}")
    names = {each.cluster_id or "": each.label for each in found if each.label is not None}
    ids = {each.cluster_id or "" for each in found}
    if not ids:
        raise ConfigError(f"option path = {place.where!r}: there are no history files")
    clusters = chosen_clusters(place, wanted, ids, names)
    return _arranged(each for each in found if each.cluster_id in clusters)


def _arranged(inputs: Iterable[Input]) -> list[Recording]:
    """Returns the recordings of whole files; raises HistoryError for one that rests on nothing."""
    made, states = arrange(inputs)
    for each in states:
        if each.state == "set aside":
            raise HistoryError(f"{each.path}: {each.reason}; {_ADVICE}")
    return made
