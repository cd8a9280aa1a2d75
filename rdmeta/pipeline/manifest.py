"""`OUT/manifest.json`: the files of a finished run, and what each day was made from.

It is written last. It holds no time and no number of a run, so equal tables have an equal manifest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.layout import MANIFEST
from rdmeta.pipeline.place import Place

__all__ = ["Kept", "Manifest", "MadeDay", "read_manifest", "write_manifest"]

_VERSION = 1


@dataclass(frozen=True)
class Kept:
    """A file as the manifest has it."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class MadeDay:
    """A day's digest, and until when each origin told of it, in microseconds since 1970.

    `is_gone` says that input of it is gone, and that what was made of it stays.
    """

    digest: str
    origins: dict[str, int]
    is_gone: bool = False


@dataclass
class Manifest:
    """`days` are by cluster and day, `files` by name, `names` by cluster."""

    days: dict[str, dict[str, MadeDay]] = field(default_factory=dict)
    files: dict[str, Kept] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def text(self) -> bytes:
        """Returns the file's content."""
        values = {"manifest": _VERSION, **asdict(self)}
        return (json.dumps(values, indent=1, sort_keys=True) + "\n").encode()


def read_manifest(out: Place) -> Manifest:
    """Returns the manifest of `out`, an empty one if there is none; raises PipelineError."""
    text = out.read(MANIFEST)
    if text is None:
        return Manifest()
    try:
        found: Mapping[str, Any] = json.loads(text)
        if found["manifest"] != _VERSION:
            raise PipelineError(
                f"{out.shown(MANIFEST)}: its version is {found['manifest']}, and this version of"
                f" rdmeta reads {_VERSION}: use the rdmeta that made it"
            )
        return Manifest(
            {c: {d: MadeDay(**v) for d, v in days.items()} for c, days in found["days"].items()},
            {name: Kept(**values) for name, values in found["files"].items()},
            dict(found["names"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, PipelineError):
            raise
        reason = f"{out.shown(MANIFEST)}: it is damaged: {error}; remove it, and run again"
        raise PipelineError(reason) from error


def write_manifest(out: Place, manifest: Manifest) -> None:
    """Writes the manifest; one that says the same stays as it is. Raises OSError."""
    text = manifest.text()
    if out.read(MANIFEST) != text:
        out.put(MANIFEST, text)
