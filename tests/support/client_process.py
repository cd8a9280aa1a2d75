"""A client in a process of its own, which tests stop, interrupt and let exit.

`python client_process.py SPEC` runs it; SPEC is JSON. For each line that the process reads, it
prints the number of answers so far. It ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from processes import environment


class ClientProcess:
    """A context manager that runs a started client of one kind, which knows `topics`."""

    def __init__(self, kind: str, conf: Mapping[str, object], topics: Sequence[str]) -> None:
        self.kind = kind
        self._spec = json.dumps([kind, dict(conf), list(topics)])

    def __enter__(self) -> ClientProcess:
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._spec],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            if error is not None:
                self._process.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def answers(self) -> int:
        """Returns the number of Metadata answers that the client has received."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read()

    def processor_s(self) -> float:
        """Returns the seconds of processor time that the process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def run_async(conf: dict[str, object], topics: list[str]) -> None:
    """Runs an AsyncClient until the input ends."""
    import rdmeta

    async with rdmeta.AsyncClient(conf) as client:
        answers: list[object] = []
        client.on_update(answers.extend)
        for topic in topics:
            await client.wait_for_topic(topic, timeout=30)
        print(len(answers), flush=True)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(len(answers), flush=True)


def run(conf: dict[str, object], topics: list[str]) -> None:
    """Runs a Client until the input ends."""
    import rdmeta

    with rdmeta.Client(conf) as client:
        answers: list[object] = []
        client.on_update(answers.extend)
        for topic in topics:
            client.wait_for_topic(topic, timeout=30)
        print(len(answers), flush=True)
        while sys.stdin.readline():
            print(len(answers), flush=True)


if __name__ == "__main__":
    kind, conf, topics = json.loads(sys.argv[1])
    if kind == "Client":
        run(conf, topics)
    else:
        asyncio.run(run_async(conf, topics))
