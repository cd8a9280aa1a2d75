"""Waiting for a client's first answer, as the commands that keep running do."""

from __future__ import annotations

import threading
import time

from rdmeta.client.blocking import Client
from rdmeta.errors import RequestTimedOutError

__all__ = ["wait_for_first"]


def wait_for_first(client: Client, answered: threading.Event, timeout: float) -> None:
    """Returns once a listener has set `answered`; the client asks for its topics by itself.

    Raises what says why no server answers, as Client.refresh() does; RequestTimedOutError.
    """
    until = time.monotonic() + timeout
    client.refresh((), timeout=timeout)
    if not answered.wait(max(0.0, until - time.monotonic())):
        raise RequestTimedOutError(f"no answer about the topics within {timeout:g} s")
