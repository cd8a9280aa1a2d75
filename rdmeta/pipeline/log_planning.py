"""The part of a plan that is about metadata logs: which files to copy, and what to make of them.

Copies lie in OUT/bronze/cluster=ID/log/node=N under Kafka's own names. Each one holds the batches
of its source that count, and no more. `quorum-state` is copied behind them: only then it proves
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.layout import log_file
from rdmeta.pipeline.log_inputs import (
    NOTES,
    QUORUM_STATE,
    LogFolder,
    epochs_of,
    good_bytes,
    log_folders,
    look_at_logs,
)
from rdmeta.pipeline.log_joining import JoinedLog, first_difference, joined, whole
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.stored_path import path_in
from rdmeta.pipeline.transcribing import plan_log
from rdmeta.pipeline.work import Copy, LogTask

Known = Mapping[tuple[str, str], Input]


@dataclass
class LogStage:
    """What a plan has of logs.

    `files` are all of them with their states; `copies` are to be made. `notes` are the names in OUT
    of what lies beside the copies. `logs` are those of the clusters, and `tasks` make recordings of
    them. `superseded` are recordings by name of which others have all offsets.
    """

    files: list[Input] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    logs: dict[str, JoinedLog] = field(default_factory=dict)
    tasks: list[LogTask] = field(default_factory=list)
    superseded: dict[str, Input] = field(default_factory=dict)


def stage_of(
    out: Store,
    inputs: Iterable[str],
    known: Known,
    last_run: Known,
    held: Sequence[Input],
    *,
    in_place: bool,
    is_again: bool,
) -> LogStage:
    """Returns what is to be done about the logs of the inputs, and those that OUT has.

    `held` are the recordings of logs in OUT, and `last_run` the files as the last run left them. In
    a plan that is made `again` during a run, a file of an input counts as `known` has it: a live
    node goes on writing. Raises OSError.
    """
    stage = LogStage()
    ours, bad = log_folders(out, is_out=True)
    others: list[LogFolder] = []
    for where in inputs:
        found, refused = log_folders(Store(where))
        others += found
        bad += refused
    look_at_logs([*ours, *others], known, last_run, {out.where} if is_again else None)
    stage.files += bad
    clusters = sorted({each.files.cluster_id or "" for each in (*ours, *others)})
    for cluster_id in clusters:
        mine = [each for each in ours if each.files.cluster_id == cluster_id]
        new = [each for each in others if each.files.cluster_id == cluster_id]
        recordings = [each for each in held if each.cluster_id == cluster_id]
        if not in_place:
            proven = _proven_of(cluster_id, mine, out.where, recordings)
            _choose_copies(stage, mine, new, proven, last_run)
        _plan(stage, out, cluster_id, [each for each in (*mine, *new) if each.rows], recordings)
    return stage


def _plan(
    stage: LogStage,
    out: Store,
    cluster_id: str,
    folders: Sequence[LogFolder],
    recordings: Sequence[Input],
) -> None:
    """Adds the tasks of a cluster, and the files that count with their states."""
    if not folders:
        return
    log = joined(cluster_id, folders, out.where, recordings)
    aside = {(each.store, each.name): each for each in log.aside}
    copied = {(each.source.store, each.source.name) for each in stage.copies}
    for row in (row for folder in folders for row in folder.rows):
        key = row.store, row.name
        stage.files += [] if key in copied else [aside.get(key, row)]
    unsure = {(each.store.where, name) for each in folders for name in each.unsure}
    made = plan_log(out.where, log, recordings, unsure)
    stage.logs[cluster_id] = log
    stage.tasks += made.tasks
    stage.superseded |= made.superseded


# ---- copies -------------------------------------------------------------------------------------


def _proven_of(
    cluster_id: str, mine: Sequence[LogFolder], out: str, recordings: Sequence[Input]
) -> int:
    """Returns up to which offset the copies in OUT are proven."""
    there = [each for each in mine if each.rows]
    return joined(cluster_id, there, out, recordings).proof.end if there else 0


def _choose_copies(
    stage: LogStage,
    mine: Sequence[LogFolder],
    new: Sequence[LogFolder],
    proven: int,
    last_run: Known,
) -> None:
    """Adds the copies to make; leaves the rows in the folders that count until then."""
    held = {row.name: row for folder in mine for row in folder.rows}
    same = {row.sha256: row.name for row in held.values() if row.state == "good"}
    newest = {(each.store.where, _newest_of(each)) for each in new}
    every = [(folder, row) for folder in new for row in folder.rows]
    farthest: dict[int, tuple[LogFolder, int]] = {}
    for folder in new:
        node, end = folder.files.node or 0, _end_of(folder.rows)
        if node not in farthest or end > farthest[node][1]:
            farthest[node] = folder, end
    chosen: dict[str, tuple[LogFolder, Input]] = {}
    for folder in new:
        folder.rows = []
    for folder, row in sorted(every, key=lambda e: (Path(e[1].name).name, -good_bytes(e[1]))):
        name = log_file(row.cluster_id or "", row.node or 0, Path(row.name).name)
        if not _counts(row):
            folder.rows.append(row)
            continue
        found = _why_no_copy(row, held.get(name), proven)
        is_sealed = row.kind == "snapshot" or (row.store, row.name) not in newest
        if found is None and is_sealed and row.sha256 in same:
            found = "duplicate", f"the same as {same[row.sha256]}"
        if found is None and is_sealed and row.kind == "segment":
            found = _why_duplicate(row, held.values(), last_run)
        if found is not None:
            state = row.state if row.state == "quarantined" else found[0]
            reason = row.reason if row.state == "quarantined" else found[1]
            stage.files.append(replace(row, state=state, reason=reason))
            continue
        folder.rows.append(row)
        held[name] = row
        same[row.sha256] = name
        chosen[name] = folder, row
    copies = [Copy(row, name) for name, (_, row) in sorted(chosen.items())]
    copies += _copies_of_notes(mine, farthest, [folder for folder, _ in chosen.values()])
    stage.copies += copies
    names = {f"{folder.name}/{n}" for folder in mine for n in NOTES if (folder.path / n).is_file()}
    names |= {copy.name for copy in copies if copy.source.kind == "note"}
    stage.notes += sorted(names)
    # What is copied takes the place of what is there.
    for folder in mine:
        folder.rows = [row for row in folder.rows if row.name not in chosen]


def _counts(row: Input) -> bool:
    if row.kind == "snapshot":
        return row.state == "good"
    return row.state in ("good", "quarantined") and (row.from_offset or 0) < (row.to_offset or 0)


def _why_no_copy(row: Input, held: Input | None, proven: int) -> tuple[str, str] | None:
    """Returns the state of a file that is not copied, and why; None for one that is.

    A node cuts off what never committed. So where two differ behind what is proven, the one with
    the later epoch counts.
    """
    if held is None:
        return None
    if held.sha256 == row.sha256:
        return "copied", held.name
    if row.kind == "snapshot":
        return "set aside", f"it differs from {held.path}"
    shorter, longer = sorted((held, row), key=good_bytes)
    if _begins_with(longer, shorter):
        return None if longer is row else ("copied", f"{held.name} is a later one")
    offset = first_difference(whole(held), whole(row))
    if offset is not None and offset >= proven:
        is_later = _last_of(row) > _last_of(held)
        return None if is_later else ("duplicate", f"{held.name} is of a later epoch")
    return "set aside", f"contradicts {held.path}: the batch at offset {offset} differs"


def _newest_of(folder: LogFolder) -> str | None:
    """Returns the name of the newest segment of a directory that has records."""
    rows = (row for row in folder.rows if row.kind == "segment")
    return max(
        (row.name for row in rows if (row.from_offset or 0) < (row.to_offset or 0)), default=None
    )


def _why_duplicate(row: Input, held: Iterable[Input], last_run: Known) -> tuple[str, str] | None:
    """Returns why a segment adds nothing: others have all of its batches; None if it does.

    Nor does it prove anything, as a later one of its node is there. What was compared before, and
    has not changed, is not compared again.
    """
    first, end = row.from_offset or 0, row.to_offset or 0
    if row.state != "good":
        return None
    is_known = _state_in(row, last_run) == "duplicate"
    at, others = first, list[str]()
    for each in sorted(held, key=lambda e: (e.from_offset or 0, -(e.to_offset or 0))):
        begins, ends = each.from_offset or 0, each.to_offset or 0
        if each.kind != "segment" or not begins <= at < ends:
            continue
        is_compared = is_known and _state_in(each, last_run) is not None
        if not is_compared and first_difference(whole(each), whole(row)) is not None:
            return None
        at, others = ends, [*others, each.name]
        if at >= end:
            return "duplicate", f"its batches are in {', '.join(others)}"
    return None


def _state_in(row: Input, last_run: Known) -> str | None:
    """Returns the state in which the last run left a file, None if it is another one now."""
    was = last_run.get((row.store, row.name))
    return was.state if was is not None and was.sha256 == row.sha256 else None


def _last_of(row: Input) -> tuple[int, int]:
    """Returns the last epoch and the end of a segment."""
    epochs = epochs_of(row)
    return (epochs[-1].epoch if epochs else -1), row.to_offset or 0


def _begins_with(longer: Input, shorter: Input) -> bool:
    return Store(longer.store).sha256(longer.name, good_bytes(shorter)) == shorter.sha256


def _copies_of_notes(
    mine: Sequence[LogFolder],
    new: Mapping[int, tuple[LogFolder, int]],
    changed: Sequence[LogFolder],
) -> Iterator[Copy]:
    """Yields the copies of what lies beside the files of nodes.

    `new` has for each node the directory that reaches farthest, and its end: the notes of another
    one may be older than files that OUT has, and then prove nothing of them.
    """
    ours = {folder.files.node: folder for folder in mine}
    for node, (folder, end) in sorted(new.items()):
        there = ours.get(node)
        if there is not None and end < _end_of(there.rows):
            continue
        for note in NOTES:
            source = _note(folder, note)
            if source is not None and (
                there is None
                or folder in changed
                or not (there.path / note).is_file()
                or (note == QUORUM_STATE and there.files.quorum is None)
            ):
                yield Copy(source, log_file(folder.files.cluster_id or "", node, note))


def _end_of(rows: Iterable[Input]) -> int:
    return max((row.to_offset or 0 for row in rows if row.kind == "segment"), default=0)


def _note(folder: LogFolder, note: str) -> Input | None:
    places = [f"{folder.name}/{note}".lstrip("/")]
    if note == NOTES[0]:  # Kafka has it in the folder above
        places.insert(0, f"{folder.name}/../{note}" if folder.name else f"../{note}")
    for name in places:
        path = path_in(folder.store, name)
        if path.is_file():
            about = path.stat()
            bare = Input(folder.store.where, name, about.st_size, about.st_mtime_ns, "")
            files = folder.files
            return replace(bare, kind="note", cluster_id=files.cluster_id, node=files.node)
    return None
