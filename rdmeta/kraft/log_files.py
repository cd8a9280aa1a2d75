"""The files of the metadata log beside each other: segments, snapshots, and what a node notes.

A node of KRaft keeps them in `__cluster_metadata-0` below its `metadata.log.dir`:

    00000000000000000000.log                      a segment, named by its first offset
    00000000000000000120-0000000004.checkpoint    a snapshot: the offset behind it, and its epoch
    quorum-state                                  the last epoch that the node knows, and its vote
    leader-epoch-checkpoint                       the first offset of each epoch
    partition.metadata                            the topic's id

and `meta.properties` beside that directory. Nothing here reads a record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from rdmeta.errors import ArgumentError, Error

_T = TypeVar("_T")
LOG_NAME = "__cluster_metadata-0"
_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
_SEGMENT = re.compile(r"(\d{20})\.log")
# Kafka renames `.part` to this when the snapshot is whole, and appends `.deleted` to an old one.
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_OTHER_LOG = re.compile(r"(?!__cluster_metadata-0$)(.+)-(\d+)")


class KraftError(Error):
    """A metadata log cannot be read: no such log, bytes that are none, or offsets that are missing.

    `file`, `byte` and `offset` say where, as far as that is known.
    """

    def __init__(
        self,
        message: str,
        file: Path | None = None,
        byte: int | None = None,
        offset: int | None = None,
    ) -> None:
        place = [] if file is None else [str(file)]
        place += [] if byte is None else [f"byte {byte}"]
        place += [] if offset is None else [f"offset {offset}"]
        super().__init__(f"{', '.join(place)}: {message}" if place else message)
        self.file = file
        self.byte = byte
        self.offset = offset


class LogChangedError(KraftError):
    """The files changed while they were read: one went, or the log became shorter.

    A node removes old segments, and cuts off what never committed. Look at the log anew.
    """


class DamagedBatchError(KraftError):
    """The bytes of a batch are not those that were written. Another copy may have them."""


class SegmentFile(NamedTuple):
    """A segment, which begins with the offset `base` or, if it lacks records there, behind it."""

    base: int
    path: Path


class SnapshotFile(NamedTuple):
    """A snapshot of the state before the offset `end`, whose last record has this epoch."""

    end: int
    epoch: int
    path: Path


class QuorumState(NamedTuple):
    """What a node noted of its quorum. `voters` is None where only the log has them (KIP-853)."""

    epoch: int
    leader: int | None
    voted: int | None
    voters: tuple[int, ...] | None


class NodeFiles(NamedTuple):
    """The files of one node's metadata log, in the order of offsets.

    `node`, `directory_id` and `cluster_id` are from `meta.properties`, None without it. `epochs`
    has each epoch of `leader-epoch-checkpoint` with its first offset. `faults` names what cannot be
    read, and is left out.
    """

    directory: Path
    segments: tuple[SegmentFile, ...]
    snapshots: tuple[SnapshotFile, ...]
    quorum: QuorumState | None = None
    epochs: tuple[tuple[int, int], ...] | None = None
    node: int | None = None
    directory_id: str | None = None
    cluster_id: str | None = None
    faults: tuple[str, ...] = ()


def find_nodes(paths: str | Path | Iterable[str | Path]) -> list[NodeFiles]:
    """Returns the logs at a path, or at several, one for each node, in their order.

    A path is a log directory, its parent, a directory of several nodes' parents, or a file of a
    log. Files of one directory are one node's. Raises KraftError for a path with no metadata log,
    and for logs of two clusters; FileNotFoundError for no such path, ArgumentError for none.
    """
    found: dict[Path, list[Path] | None] = {}
    listed = [paths] if isinstance(paths, (str, Path)) else paths
    for path in map(Path, listed):
        if path.is_dir():
            for directory in _log_directories(path):
                found[directory] = None
        elif not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file or directory")
        elif _is_part(path):
            files = found.setdefault(path.parent, [])
            if files is not None:
                files.append(path)
        else:
            raise KraftError("no segment (*.log) and no snapshot (*.checkpoint) of a log", path)
    if not found:
        raise ArgumentError("no path of a metadata log is given")
    nodes = [_node(directory, files) for directory, files in found.items()]
    _check_clusters(nodes)
    return nodes


def files_in(directory: Path) -> NodeFiles:
    """Returns the files of a log directory; raises KraftError for another log's, or for none."""
    if not _has_parts(directory):
        raise KraftError("no segment (*.log) and no snapshot (*.checkpoint) is here", directory)
    _check_topic(directory)
    return _node(directory, None)


def _is_part(path: Path) -> bool:
    return is_part(path.name)


def is_part(name: str) -> bool:
    """Returns whether a file of that name is a segment or a snapshot."""
    return bool(_SEGMENT.fullmatch(name) or _SNAPSHOT.fullmatch(name))


def _log_directories(path: Path) -> list[Path]:
    """Returns the log directories at, in, or one below a directory."""
    if _has_parts(path):
        _check_topic(path)
        return [path]
    for pattern in (LOG_NAME, f"*/{LOG_NAME}"):
        if found := sorted(each for each in path.glob(pattern) if each.is_dir()):
            return found
    inner = sorted(each for each in path.iterdir() if each.is_dir() and _has_parts(each))
    for each in inner:
        _check_topic(each)
    if not inner:
        raise KraftError(
            f"no metadata log is here; give the directory {LOG_NAME}, or the one that has it"
            " (metadata.log.dir, or the first of log.dirs)",
            path,
        )
    return inner


def _has_parts(path: Path) -> bool:
    return any(map(_is_part, path.iterdir()))


def _check_topic(path: Path) -> None:
    """Raises KraftError if a directory says that it is another topic's."""
    other = _OTHER_LOG.fullmatch(path.name)
    try:
        text = (path / "partition.metadata").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    found = re.search(r"topic_id: *(\S+)", text)
    if found and found[1] != _TOPIC_ID:
        named = f"the log of topic {other[1]!r}, partition {other[2]}" if other else "another log"
        raise KraftError(f"{named} (its id is {found[1]}), not the metadata log", path)


def _check_clusters(nodes: Sequence[NodeFiles]) -> None:
    known = {node.cluster_id: node.directory for node in nodes if node.cluster_id}
    if len(known) > 1:
        named = ", ".join(f"{cluster} ({directory})" for cluster, directory in known.items())
        raise KraftError(f"the logs are of {len(known)} clusters: {named}; read one at a time")


def _node(directory: Path, files: Sequence[Path] | None) -> NodeFiles:
    listed = sorted(directory.iterdir() if files is None else files)
    segments = [
        SegmentFile(int(match[1]), path)
        for path in listed
        if (match := _SEGMENT.fullmatch(path.name))
    ]
    found = [
        SnapshotFile(int(match[1]), int(match[2]), path)
        for path in listed
        if (match := _SNAPSHOT.fullmatch(path.name))
    ]
    # A dynamic quorum begins with a snapshot that ends at 0. A log, or a snapshot, has all of it.
    snapshots = [each for each in found if each.end]
    if not snapshots and not any(size_of(each.path) for each in segments):
        snapshots = found
    faults: list[str] = []
    quorum = _noted(directory / "quorum-state", _quorum, faults)
    epochs = _noted(directory / "leader-epoch-checkpoint", _epochs, faults)
    # Beside the log directory, or in a copy of it.
    places = (each / "meta.properties" for each in (directory.parent, directory))
    listed_in = (_noted(path, _properties, faults) for path in places)
    properties: dict[str, str] = next(filter(None, listed_in), {})
    node = properties.get("node.id", "")
    return NodeFiles(
        directory,
        tuple(segments),
        tuple(snapshots),
        quorum,
        epochs,
        int(node) if node.isdecimal() else None,
        properties.get("directory.id"),
        properties.get("cluster.id"),
        tuple(faults),
    )


def size_of(path: Path) -> int:
    """Returns the bytes of a file; 0 if it went."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _noted(path: Path, parse: Callable[[str], _T], faults: list[str]) -> _T | None:
    """Returns what a small file says, None without it; a fault is named, and counts as that."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        faults.append(f"{path} cannot be read: {type(error).__name__}: {error}")
        return None


def _quorum(text: str) -> QuorumState:
    """Reads `quorum-state`, of version 0 or 1."""
    state = json.loads(text)
    if state["data_version"] not in (0, 1):
        raise ValueError(f"data_version {state['data_version']} is not known")
    voters = tuple(int(each["voterId"]) for each in state.get("currentVoters") or ())
    ids = (int(str(state[name])) for name in ("leaderId", "votedId"))
    leader, voted = (each if each >= 0 else None for each in ids)
    return QuorumState(int(state["leaderEpoch"]), leader, voted, voters or None)


def _epochs(text: str) -> tuple[tuple[int, int], ...]:
    """Reads the lines of `leader-epoch-checkpoint`."""
    version, count, *lines = text.split("\n")
    found = [(int(epoch), int(offset)) for epoch, offset in map(str.split, lines[:-1])]
    if (int(version), int(count)) != (0, len(found)):
        raise ValueError(f"version {version}, {count} epochs, and {len(found)} lines")
    return tuple(found)


def _properties(text: str) -> dict[str, str]:
    lines = (line.partition("=") for line in text.splitlines() if line[:1] != "#")
    return {key.strip(): value.strip() for key, _, value in lines}
