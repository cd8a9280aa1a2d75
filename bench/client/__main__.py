"""Measures one part of the client: `python -m bench.client PART`, used by bench.run.

    refresh    10 000 topics from canned frames, beside a blocking recv and apply(), and confluent
    idle       CPU time and threads of an idle client, beside an idle confluent AdminClient
    many       memory of many AsyncClients, and their loop's lag
    elections  the leader killed: the first broker's word, and when each client sees it (Kafka)
    creation   a topic created: when wait_for_topic() returns (Kafka)
    storm      requests while many topics have no leader, beside a Java producer (Kafka)

Each part prints one JSON object: samples by series, and `missing`, the reasons of series that
cannot be measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from bench.client import creation, elections, idle, many, refresh, storm
from bench.figure import ANY, Missing

PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "refresh": lambda args: refresh.measure(args.topics, args.rounds),
    "idle": lambda args: idle.measure(args.topics, args.seconds),
    "many": lambda args: many.measure(args.clients, args.seconds),
    "elections": lambda args: elections.measure(args.rounds, args.seconds),
    "creation": lambda args: creation.measure(args.rounds),
    "storm": lambda args: storm.measure(args.topics, args.rounds, args.seconds),
}
KAFKA = ("elections", "creation", "storm")


def run(part: str, args: argparse.Namespace) -> dict[str, Any]:
    """Measures a part; if it is missing here, returns the reason."""
    if part in KAFKA and not args.rounds:
        return {"missing": {ANY: "a quick run starts no Kafka"}}
    try:
        return PARTS[part](args)
    except Missing as reason:
        return {"missing": {ANY: str(reason)}}


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
