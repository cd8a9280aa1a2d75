"""Times a refresh of all topics through TLS, beside blocking reads of the same bytes and apply().

Both begin on an open connection, and have the answer already: it brings nothing new.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import Any

from certificates import Authority

import rdmeta
from bench.client.canned import served
from bench.client.refresh import Floor, check, timed


def measure(topics: int, rounds: int) -> dict[str, Any]:
    """Returns milliseconds: client, floor."""
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority()
        ca = authority.write(Path(directory))
        identity = authority.issue("127.0.0.1").write(Path(directory), "broker")
        with served(topics, identity) as address:
            floor = Floor(address, ssl.create_default_context(cafile=ca))
            conf = {
                "bootstrap.servers": "{}:{}".format(*address),
                "security.protocol": "ssl",
                "ssl.ca.location": ca,
            }
            with rdmeta.Client(conf, topics=rdmeta.ALL) as client, floor.socket:
                ways = {"floor": floor.refresh, "client": lambda: client.refresh(timeout=60)}
                out = timed(ways, rounds)
                check(client.cache, topics, "client")
                check(floor.cache, topics, "floor")
    return out
