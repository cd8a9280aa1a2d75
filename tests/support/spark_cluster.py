"""A standalone cluster of Spark on this machine: a master, and two workers on hosts of their own.

Spark runs a second attempt of a task on another host only, so the workers have two addresses of the
loopback network. `local-cluster` has one host.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import commands
import pyspark

_CLASS = "org.apache.spark.deploy"
_MASTER = re.compile(r"spark://127\.0\.0\.1:\d+")


@contextmanager
def spark_cluster(folder: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Yields the master's URL; the processes write their logs and files to a folder."""
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        words = [f"{_CLASS}.master.Master", "--host", "127.0.0.1", "--port", "0"]
        log = _started(stack, folder, env, "127.0.0.1", *words, "--webui-port", "0")
        master = _found(log, _MASTER)
        for host in ("127.0.0.1", "127.0.0.2"):
            words = [f"{_CLASS}.worker.Worker", "--host", host, "-c", "2", "-m", "1g"]
            log = _started(stack, folder, env, host, *words, "--webui-port", "0", master)
            _found(log, re.compile("Successfully registered with master"))
        yield master


def _started(
    stack: ExitStack, folder: Path, env: Mapping[str, str], host: str, *words: str
) -> Path:
    """Starts a process of the cluster, which ends with the stack; returns its log."""
    log = folder / f"{words[0]}-{host}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [str(Path(pyspark.__file__).parent / "bin/spark-class"), *words],
            env=commands.surroundings({**env, "SPARK_LOCAL_IP": host}),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd=folder,
        )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return log


def _found(log: Path, pattern: re.Pattern[str], seconds: float = 60) -> str:
    until = time.monotonic() + seconds
    while True:
        text = log.read_text(errors="replace")
        found = pattern.search(text)
        if found is not None:
            return found.group()
        assert time.monotonic() < until, text
        time.sleep(0.05)
