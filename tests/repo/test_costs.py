"""The guard of costs fails a test that computes or sleeps for too long, and no other."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from costs import ASLEEP_S, CPU_S, LOOK_S, Imports, Sleeps, check


def test_a_test_that_computes_or_sleeps_for_too_long_fails() -> None:
    check(CPU_S, ASLEEP_S)
    with pytest.raises(pytest.fail.Exception, match="CPU time, and this one used 1.10 s"):
        check(CPU_S + 0.1, 0)
    with pytest.raises(pytest.fail.Exception, match="sleep, and this one used 0.60 s"):
        check(0, ASLEEP_S + 0.1)


def test_sleeps_and_waits_that_time_out_count_and_looks_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sleeps, event = Sleeps(), threading.Event()
    sleeps.watch(monkeypatch)
    time.sleep(LOOK_S)
    assert sleeps.seconds == 0
    time.sleep(0.06)
    event.wait(0.07)
    assert round(sleeps.seconds, 2) == 0.13
    event.set()
    event.wait(9)
    other = threading.Thread(target=time.sleep, args=(0.06,))
    other.start()
    other.join()
    assert round(sleeps.seconds, 2) == 0.13


def test_the_time_of_imports_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    busy = "import time\nend = time.thread_time() + 0.06\nwhile time.thread_time() < end: pass\n"
    (tmp_path / "inner_of_costs.py").write_text(busy)
    (tmp_path / "outer_of_costs.py").write_text(f"import inner_of_costs\n{busy}")
    monkeypatch.syspath_prepend(tmp_path)
    imports, begun = Imports(), time.thread_time()
    imports.watch(monkeypatch)
    __import__("outer_of_costs")
    assert 0.12 < imports.seconds < time.thread_time() - begun
