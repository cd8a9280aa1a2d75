"""Copies of the input: each is checked while it is made, and whole or not there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rdmeta.history.opening import verify
from rdmeta.history.schema import HistoryError
from rdmeta.pipeline.errors import BadFileError
from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.planning import Copy
from rdmeta.pipeline.store import Store

__all__ = ["copied"]


def copied(out: Store, copy: Copy) -> Input:
    """Copies one file into the output folder; returns the copy as an input.

    The copy has the digest that the file had when the plan was made, and each row agrees with its
    footer. Raises BadFileError for a file that is damaged or has changed since, and OSError if the
    copy cannot be written.
    """
    source = copy.source
    content = _content(source)
    path = Path(source.name)
    try:
        verified = verify(path, content)
    except HistoryError as error:
        raise BadFileError(source.path, str(error).removeprefix(f"{path}: ")) from error
    if verified.sha256 != source.sha256:
        raise BadFileError(source.path, "it has changed since it was looked at")
    out.put(copy.name, content)
    mtime_ns = out.mtime_ns(copy.name)
    return replace(source, store=out.where, name=copy.name, mtime_ns=mtime_ns)


def _content(source: Input) -> bytes:
    try:
        content = Store(source.store).read(source.name)
    except OSError as error:
        raise BadFileError(source.path, str(error)) from error
    if content is None:
        raise BadFileError(source.path, "it is gone")
    return content
