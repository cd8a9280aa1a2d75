"""A client in a process of its own, which tests stop, interrupt and let exit.

`python client_process.py SPEC` runs it; SPEC is JSON. For each line that the process reads, it
prints the number of answers so far and its statistics, as JSON. It ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._process:
            if error is not None:
                self._process.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> tuple[int, dict[str, Any]]:
        assert self._process.stdout is not None
        answers, stats = json.loads(self._process.stdout.readline())
        return answers, stats

    def asked(self) -> tuple[int, dict[str, Any]]:
        """Returns the number of Metadata answers that the client has received, and its stats."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read()

    def answers(self) -> int:
        """Returns the number of Metadata answers that the client has received."""
        return self.asked()[0]

    def processor_s(self) -> float:
        """Returns the seconds of processor time that the process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(answers: list[object], stats: dict[str, Any]) -> None:
    """Prints what the parent reads."""
    print(json.dumps([len(answers), stats], default=str), flush=True)


async def run_async(conf: dict[str, object], topics: list[str]) -> None:
    """Runs an AsyncClient until the input ends."""
    import rdmeta

    async with rdmeta.AsyncClient(conf) as client:
        answers: list[object] = []
        client.on_update(answers.extend)
        for topic in topics:
            await client.wait_for_topic(topic, timeout=30)
        report(answers, client.stats())
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            report(answers, client.stats())


def run(conf: dict[str, object], topics: list[str]) -> None:
    """Runs a Client until the input ends."""
    import rdmeta

    with rdmeta.Client(conf) as client:
        answers: list[object] = []
        client.on_update(answers.extend)
        for topic in topics:
            client.wait_for_topic(topic, timeout=30)
        report(answers, client.stats())
        while sys.stdin.readline():
            report(answers, client.stats())


if __name__ == "__main__":
    kind, conf, topics = json.loads(sys.argv[1])
    if kind == "Client":
        run(conf, topics)
    else:
        asyncio.run(run_async(conf, topics))
