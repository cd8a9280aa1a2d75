"""Measures CPU time and threads of idle clients that know all topics, each in its own process.

`python -m bench.client.idle NAME BOOTSTRAP SECONDS` is such a process: it prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from time import process_time, sleep
from typing import Any

from bench.build import ROOT
from bench.client import lacks

WINDOWS = 3
SETTLE = 2.0  # seconds for the work that a client does after its first answer


def idle(name: str, bootstrap: str, seconds: float) -> dict[str, Any]:
    """Fills one client, then returns its CPU time, in us per second, and its number of threads."""
    if name == "client":
        import rdmeta

        client: Any = rdmeta.Client({"bootstrap.servers": bootstrap}, topics=rdmeta.ALL)
        client.refresh(timeout=60)
    else:
        from confluent_kafka.admin import AdminClient

        client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        client.list_topics(timeout=60)
    sleep(min(SETTLE, seconds))
    cpu = []
    for _ in range(WINDOWS):
        begin = process_time()
        sleep(seconds / WINDOWS)
        cpu.append((process_time() - begin) * 1e6 / (seconds / WINDOWS))
    threads = len(os.listdir("/proc/self/task")) - 1
    if name == "client":
        client.close()
    return {"cpu": cpu, "threads": threads}


def measure(topics: int, seconds: float) -> dict[str, Any]:
    """Returns us of CPU per second, and threads, of both clients, which are idle side by side."""
    from bench.client.canned import served

    names = ["client", "confluent"]
    out: dict[str, Any] = {}
    if reason := lacks("confluent_kafka"):
        names.pop()
        out["missing"] = {"confluent_cpu": reason, "confluent_threads": reason}
    with served(topics) as (host, port):
        command = [sys.executable, "-m", "bench.client.idle"]
        both = {
            name: subprocess.Popen(
                [*command, name, f"{host}:{port}", str(seconds)],
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for name in names
        }
        for name, process in both.items():
            printed, _ = process.communicate(timeout=120 + seconds)
            if process.returncode:
                raise SystemExit(f"the idle process of {name} failed")
            found = json.loads(printed)
            out[f"{name}_cpu"] = found["cpu"]
            out[f"{name}_threads"] = [found["threads"]]
    return out


if __name__ == "__main__":
    print(json.dumps(idle(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
