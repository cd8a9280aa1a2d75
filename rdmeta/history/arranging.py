"""Arranges history files into recordings: which ones count, and which ones rest on nothing.

A recording's files form a chain: the first one begins at version 0, and each later one where the
one before it ends. Some files do not count, because another file has their rows:

* A compaction's file has those of all files of its recording up to its last version.
* A file with two equal versions only extends the time. The next file, which begins at that version,
  has its rows.
* A recorder that could not sync a folder writes the same rows once more, in a longer file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from rdmeta.history.schema import LONGEST


class Bad(Protocol):
    """A file that does not count, with the recording that its name tells."""

    @property
    def path(self) -> Path | str: ...

    @property
    def cluster_id(self) -> str | None: ...

    @property
    def session(self) -> str | None: ...


class Member(Bad, Protocol):
    """A file of a recording."""

    @property
    def since(self) -> int: ...

    @property
    def until(self) -> int: ...

    @property
    def observed_from(self) -> datetime: ...

    @property
    def observed_to(self) -> datetime: ...

    @property
    def compacted(self) -> int | None: ...


File = TypeVar("File", bound=Member)


@dataclass
class Arranged(Generic[File]):
    """`files` count, in the order of `order`; the others do not.

    `aside` are files with the reason why they are set aside. `duplicates` are files that are there
    twice, and `covered` are those whose rows another file has; both come with that other file.
    """

    files: list[File] = field(default_factory=list)
    aside: list[tuple[File, str]] = field(default_factory=list)
    duplicates: list[tuple[File, File]] = field(default_factory=list)
    covered: list[tuple[File, File]] = field(default_factory=list)


def order(file: Member) -> tuple[str, str, int, int]:
    """Orders files by cluster, recording and version."""
    return file.cluster_id or "", file.session or "", file.since, file.until


def arrange(
    files: Iterable[File], is_same: Callable[[File, File], bool], bad: Iterable[Bad] = ()
) -> Arranged[File]:
    """Returns what counts of `files`; `bad` are files that could not be opened.

    `is_same` compares the contents of two files of one name.
    """
    lost: dict[tuple[str | None, str | None], list[Bad]] = {}
    for each in bad:
        lost.setdefault((each.cluster_id, each.session), []).append(each)
    arranged: Arranged[File] = Arranged()
    for recording, group in groupby(sorted(files, key=order), key=lambda f: order(f)[:2]):
        known = len(arranged.aside)
        single = _without_copies(list(group), is_same, arranged)
        chain = _uncovered(single, arranged)
        aside: list[Bad] = [file for file, _ in arranged.aside[known:]]
        arranged.files.extend(_whole(chain, aside + lost.get(recording, []), arranged))
    return arranged


def _without_copies(
    group: list[File], is_same: Callable[[File, File], bool], arranged: Arranged[File]
) -> list[File]:
    """Returns one file of each name, unless two of them contradict each other."""
    single = []
    for _, copies in groupby(group, key=order):
        by_path = sorted(copies, key=lambda f: str(f.path))
        best, *others = sorted(by_path, key=_quality, reverse=True)
        differs = [each for each in others if not _is_later(best, each) and not is_same(best, each)]
        if differs:
            for each in (best, *others):
                other = best if each is not best else differs[0]
                arranged.aside.append((each, f"contradicts {other.path}"))
            continue
        single.append(best)
        for each in others:
            (arranged.covered if _is_later(best, each) else arranged.duplicates).append(
                (each, best)
            )
    return single


def _quality(file: Member) -> tuple[bool, datetime]:
    return file.compacted is not None, file.observed_to


def _is_later(file: Member, other: Member) -> bool:
    """Returns whether a file of the same name has the rows of another one, and more time."""
    if file.compacted is not None and other.compacted is None:
        return True
    return bool(file.since == file.until and file.observed_to > other.observed_to)


def _uncovered(group: list[File], arranged: Arranged[File]) -> list[File]:
    """Returns the files whose rows no other file has."""
    widest = max((f for f in group if f.compacted is not None), key=lambda f: f.until, default=None)
    left: list[File] = []
    longest: File | None = None
    for file in sorted(group, key=lambda f: (f.since, -f.until)):
        cover = widest if widest is not None and _within(file, widest) else longest
        if file is not widest and cover is not None and (cover is widest or _inside(file, cover)):
            arranged.covered.append((file, cover))
            continue
        left.append(file)
        if longest is None or file.until > longest.until:
            longest = file
    return left


def _inside(file: Member, other: Member) -> bool:
    """Returns whether an earlier file reaches as far; a file without versions extends its time."""
    return file.until <= other.until if file.since < file.until else file.until < other.until


def _within(file: Member, widest: Member) -> bool:
    return widest.since <= file.since and file.until <= widest.until


def _whole(chain: list[File], bad: list[Bad], arranged: Arranged[File]) -> Iterator[File]:
    """Yields the files from version 0 as far as they are unbroken; sets the others aside."""
    last: File | None = None
    for place, file in enumerate(chain):
        if file.since == (last.until if last else 0) and _is_in_time(file, last):
            last = file
            yield file
            continue
        cause = _cause(last, file, bad)
        arranged.aside.append((file, cause))
        for behind in chain[place + 1 :]:
            arranged.aside.append((behind, f"rests on {_name(file)}: {cause}"))
        return


def _is_in_time(file: Member, last: Member | None) -> bool:
    if last is None:
        return True
    return file.observed_from >= last.observed_from and not _is_far(file, last)


def _is_far(file: Member, last: Member) -> bool:
    """Returns whether more time lies between two files than any recorder leaves."""
    return file.observed_from - last.observed_to > LONGEST


def _cause(last: Member | None, file: Member, bad: list[Bad]) -> str:
    """Returns why `file` does not continue `last`."""
    if bad:
        names = ", ".join(sorted({_name(each) for each in bad}))
        return f"rests on a file of its recording that is set aside: {names}"
    if last is None:
        return "the recording's first file, with the whole state, is missing; put it back"
    if _is_far(file, last):
        return f"begins more than {LONGEST.days} days after {_name(last)}, which it continues"
    if not _is_in_time(file, last):
        return f"begins before the file before it in its recording: {_name(last)}"
    return (
        f"begins at version {file.since}, but the file before it in its recording ends at"
        f" {last.until}: {_name(last)}; check that no file is missing"
    )


def _name(file: Bad) -> str:
    return str(file.path).rpartition("/")[2]
