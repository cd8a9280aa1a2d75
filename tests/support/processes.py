"""Processes of tests: environment, open files, children of a fork, executors of Spark's."""

from __future__ import annotations

import gc
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """Returns an environment in which a process imports this tree and the tests' modules."""
    folders = [_TESTS.parent, _TESTS / "support", _TESTS / "net"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}


def open_files() -> dict[str, str]:
    """Returns what each open descriptor of this process is, such as `pipe:[4711]`."""
    found = {}
    for each in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the listing itself, and what closes meanwhile
            found[each] = os.readlink(f"/proc/self/fd/{each}")
    return found


def held() -> set[object]:
    """Returns the open files and the threads of this process, but no sockets.

    A cluster of an earlier test may still open and close sockets.
    """
    files = {each for each in open_files().items() if not each[1].startswith("socket:")}
    return files | set(threading.enumerate())


def in_a_child(act: Callable[[], object], collects: bool = False) -> None:
    """Calls `act` in the child of a fork; it must end in time and without an exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the tests fork while threads run
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            act()
            if collects:
                gc.collect()
            code = 7
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def executor_of(worker: int) -> int:
    """Returns the executor that has started a Python worker of Spark; raises OSError at its end."""
    pid = worker
    while pid > 1:
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
        pid = _parent_of(pid)
    raise ProcessLookupError(f"process {worker} is below no executor")


def java_of(pid: int) -> int:
    """Returns the Java that a process has started."""
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process that has just ended
            is_java = (each / "comm").read_text() == "java\n"
            if is_java and _parent_of(int(each.name)) == pid:
                return int(each.name)
    raise ProcessLookupError(f"process {pid} has started no Java")


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
