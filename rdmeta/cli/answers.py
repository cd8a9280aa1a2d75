"""How often a client asks for `--every`, and waiting for its first answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from rdmeta.client.blocking import Client
from rdmeta.errors import RequestTimedOutError

__all__ = ["INTERVAL", "asking_every", "wait_for_first"]

INTERVAL = "topic.metadata.refresh.interval.ms"
_MAX_AGE = "metadata.max.age.ms"


def asking_every(conf: Mapping[str, str], every: float, max_age: float) -> dict[str, str]:
    """Returns a client's options with a refresh interval of `every` seconds.

    An answer counts as true for `max_age` seconds, unless `conf` has another limit.
    """
    return {_MAX_AGE: _ms(max_age), **conf, INTERVAL: _ms(every)}


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))


def wait_for_first(client: Client, answered: threading.Event, timeout: float) -> None:
    """Returns once a listener has set `answered`; the client asks for its topics by itself.

    Raises what says why no server answers, as Client.refresh() does; RequestTimedOutError.
    """
    until = time.monotonic() + timeout
    client.refresh((), timeout=timeout)
    if not answered.wait(max(0.0, until - time.monotonic())):
        raise RequestTimedOutError(f"no answer about the topics within {timeout:g} s")
