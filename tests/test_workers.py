"""Workers of gunicorn and Celery read the file of one publisher; Spark's are in spark/."""

from __future__ import annotations

import json
import os
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import workers
from answers import apply_topics
from waiting import until

from rdmeta import MetadataCache


def two_workers_follow(cache: MetadataCache, ask: Callable[[], workers.Seen]) -> None:
    """Checks that two workers follow the file after their fork, without a thread."""
    for leader in (1, 2, 3):
        apply_topics(cache, leader, leader)
        pids: set[int | None] = set()

        def both(leader: int = leader, pids: set[int | None] = pids) -> bool:
            seen = ask()
            assert seen["threads"] == 1
            if seen["leader"] == leader:
                pids.add(seen["pid"])
            return len(pids) == 2

        until(both, f"two workers that see {leader}")
        assert os.getpid() not in pids


@pytest.fixture
def cache() -> MetadataCache:
    """A cache with the system's clock, which the other processes have."""
    return MetadataCache()


@pytest.fixture
def state(cache: MetadataCache, tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "state"
    apply_topics(cache)
    with cache.publish(path, interval=0.001):
        yield str(path)


def test_workers_of_gunicorn_follow_a_published_cache(
    cache: MetadataCache, state: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        fd, url = door.fileno(), f"http://127.0.0.1:{door.getsockname()[1]}/"
        command = (*workers.GUNICORN, f"fd://{fd}", f"workers:wsgi({state!r})")

        def ask() -> Any:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)

        with workers.server(tmp_path / "log", *command, inherited=(fd,)):
            two_workers_follow(cache, ask)


@pytest.mark.slow
def test_workers_of_celery_follow_a_published_cache(
    cache: MetadataCache, state: str, tmp_path: Path
) -> None:
    app = workers.celery(tmp_path)
    with workers.server(tmp_path / "log", workers.__file__, str(tmp_path), state):
        two_workers_follow(cache, lambda: workers.ask_celery(app, tmp_path))
