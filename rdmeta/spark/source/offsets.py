"""The offset of a stream: how far it has read each recording, as JSON in the checkpoint.

    {"format": 1, "recordings": {CLUSTER: {SESSION: {"version": 7, "rows": 31, "ended": false}}}}

All changes up to `version` have been read, and `rows` rows of the recording, in their order. Rows
of one version may come in several files, such as `config_changed` and `observed_to`. So a version
alone cannot tell which rows have been read. The order of a recording's rows never changes: a
compaction keeps it, and a recorder only adds rows. A recording that is not there is at its begin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from rdmeta.errors import Error

__all__ = ["Key", "Offset", "OffsetError", "Position"]

_FORMAT = 1
_MOST = (1 << 63) - 1

Key: TypeAlias = "tuple[str, str]"
"""A cluster's id, and the session of a recording of it."""


class OffsetError(Error):
    """An offset that comes from a checkpoint is none of this source, or is damaged."""


class Position(NamedTuple):
    """How far a recording has been read. `ended` says that it had no more rows behind that."""

    version: int = 0
    rows: int = 0
    ended: bool = False


@dataclass(frozen=True)
class Offset:
    """The positions in all recordings.

    Spark keeps the end of each batch, but not the begin of the first one. It asks for that again
    when it plans the batch once more, and `latest` is elsewhere by then. So the end of the first
    batch has its begin, in `begin`, and an offset that begins a stream is marked by `is_initial`.
    """

    positions: Mapping[Key, Position] = field(default_factory=dict)
    is_initial: bool = False
    begin: Mapping[Key, Position] | None = None

    def position(self, key: Key) -> Position:
        """Returns the position in a recording; its begin if nothing of it has been read."""
        return self.positions.get(key, Position())

    def as_json(self) -> dict[str, Any]:
        """Returns the offset as Spark keeps it."""
        told: dict[str, Any] = {"format": _FORMAT, "recordings": _told(self.positions)}
        if self.is_initial:
            told["initial"] = True
        if self.begin is not None:
            told["begin"] = _told(self.begin)
        return told

    @classmethod
    def parse(cls, told: object) -> Offset:
        """Returns the offset that a checkpoint has.

            Offset.parse({"format": 1, "recordings": {}})

        Raises OffsetError, which says what is wrong with it.
        """
        entries = _entries(told, "it")
        if entries.get("format") != _FORMAT:
            raise _error(
                f"its format is {_shown(entries.get('format'))}, and this version of rdmeta reads"
                f" format {_FORMAT}"
            )
        unknown = entries.keys() - {"format", "recordings", "initial", "begin"}
        if unknown:
            raise _error(f"it has an unknown entry {_shown(sorted(unknown)[0])}")
        is_initial = entries.get("initial", False)
        if not isinstance(is_initial, bool):
            raise _error(f"initial is {_shown(is_initial)}, not true or false")
        begin = entries.get("begin")
        return cls(
            dict(_positions(entries.get("recordings"), "recordings")),
            is_initial,
            None if begin is None else dict(_positions(begin, "begin")),
        )


def _told(positions: Mapping[Key, Position]) -> dict[str, dict[str, dict[str, Any]]]:
    told: dict[str, dict[str, dict[str, Any]]] = {}
    for (cluster_id, session), position in sorted(positions.items()):
        told.setdefault(cluster_id, {})[session] = position._asdict()
    return told


def _positions(told: object, name: str) -> Iterator[tuple[Key, Position]]:
    for cluster_id, sessions in _entries(told, name).items():
        for session, found in _entries(sessions, f"{name} of cluster {_shown(cluster_id)}").items():
            where = f"recording {_shown(session)}"
            entries = _entries(found, where)
            if entries.keys() != set(Position._fields):
                expected = ", ".join(Position._fields)
                raise _error(f"{where} has {_shown(sorted(entries))}, not {expected}")
            for count in ("version", "rows"):
                _check_count(entries[count], f"{count} of {where}")
            if not isinstance(entries["ended"], bool):
                raise _error(f"ended of {where} is {_shown(entries['ended'])}, not true or false")
            yield (cluster_id, session), Position(**entries)


def _check_count(value: object, name: str) -> None:
    # In Python a truth is a number, too.
    if type(value) is not int or not 0 <= value <= _MOST:
        raise _error(f"{name} is {_shown(value)}, not a number from 0 to {_MOST}")


def _entries(told: object, name: str) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise _error(f"{name} is {_shown(told)}, not an object")
    return told


def _error(problem: str) -> OffsetError:
    return OffsetError(
        f"the checkpoint's offset is damaged, or is one of another source: {problem}; use the"
        " stream's own checkpoint, or a new folder for one"
    )


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
