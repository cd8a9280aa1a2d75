"""Measures one part of the client: `python -m bench.client PART`, used by bench.run.

    refresh    10 000 topics from canned frames, beside a blocking recv and apply(), and confluent
    idle       CPU time and threads of an idle client, beside an idle confluent AdminClient
    many       memory of many AsyncClients, and their loop's lag
    elections  the leader killed: the first broker's word, and when each client sees it (Kafka)
    creation   a topic created: when wait_for_topic() returns (Kafka)
    storm      requests while many topics have no leader, beside a Java producer (Kafka)
    tls        a refresh through TLS from canned frames, beside blocking reads and apply()
    login      a new client to its first answer, SASL_SSL and SCRAM, beside confluent's (Kafka)
    wrong      wrong configurations: is the cause named; beside others (Kafka)
    raised     how soon the cause is raised, beside the broker's word (Kafka)

Each part prints one JSON object: samples by series, and `missing`, the reasons of series that
cannot be measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from typing import Any

from bench.figure import ANY, Missing

# The options that a part takes, in the order of its measure().
PARTS = {
    "refresh": ("topics", "rounds"),
    "idle": ("topics", "seconds"),
    "many": ("clients", "seconds"),
    "elections": ("rounds", "seconds"),
    "creation": ("rounds",),
    "storm": ("topics", "rounds", "seconds"),
    "tls": ("topics", "rounds"),
    "login": ("rounds",),
    "wrong": ("rounds",),
    "raised": ("rounds",),
}
KAFKA = ("elections", "creation", "storm", "login", "wrong", "raised")
# The packages of other clients, and those that the tests' brokers and certificates need.
PACKAGES = ("kafka", "confluent_kafka", "trustme", "cryptography", "scramp")


def run(part: str, args: argparse.Namespace) -> dict[str, Any]:
    """Measures a part; if it is missing here, returns the reason."""
    if part in KAFKA and not args.rounds:
        return {"missing": {ANY: "a quick run starts no Kafka"}}
    try:
        module = import_module(f"bench.client.{part}")
        found: dict[str, Any] = module.measure(*(getattr(args, name) for name in PARTS[part]))
    except Missing as reason:
        return {"missing": {ANY: str(reason)}}
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in PACKAGES:
            raise
        return {"missing": {ANY: f"{error.name} is not installed"}}
    return found


def main() -> int:
    """Measures one part and prints it."""
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument(
        "--seconds", type=float, default=12.0, help="how long idle ones are watched"
    )
    args = parser.parse_args()
    print(json.dumps({"bench": args.part, **run(args.part, args)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
