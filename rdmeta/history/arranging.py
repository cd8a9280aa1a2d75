"""Arranges history files into recordings: which ones count, and which ones rest on nothing.

A recording's files form a chain: the first one begins at version 0, and each later one where the
one before it ends. Some files do not count, because another file has their rows:

* A compaction's file has those of all files of its recording up to its last version.
* A file with two equal versions only extends the time. The next file, which begins at that version,
  has its rows.
* A recorder that could not sync a folder writes the same rows once more, in a longer file.
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rdmeta.history.opening import HistoryFile

__all__ = ["Arranged", "Quarantined", "arrange", "order"]


class Quarantined(NamedTuple):
    """A path that is set aside, with the reason; its recording, if its name tells it."""

    path: Path
    session: str | None
    cluster_id: str | None
    reason: str


class Arranged(NamedTuple):
    """Files that count, in the order of `order`; and others, which do not.

    `duplicates` are files that are there twice. `covered` are those whose rows another file has.
    """

    files: list[HistoryFile]
    quarantined: list[Quarantined]
    duplicates: list[HistoryFile]
    covered: list[HistoryFile]


def order(file: HistoryFile) -> tuple[str, str, int, int]:
    """Orders files by cluster, recording and version."""
    return file.cluster_id, file.session, file.since, file.until


def arrange(files: Iterable[HistoryFile], bad: Iterable[Quarantined] = ()) -> Arranged:
    """Returns what counts of `files`; `bad` are files that could not be opened."""
    lost: dict[tuple[str | None, str | None], list[Quarantined]] = {}
    for each in bad:
        lost.setdefault((each.cluster_id, each.session), []).append(each)
    told = Arranged([], [], [], [])
    for recording, group in groupby(sorted(files, key=order), key=lambda f: order(f)[:2]):
        single = _without_copies(list(group), told)
        chain = _uncovered(single, told)
        aside = told.quarantined + lost.get(recording, [])
        whole = _whole(chain, [each for each in aside if each.session == recording[1]], told)
        told.files.extend(whole)
    return told


def _without_copies(group: list[HistoryFile], told: Arranged) -> list[HistoryFile]:
    """Returns one file of each name, unless two of them contradict each other."""
    single = []
    for _, copies in groupby(group, key=order):
        best, *others = sorted(copies, key=_quality, reverse=True)
        differs = [each for each in others if not _is_later(best, each) and not _same(best, each)]
        if differs:
            for each in (best, *others):
                other = best if each is not best else differs[0]
                told.quarantined.append(_aside(each, f"contradicts {other.path}"))
            continue
        single.append(best)
        for each in others:
            (told.covered if _is_later(best, each) else told.duplicates).append(each)
    return single


def _quality(file: HistoryFile) -> tuple[bool, float, str]:
    return file.compacted is not None, file.observed_to.timestamp(), str(file.path)


def _is_later(file: HistoryFile, other: HistoryFile) -> bool:
    """Returns whether a file of the same name has the rows of another one, and more time."""
    if file.compacted is not None and other.compacted is None:
        return True
    return file.since == file.until and file.observed_to > other.observed_to


def _same(file: HistoryFile, other: HistoryFile) -> bool:
    if file.bytes != other.bytes:
        return False
    try:
        return filecmp.cmp(file.path, other.path, shallow=False)
    except OSError:
        return False


def _uncovered(group: list[HistoryFile], told: Arranged) -> list[HistoryFile]:
    """Returns the files whose rows no other file has."""
    widest = max((f for f in group if f.compacted is not None), key=lambda f: f.until, default=None)
    left, reach = [], -1
    for file in sorted(group, key=lambda f: (f.since, -f.until)):
        inside = file.until <= reach if file.since < file.until else file.until < reach
        if file is not widest and (inside or (widest and _within(file, widest))):
            told.covered.append(file)
            continue
        left.append(file)
        reach = max(reach, file.until)
    return left


def _within(file: HistoryFile, widest: HistoryFile) -> bool:
    return widest.since <= file.since and file.until <= widest.until


def _whole(
    chain: list[HistoryFile], bad: list[Quarantined], told: Arranged
) -> Iterator[HistoryFile]:
    """Yields the files from version 0 as far as they are unbroken; sets the others aside."""
    last: HistoryFile | None = None
    for place, file in enumerate(chain):
        if file.since == (last.until if last else 0):
            last = file
            yield file
            continue
        cause = _cause(last, file, bad)
        told.quarantined.append(_aside(file, cause))
        for behind in chain[place + 1 :]:
            told.quarantined.append(_aside(behind, f"rests on {file.path.name}: {cause}"))
        return


def _cause(last: HistoryFile | None, file: HistoryFile, bad: list[Quarantined]) -> str:
    """Returns why `file` does not continue `last`."""
    if bad:
        names = ", ".join(sorted({each.path.name for each in bad}))
        return f"rests on a file of its recording that is set aside: {names}"
    if last is None:
        return "the recording's first file, with the whole state, is missing; put it back"
    return (
        f"begins at version {file.since}, but the file before it in its recording ends at"
        f" {last.until}: {last.path.name}; check that no file is missing"
    )


def _aside(file: HistoryFile, reason: str) -> Quarantined:
    return Quarantined(file.path, file.session, file.cluster_id, reason)
