"""Writes Metadata responses of every version, as brokers send them, for the fuzz targets.

    python tools/make_corpus.py [DIRECTORY...]

The brokers are those of an embedded cluster. A file is one byte and then the response's body. The
byte is the API version, plus 16 if the mock ends its answers with one byte too many. A file is
named by version and scene. Ports and topic ids differ from run to run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from rdmeta._core import METADATA_MAX_VERSION, METADATA_MIN_VERSION, encode_metadata_request
from rdmeta.config.address import parse_bootstrap
from rdmeta.embedded import EmbeddedCluster
from rdmeta.model import ALL
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.handshake import METADATA

FIRST_WITH_EXTRA_BYTE = 9
TOLERATE_TRAILING = 16
DEFAULT = Path(__file__).resolve().parent.parent / "fuzz/corpus/fuzz_response"


def empty(cluster: EmbeddedCluster) -> None:
    """Brokers and no topic."""
    cluster.broker(2).rack = "zone-b"


def plain(cluster: EmbeddedCluster) -> None:
    """Topics of several sizes."""
    cluster.create_topic("orders", partitions=12, replication_factor=3)
    cluster.create_topic("payments", partitions=3, replication_factor=2)
    cluster.create_topic("t", partitions=1)


def moved(cluster: EmbeddedCluster) -> None:
    """The topics of plain() with other leaders and epochs."""
    for partition in range(12):
        cluster.set_leader("orders", partition, partition % 3 + 1)
    cluster.set_leader("payments", 0, None)


def behind(cluster: EmbeddedCluster) -> None:
    """A broker with an older epoch than in its last answer, once per version."""
    for _ in range(METADATA_MIN_VERSION, METADATA_MAX_VERSION + 1):
        cluster.push_leader("orders", 0, 1, 0)


def troubled(cluster: EmbeddedCluster) -> None:
    """Topic errors, and a leader that is not among the brokers."""
    for name, code in (("denied", 29), ("invalid", 17), ("electing", 5), ("missing", 3)):
        cluster.create_topic(name, partitions=2, replication_factor=3)
        cluster.set_topic_error(name, code)
    cluster.broker(3).down()


def recreated(cluster: EmbeddedCluster) -> None:
    """A topic with an old name, a new id and fewer partitions."""
    cluster.broker(3).up()
    cluster.delete_topic("orders")
    cluster.create_topic("orders", partitions=2, replication_factor=3)


def many(cluster: EmbeddedCluster) -> None:
    """Enough topics for the cache to remember their order."""
    for number in range(40):
        cluster.create_topic(f"team-{number % 7:03}.service.events-{number:06}", 3, 3)


# Each scene continues the one before, so that it is an update of it.
SCENES: list[Callable[[EmbeddedCluster], None]] = [
    empty,
    plain,
    moved,
    behind,
    troubled,
    recreated,
    many,
]


def responses(cluster: EmbeddedCluster) -> Iterator[tuple[int, bytes]]:
    """Yields (version, body) for each version."""
    address = parse_bootstrap(cluster.bootstrap)[0]
    with Connection(address, Deadline(60), "make_corpus", 1 << 24) as connection:
        for version in range(METADATA_MIN_VERSION, METADATA_MAX_VERSION + 1):
            request = encode_metadata_request(version, ALL)
            yield version, connection.request(METADATA, version, request, Deadline(60))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directories", nargs="*", type=Path, default=[DEFAULT])
    directories: list[Path] = parser.parse_args().directories
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
    files = 0
    with EmbeddedCluster(brokers=3) as cluster:
        for scene in SCENES:
            scene(cluster)
            for version, body in responses(cluster):
                extra = TOLERATE_TRAILING if version >= FIRST_WITH_EXTRA_BYTE else 0
                for directory in directories:
                    path = directory / f"v{version:02}-{scene.__name__}"
                    path.write_bytes(bytes([version | extra]) + body)
                    files += 1
    print(f"{files} files in {', '.join(map(str, directories))}")


if __name__ == "__main__":
    main()
