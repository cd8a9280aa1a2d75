"""A run of the scenarios: its rounds, its topics, and the values that it has seen.

SCENARIO_ROUNDS says how often each scenario is repeated (5). Only a run of five rounds or more
changes tests/real/scenarios.json and its page; another one writes build/scenarios.json.
The same holds for tests/real/connect.json and its page, which another run leaves alone.
"""

from __future__ import annotations

import os
import statistics
from datetime import datetime, timezone

import scenarios
import wrong_configurations
from real_kafka import RealKafka

from bench import machine

ROUNDS = int(os.environ.get("SCENARIO_ROUNDS", scenarios.ROUNDS))
# The nodes of each version's cluster.
NODES = {"4.3.0": 3, "3.9.1": 1}
# The topics of each cluster: partition i is led by node i + 1; replicated, and not.
LED, ALONE = "led", "alone"
# A busy machine may be late by so many seconds before a scenario fails; a median may not.
SLACK_S = 1.0


class Seen:
    """The values that this run has seen."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], list[float]] = {}
        # What clients with wrong configurations raised, for docs/reference/errors.md.
        self.texts: wrong_configurations.Texts = {}

    def add(self, key: str, brokers: str, client: str, value: float) -> None:
        """Records one value of a scenario."""
        assert key in scenarios.KNOWN
        shown = round(value, 3)
        if scenarios.KNOWN[key].unit == "s":
            shown = max(shown, 0.0)  # a client may hear it before the process that asks
        print(f"{key}, {brokers}, {client}: {shown}")
        self.rows.setdefault((key, brokers, client), []).append(shown)

    def check(self, *keys: str) -> None:
        """Fails if a median of these scenarios is beyond its bound, or a value with SLACK_S."""
        for (key, brokers, client), values in self.rows.items():
            scenario = scenarios.KNOWN[key]
            slack = SLACK_S if scenario.unit in ("s", "hedges") else 0.0
            if key not in keys:
                continue
            where = f"{key}, {brokers}, {client}: {values}"
            assert all(scenario.allows(value, slack) for value in values), where
            if scenario.median is not None and len(values) >= 5:
                assert statistics.median(values) <= scenario.median, where

    def write(self) -> None:
        """Writes the rows of all rounds into the file of this run, and the page if it has five."""
        about = machine.describe()
        signed = {
            "machine": f"{about['cpu']}, {about['cores']} cores, Linux {about['kernel']}",
            "commit": about["commit"],
            "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        rows = [
            {"scenario": key, "brokers": brokers, "client": client, "values": values, **signed}
            for (key, brokers, client), values in self.rows.items()
            if len(values) >= ROUNDS
        ]
        if self.texts and ROUNDS >= scenarios.ROUNDS:
            wrong_configurations.write(self.texts)
        if ROUNDS < scenarios.ROUNDS:
            scenarios.write(scenarios.ROOT / "build" / "scenarios.json", rows)
        elif rows:
            scenarios.write(scenarios.RESULTS, rows)
            scenarios.PAGE.write_text(
                scenarios.page(scenarios.load(scenarios.RESULTS)), encoding="utf-8"
            )


def rotated(nodes: range, by: int) -> list[int]:
    """Returns the nodes, from another one on."""
    return [*nodes[by:], *nodes[:by]]


def with_topics(kafka: RealKafka) -> RealKafka:
    """Returns the cluster once it has the topics LED and ALONE."""
    nodes = kafka.nodes
    by_name = {LED: [rotated(nodes, i) for i in range(len(nodes))], ALONE: [[i] for i in nodes]}
    for topic, replicas in by_name.items():
        if topic not in kafka.asked(1, None):
            kafka.create(topic, replicas)
    return kafka


def beyond_budget(times: list[float], backoff_max: float, late: float = 0.0) -> float:
    """Returns how far the worst window of requests is beyond 8 + W / (0.8 x backoff_max).

    `late` is by how much two requests may have come closer to each other on their way.
    """
    return max(
        (last - first + 1) - (8 + (times[last] - times[first] + late) / (0.8 * backoff_max))
        for first in range(len(times))
        for last in range(first, len(times))
    )
