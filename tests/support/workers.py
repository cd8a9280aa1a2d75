"""Workers of gunicorn and Celery for tests: they read the state that another process publishes.

`gunicorn "workers:wsgi('STATE')"` serves what a worker reads. `python workers.py FOLDER STATE` is a
Celery worker; its broker and its results are files in that folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rdmeta import attach

Seen = dict[str, int | None]


# gunicorn with two workers, which fork from a process that has imported the application.
GUNICORN = ("-m", "gunicorn", "--no-control-socket", "--preload", "-w", "2", "-b")


@contextmanager
def server(
    log: Path,
    *command: str,
    inherited: tuple[int, ...] = (),
    environment: dict[str, str] | None = None,
) -> Iterator[None]:
    """Runs a server that must exit with 0, and prints its log; it can import this module."""
    with (
        log.open("w") as out,
        subprocess.Popen(
            [sys.executable, *command],
            cwd=Path(__file__).parent,
            stdout=out,
            stderr=subprocess.STDOUT,
            pass_fds=inherited,
            env=environment,
        ) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)
            print(log.read_text())
    assert process.returncode == 0


def reader(state: str) -> Callable[[], Seen]:
    """Attaches now, before workers fork; returns a function for a worker's pid, leader, threads."""
    attached = attach(state)

    def seen() -> Seen:
        leader, threads = attached.leader("orders", 0), len(os.listdir("/proc/self/task"))
        return {"pid": os.getpid(), "leader": leader, "threads": threads}

    return seen


def wsgi(state: str) -> Callable[..., Iterable[bytes]]:
    """Returns a WSGI application that responds with the worker's pid, leader and threads."""
    seen = reader(state)

    def application(environ: dict[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(seen()).encode()]

    return application


def celery(folder: Path) -> Any:
    """Returns the Celery application, which client and workers share."""
    from celery import Celery

    for name in ("queue", "sent", "control", "results"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    app = Celery("workers", broker="filesystem://", backend=f"file://{folder}/results")
    app.conf.broker_transport_options = {
        "data_folder_in": str(folder / "queue"),
        "data_folder_out": str(folder / "sent"),
        "control_folder": str(folder / "control"),
        "polling_interval": 0.01,  # the default is a second
    }
    return app


def ask_celery(app: Any, folder: Path) -> Any:
    """Returns the result of one task.

    A worker would read a message that is not written to its end, so each one is moved to the queue.
    """
    result = app.send_task("seen")
    for message in (folder / "sent").iterdir():
        message.rename(folder / "queue" / message.name)
    return result.get(timeout=30, interval=0.01)


def work(folder: Path, state: str) -> None:
    """Runs two Celery workers until SIGTERM."""
    work_on(celery(folder), reader(state))


def work_on(app: Any, seen: Callable[[], Any]) -> None:
    """Runs two Celery workers, whose task returns what `seen` does, until SIGTERM."""

    @app.task(name="seen")  # type: ignore[untyped-decorator]
    def task() -> Any:
        time.sleep(0.02)  # so that the other worker takes the next
        return seen()

    app.worker_main(["worker", "--pool", "prefork", "--concurrency", "2", "--loglevel", "INFO"])


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2])
