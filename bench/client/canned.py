"""A broker of canned frames in a process of its own: three brokers, topics of ten partitions."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from large_frames import large_name, large_response

from bench.build import ROOT
from bench.figure import PER_TOPIC

__all__ = ["API_VERSION", "large_name", "served"]

API_VERSION = 12


def uniform(topics: int) -> bytes:
    """Returns an answer of so many topics on three brokers; all have the same replicas."""
    return large_response(topics, PER_TOPIC)


@contextmanager
def served(
    topics: int,
    identity: tuple[str, str] | None = None,
    answer: Callable[[int], bytes] = uniform,
) -> Iterator[tuple[str, int]]:
    """Yields the address of a broker that answers with so many topics, each time the same bytes.

    It answers in Metadata v12; a request for names or for brokers gets one topic. It speaks TLS if
    it has an `identity`, which is the files of a certificate and its key.
    """
    with tempfile.TemporaryDirectory() as directory:
        for name, count in (("all", topics), ("one", 1)):
            Path(directory, f"{name}-{API_VERSION}").write_bytes(answer(count))
        server = subprocess.Popen(
            [sys.executable, "-m", "bench.peers.server", directory, *(identity or ())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        try:
            assert server.stdout is not None
            yield "127.0.0.1", int(server.stdout.readline())
        finally:
            server.communicate(timeout=30)
