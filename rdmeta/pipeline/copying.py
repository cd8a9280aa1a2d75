"""Copies files into the output folder: history, each checked from its first row to its last, and
the files of metadata logs, as far as they count."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from rdmeta._atomic import AtomicFile, commit
from rdmeta.history.opening import verify
from rdmeta.history.schema import HistoryError
from rdmeta.pipeline import lock
from rdmeta.pipeline.errors import BadFileError, CommitLostError
from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.log_inputs import cut_at, good_bytes, is_raw
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.work import Copy, CopyTask, Result

# A task copies so many files, or fewer large ones. Its folder is synced once for all of them.
_MOST_FILES = 256
_MOST_BYTES = 64 << 20
_PIECE = 8 << 20
_CHANGED = "it has changed since it was looked at"


def copy_tasks(out: str, copies: Sequence[Copy], token: str) -> Iterator[CopyTask]:
    """Yields the tasks that make the copies; one has files of one cluster."""
    pack: list[Copy] = []
    size = 0
    for each in copies:
        is_other = pack and pack[0].source.cluster_id != each.source.cluster_id
        if is_other or len(pack) == _MOST_FILES or size + each.source.bytes > _MOST_BYTES:
            if pack:
                yield CopyTask(out, tuple(pack), token)
            pack, size = [], 0
        pack.append(each)
        size += each.source.bytes
    if pack:
        yield CopyTask(out, tuple(pack), token)


def copy_files(task: CopyTask) -> Result:
    """Copies files, which take their names together.

    A copy has the digest that the file had when the plan was made, and each row agrees with its
    footer. A file that is damaged, or has changed since, is among the `refused` of the result.
    Raises LockedError if another run has taken over the output folder, CommitLostError if one
    without a lock has copied more, and OSError.
    """
    out = Store(task.out)
    result = Result(task.cluster_id)
    with contextlib.ExitStack() as stack:
        drafts: dict[str, AtomicFile] = {}
        for each in task.copies:
            draft = stack.enter_context(out.draft(each.name))
            try:
                with draft.naming():
                    _copy(each.source, draft.path)
            except BadFileError as error:
                result.refused.append(_refused(each.source, error.reason))
                continue
            drafts[each.name] = draft
        lock.require_held(out, task.token)
        if not task.token:
            _refuse_to_shorten(out, task.copies)
        if drafts:
            commit(list(drafts.values()))
    for each in task.copies:
        if each.name in drafts:
            mtime_ns = drafts[each.name].mtime_ns()
            made = replace(each.source, store=out.where, name=each.name, mtime_ns=mtime_ns)
            if is_raw(made):  # what is bad at its end was left out
                made = replace(made, bytes=good_bytes(made), state="good", reason=None)
            result.copied.append((each.source, made))
    return result


def _refuse_to_shorten(out: Store, copies: Sequence[Copy]) -> None:
    """Raises CommitLostError if a run beside this one, without a lock, copied more of a segment.

    A segment that its node has cut off, and gone on with, is not the begin of the longer copy.
    """
    for each in copies:
        if not is_raw(each.source):
            continue
        there, size = out.about(each.name), good_bytes(each.source)
        if there is None or there.size <= size:
            continue
        if out.sha256(each.name, size) == each.source.sha256:
            raise CommitLostError(f"{out.shown(each.name)}: another run has copied more of it")


def _refused(source: Input, reason: str) -> Input:
    if is_raw(source):
        return cut_at(source, None, reason)
    return replace(source, state="quarantined", reason=reason)


def _copy(source: Input, path: Path) -> None:
    """Writes a file's content to a path. Raises BadFileError, and OSError of the path."""
    if not is_raw(source):
        path.write_bytes(_checked(source) if source.kind == "history" else _read(source))
        return
    # A log has what its node keeps to itself, such as keys of SCRAM.
    with contextlib.suppress(OSError):
        path.touch()
        store = Store(source.store)
        mode = os.stat(store.path(source.name)).st_mode if store.is_local else 0o600
        path.chmod(0o666 & mode)
    digest, left = sha256(), good_bytes(source)
    with path.open("wb") as draft, _opened(source) as stream:
        while left and (piece := stream.read(min(left, _PIECE))):
            digest.update(piece)
            draft.write(piece)
            left -= len(piece)
    if digest.hexdigest() != source.sha256:
        raise BadFileError(source.path, _CHANGED)


def _opened(source: Input) -> Any:
    try:
        return Store(source.store).opened(source.name)
    except OSError as error:
        raise BadFileError(source.path, str(error)) from error


def _read(source: Input) -> bytes:
    """Returns the content of a file; raises BadFileError."""
    try:
        content = Store(source.store).read(source.name)
    except OSError as error:
        raise BadFileError(source.path, str(error)) from error
    if content is None:
        raise BadFileError(source.path, "it is gone")
    return content


def _checked(source: Input) -> bytes:
    """Returns the content of a file; raises BadFileError."""
    content = _read(source)
    path = Path(source.name)
    try:
        verified = verify(path, content)
    except HistoryError as error:
        raise BadFileError(source.path, str(error).removeprefix(f"{path}: ")) from error
    if verified.sha256 != source.sha256:
        raise BadFileError(source.path, _CHANGED)
    return content
