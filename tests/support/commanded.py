"""A real Kafka for the tests of commands: three nodes, by PLAINTEXT and by SASL_SSL."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from real_kafka import RealKafka


class Commanded(NamedTuple):
    """A running cluster; `secured` is a file for -F, with which commands reach it by SASL_SSL."""

    kafka: RealKafka
    secured: Path
