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

import sys

from bench.parts import Program

PROGRAM = Program(
    "bench.client",
    {
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
    },
    kafka=("elections", "creation", "storm", "login", "wrong", "raised"),
)

if __name__ == "__main__":
    sys.exit(PROGRAM.main(__doc__))
