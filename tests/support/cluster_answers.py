"""What the brokers of an embedded cluster say, as bytes."""

from __future__ import annotations

from rdmeta import EmbeddedCluster, MetadataCache, encode_metadata_request
from rdmeta.model import ALL
from rdmeta.net.address import parse_bootstrap
from rdmeta.net.blocking import Connection, Deadline
from rdmeta.net.session import METADATA


def answer(cluster: EmbeddedCluster, version: int) -> bytes:
    """The body of a Metadata response about all topics."""
    deadline = Deadline(10.0)
    with Connection(parse_bootstrap(cluster.bootstrap)[0], deadline, "test", 1 << 20) as peer:
        return peer.request(METADATA, version, encode_metadata_request(version, ALL), deadline)


def feed(cache: MetadataCache, body: bytes, version: int) -> None:
    """Apply an answer about all topics."""
    cache.apply(body, version, ALL, tolerate_trailing=True)
