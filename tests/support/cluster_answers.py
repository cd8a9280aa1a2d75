"""Metadata responses of an embedded cluster, as bytes."""

from __future__ import annotations

from rdmeta import EmbeddedCluster, MetadataCache, encode_metadata_request
from rdmeta.config.address import parse_bootstrap
from rdmeta.model import ALL
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.handshake import METADATA


def answer(cluster: EmbeddedCluster, version: int) -> bytes:
    """Asks the cluster for all topics; returns the body of its Metadata response."""
    deadline = Deadline(10.0)
    with Connection(parse_bootstrap(cluster.bootstrap)[0], deadline, "test", 1 << 20) as peer:
        return peer.request(METADATA, version, encode_metadata_request(version, ALL), deadline)


def feed(cache: MetadataCache, body: bytes, version: int) -> None:
    """Applies an all-topics answer to the cache."""
    cache.apply(body, version, ALL, tolerate_trailing=True)
