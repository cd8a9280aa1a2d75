"""Copies history files into the output folder, each checked from its first row to its last."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rdmeta._atomic import AtomicFile, commit
from rdmeta.history.opening import verify
from rdmeta.history.schema import HistoryError
from rdmeta.pipeline import lock
from rdmeta.pipeline.errors import BadFileError
from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.work import Copy, CopyTask, Result

# A task copies so many files, or fewer large ones. Its folder is synced once for all of them.
_MOST_FILES = 256
_MOST_BYTES = 64 << 20


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
    Raises LockedError if another run has taken over the output folder, and OSError.
    """
    out = Store(task.out)
    result = Result(task.cluster_id)
    with contextlib.ExitStack() as stack:
        drafts: dict[str, AtomicFile] = {}
        for each in task.copies:
            try:
                content = _checked(each.source)
            except BadFileError as error:
                bad = replace(each.source, state="quarantined", reason=error.reason)
                result.refused.append(bad)
                continue
            drafts[each.name] = stack.enter_context(out.draft(each.name))
            with drafts[each.name].naming():
                drafts[each.name].path.write_bytes(content)
        lock.require_held(out, task.token)
        if drafts:
            commit(list(drafts.values()))
    for each in task.copies:
        if each.name in drafts:
            mtime_ns = drafts[each.name].mtime_ns()
            made = replace(each.source, store=out.where, name=each.name, mtime_ns=mtime_ns)
            result.copied.append((each.source, made))
    return result


def _checked(source: Input) -> bytes:
    """Returns the content of a file; raises BadFileError."""
    try:
        content = Store(source.store).read(source.name)
    except OSError as error:
        raise BadFileError(source.path, str(error)) from error
    if content is None:
        raise BadFileError(source.path, "it is gone")
    path = Path(source.name)
    try:
        verified = verify(path, content)
    except HistoryError as error:
        raise BadFileError(source.path, str(error).removeprefix(f"{path}: ")) from error
    if verified.sha256 != source.sha256:
        raise BadFileError(source.path, "it has changed since it was looked at")
    return content
