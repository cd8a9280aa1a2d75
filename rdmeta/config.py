"""The client's configuration: librdkafka's keys, checked, as one value."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Config"]


@dataclass(frozen=True)
class Config:
    """Checked settings. Times are in seconds; None means never or without limit."""

    bootstrap_servers: str = ""
    client_id: str = "rdmeta"
    refresh_interval: float | None = 300.0
    fast_interval: float = 0.1
    max_age: float | None = 900.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    reconnect_backoff: float = 0.1
    reconnect_backoff_max: float = 10.0
    setup_timeout: float = 30.0
    socket_timeout: float = 60.0
    max_block: float = 60.0
    propagation_max: float = 30.0
    max_idle: float = 0.0
    rebootstrap: bool = True
    rebootstrap_trigger: float = 300.0
    allow_auto_create: bool = False
    blacklist: tuple[re.Pattern[str], ...] = ()
    max_topics: int = 1_000_000
    max_frame: int = 100_000_000
