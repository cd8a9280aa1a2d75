"""A run that another process kills: python killed_commit.py IN OUT KIND COUNT [gold].

The process writes a line before and after each commit to a table, and waits for its end at line
`COUNT`. With "in" it waits in a commit to Iceberg, before the catalog has it; with "log" in one to
Delta, whose log file is written and has no name yet, with "logged" when it has just got it; with
"manifest" before the manifest, with 0 nowhere.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from processes import environment


def started(source: Path, out: Path, kind: str, stop: str, *more: str) -> subprocess.Popen[str]:
    words = [sys.executable, __file__, str(source), str(out), kind, stop, *more]
    env = environment()
    if stop in ("log", "logged"):
        hook = out.with_name("named_log.so")
        code = Path(__file__).with_name("named_log.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", hook, code], check=True)
        env |= {"LD_PRELOAD": str(hook), "TEST_LOG": stop}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)


def killed(
    source: Path,
    out: Path,
    kind: str,
    stop: str,
    *more: str,
    after: float | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """Begins a run, and kills it at a step, after `meanwhile`, or some seconds after it began."""
    with started(source, out, kind, stop, *more) as process:
        assert process.stdout is not None
        wanted = "begun" if after is not None else stop
        assert any(line.strip() == wanted for line in process.stdout)
        if after is not None:
            time.sleep(after)
        try:
            meanwhile()
        finally:
            process.kill()


def main(source: str, out: str, kind: str, stop: str, *more: str) -> None:
    from rdmeta import pipeline
    from rdmeta.pipeline import running
    from rdmeta.pipeline.layout import TableKind
    from rdmeta.pipeline.logs import logs_of
    from rdmeta.pipeline.store import Store

    def told(what: object) -> None:
        print(what, flush=True)
        if str(what) == stop:
            signal.pause()

    logs: Any = type(logs_of(Store(out), TableKind(kind)))
    commit: Callable[..., None] = logs.commit
    count = 0

    def counted(self: object, *arguments: object) -> None:
        nonlocal count
        told(count + 1)
        commit(self, *arguments)
        count += 2
        told(count)

    if stop == "in":
        from pyiceberg.catalog.sql import SqlCatalog

        swap = SqlCatalog.commit_table
        catalog: Any = SqlCatalog

        def late_swap(*arguments: Any) -> Any:
            told("in")
            return swap(*arguments)

        catalog.commit_table = late_swap
    run: Any = running
    write_manifest = run.write_manifest

    def late(*arguments: Any) -> None:
        told("manifest")
        write_manifest(*arguments)

    logs.commit = counted
    run.write_manifest = late
    print("begun", flush=True)
    pipeline.run(pipeline.plan([source], out, tables=kind, gold="gold" in more), workers=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
