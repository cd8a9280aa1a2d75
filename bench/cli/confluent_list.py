"""`python -m bench.cli.confluent_list BOOTSTRAP`: what `rdmeta list` prints, by confluent's client.

It is what a user would write: list_topics(), and lines with tabs between the cells.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from confluent_kafka.admin import AdminClient

metadata = AdminClient({"bootstrap.servers": sys.argv[1], "log_level": 0}).list_topics(timeout=60)


def ids(brokers: Iterable[int]) -> str:
    """Returns ids with commas between them."""
    return ",".join(map(str, brokers)) or "-"


write = sys.stdout.write
write("broker\thost\tport\track\tcontroller\n")
for id, broker in sorted(metadata.brokers.items()):
    controller = "true" if id == metadata.controller_id else "false"
    write(f"{id}\t{broker.host}\t{broker.port}\t-\t{controller}\n")
write("\ntopic\tpartition\tleader\tepoch\treplicas\tisr\toffline\n")
for name, topic in sorted(metadata.topics.items()):
    for number, partition in sorted(topic.partitions.items()):
        leader = "-" if partition.leader < 0 else partition.leader
        replicas, isrs = ids(partition.replicas), ids(partition.isrs)
        write(f"{name}\t{number}\t{leader}\t-\t{replicas}\t{isrs}\t-\n")
