"""Workers of gunicorn and Celery that fork from a process with a running client.

`gunicorn "client_workers:wsgi('KIND', 'CONF')"` serves what a worker can do with that client.
`python client_workers.py FOLDER KIND CONF` is a Celery worker with the same task. CONF is JSON.
The processes print what rdmeta logs, at DEBUG.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import workers
from loop_thread import LoopThread

import rdmeta

Seen = dict[str, Any]


def parent(kind: str, conf: dict[str, object]) -> Callable[[], Seen]:
    """Starts a client now, before workers fork; returns a function for the workers.

    It returns the worker's pid, and the leader that the inherited cache has. It also returns the
    error of a call of the inherited client, and the leader that a new client finds.
    """
    log = logging.getLogger("rdmeta")
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.DEBUG)
    client: Any = getattr(rdmeta, kind)({"client.id": "parent", **conf})
    if kind == "Client":
        client.wait_for_topic("orders", timeout=30)
    else:
        LoopThread("parent").__enter__().run(client.wait_for_topic("orders", timeout=30))

    def refresh() -> None:
        if kind == "Client":
            client.refresh(timeout=5)
        else:
            asyncio.run(client.refresh(timeout=5))

    def seen() -> Seen:
        error = None
        try:
            refresh()
        except rdmeta.Error as found:
            error = type(found).__name__
        with rdmeta.Client({"client.id": "worker", **conf}) as own:
            leader = own.leader("orders", 0, timeout=20)
        inherited = client.cache.leader("orders", 0)
        return {"pid": os.getpid(), "inherited": inherited, "error": error, "own": leader}

    return seen


def wsgi(kind: str, conf: str) -> Callable[..., Iterable[bytes]]:
    """Returns a WSGI application that responds with what the worker has seen."""
    seen = parent(kind, json.loads(conf))

    def application(environ: dict[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(seen()).encode()]

    return application


def work(folder: Path, kind: str, conf: str) -> None:
    """Runs two Celery workers until SIGTERM."""
    workers.work_on(workers.celery(folder), parent(kind, json.loads(conf)))


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
