"""Compares what two recordings of one cluster say, and reads the tables that are made of them.

Two recorders ask at different times, and perhaps different brokers. So their pieces begin at
different times; but a state that lasted has to be in both, and begin within what neither saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]
Key = tuple[Any, ...]

_STATE = ("leader", "leader_epoch", "isr", "replicas", "offline")


class Held(NamedTuple):
    """A state of a partition. `is_seen`: its begin was seen. `sure_to`: it held until then."""

    state: tuple[Any, ...]
    began_at: int
    sure_to: int
    is_seen: bool


class Told(NamedTuple):
    """The pieces of one recording, its last moment and its longest gap, both in us."""

    pieces: Mapping[Key, list[Held]]
    seen_to: int
    longest_gap: int

    def shifted(self, by: int) -> Told:
        """Returns what a recorder would tell whose clock is ahead by so many us."""
        pieces = {
            key: [h._replace(began_at=h.began_at + by, sure_to=h.sure_to + by) for h in held]
            for key, held in self.pieces.items()
        }
        return Told(pieces, self.seen_to + by, self.longest_gap)


def rows(out: Path, table: str) -> list[Row]:
    """Returns the rows of a table of silver; times are microseconds."""
    parts = sorted((out / "silver" / "v1" / table).rglob("*.parquet"))
    whole = pa.concat_tables([pq.ParquetFile(path).read() for path in parts])
    for i, field in enumerate(whole.schema):
        if pa.types.is_timestamp(field.type):
            whole = whole.set_column(i, field.name, whole[i].cast(pa.int64()))
    found: list[Row] = whole.to_pylist()
    return found


def told(pieces: Iterable[Row], seen_to: int, longest_gap: int) -> Told:
    """Returns what the rows of one recording's partition_interval tell.

    The min ISR is left out: a recorder asks for it apart, and does not know since when it holds.
    """
    found: dict[Key, list[Held]] = {}
    for row in sorted(pieces, key=lambda row: (row["began_at"], row["ended_at"])):
        state = tuple(str(row[name]) for name in _STATE)
        held = found.setdefault((row["topic"], row["topic_id"], row["partition"]), [])
        # A row says when its state was seen first, so the one before was surely true until then,
        # less the time that was not seen, which is the longest gap at most.
        end = row["ended_at"]
        sure_to = end if row["ended_by"] in ("gap", "open", "midnight") else end - longest_gap
        if held and held[-1].state == state:
            held[-1] = held[-1]._replace(sure_to=sure_to)
        else:
            seen = row["unseen_us"] is not None
            held.append(Held(state, row["began_at"], sure_to, seen))
    return Told(found, seen_to, longest_gap)


def compare(one: Told, other: Told, lag: int = 0) -> tuple[int, list[str]]:
    """Returns how many begins agree, and a line for each state that is not where it has to be.

    `lag` is the time, in us, by which brokers learn of a change after each other. A state that was
    shorter than the other's longest gap may be missing there.
    """
    agreed, wrong = 0, list[str]()
    for mine, theirs in ((one, other), (other, one)):
        window = mine.longest_gap + theirs.longest_gap + lag
        for key, pieces in mine.pieces.items():
            for held in pieces:
                sure = min(held.sure_to, theirs.seen_to) - held.began_at
                if not held.is_seen or sure <= theirs.longest_gap + lag:
                    continue
                begins = [each for each in theirs.pieces.get(key, ()) if each.state == held.state]
                if any(abs(each.began_at - held.began_at) <= window for each in begins):
                    agreed += 1
                else:
                    there = [each.began_at for each in begins]
                    wrong.append(f"{key}: {held}: not within {window} us of {there}")
    return agreed, wrong
