"""One run at a time works on a folder; a lock of a process that is gone stops none."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from rdmeta.pipeline import LockedError
from rdmeta.pipeline.lock import Lock, is_held, is_marked
from rdmeta.pipeline.store import Store


def changed(out: Store, **values: Any) -> None:
    """Writes the lock that a process holds, with other values."""
    with Lock(out):
        held = json.loads(out.read("lock") or b"")
    out.put("lock", json.dumps({**held, **values}).encode())


def test_a_second_run_is_refused_while_the_first_one_works(tmp_path: Path) -> None:
    out = Store(tmp_path)
    with Lock(out) as held:
        assert is_held(out, held.token)
        with (
            pytest.raises(LockedError, match=f"process {os.getpid()} on .* works on it"),
            Lock(out),
        ):
            pass
        assert is_held(out, held.token)
    assert not is_marked(out)


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    out = Store(tmp_path)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    changed(out, pid=ended.pid)
    with Lock(out) as held:
        assert held.was_marked


def test_another_process_with_the_same_number_does_not_hold_the_lock(tmp_path: Path) -> None:
    out = Store(tmp_path)
    changed(out, began="1")
    with Lock(out) as held:
        assert held.was_marked
    changed(out, boot="another boot of the host")
    with Lock(out) as held:
        assert held.was_marked


def test_a_lock_of_another_host_is_refused_with_advice(tmp_path: Path) -> None:
    out = Store(tmp_path)
    changed(out, host="elsewhere", pid=1)
    advice = f"process 1 on elsewhere works on it; .* remove {tmp_path}/lock"
    with pytest.raises(LockedError, match=advice), Lock(out):
        pass


def test_a_run_that_fails_leaves_a_mark_for_the_next_one(tmp_path: Path) -> None:
    out = Store(tmp_path)

    def failing() -> None:
        with Lock(out):
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert is_marked(out)
    with Lock(out) as held:
        assert held.was_marked
    assert not is_marked(out)


def test_a_damaged_lock_is_taken_over(tmp_path: Path) -> None:
    tmp_path.joinpath("lock").write_bytes(b"\xff{")
    with Lock(Store(tmp_path)) as held:
        assert held.was_marked


def _try(where: str, barrier: Barrier, counts: Any) -> None:
    barrier.wait()
    try:
        with Lock(Store(where)):
            with counts.get_lock():
                counts[0] += 1
            barrier.wait()
    except LockedError:
        barrier.wait()


@pytest.mark.slow
def test_one_of_several_processes_takes_a_dead_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        changed(Store(tmp_path), began="1")
        barrier, counts = context.Barrier(4), context.Array("i", 1)
        arguments = (str(tmp_path), barrier, counts)
        processes = [context.Process(target=_try, args=arguments) for _ in range(4)]
        for each in processes:
            each.start()
        for each in processes:
            each.join()
        assert counts[0] == 1
