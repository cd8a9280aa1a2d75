"""The cache, and the codes that its lookups return in place of a broker id.

`MetadataCache` is the extension's own class, so that a lookup is one call into C. The codes are
those of rdmeta.h: `leaders()` writes them into its buffers, and `state()` returns them.
"""

from __future__ import annotations

import os
import time

from rdmeta._core import (
    DENIED,
    INVALID,
    NO_LEADER,
    NO_PARTITION,
    NOT_CACHED,
    STALE,
    UNKNOWN_TOPIC,
    WAITING,
    Attached,
    Image,
    MetadataCache,
    Reading,
    TopicHandle,
)
from rdmeta.core.publisher import Publisher
from rdmeta.core.waits import LOOK_S, deadline_of, remaining

__all__ = [
    "DENIED",
    "INVALID",
    "NOT_CACHED",
    "NO_LEADER",
    "NO_PARTITION",
    "STALE",
    "UNKNOWN_TOPIC",
    "WAITING",
    "Attached",
    "Image",
    "MetadataCache",
    "Publisher",
    "Reading",
    "TopicHandle",
    "attach",
]


def attach(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    look: float = 0.02,
    *,
    copy: bool = False,
    timeout: float | None = 0.0,
) -> Attached:
    """Returns a reader of the state that another process publishes at `path`.

    Lookups are as fast as in the publisher's own cache, and need neither a connection nor a
    thread. A lookup checks for a new state once `look` seconds have passed since the last check.
    If the file is missing or damaged later, the last good state stays in use. So it does when the
    publisher dies: the state stays, and gets older. The call waits at most `timeout` seconds for
    the first file; None waits without limit. `copy` is for files that other processes may write
    to; see Image.open(). Raises the errors of Image.open(), TypeError and ValueError.
    """
    deadline = deadline_of(timeout)
    while True:
        try:
            return Attached(path, look, copy)
        except FileNotFoundError:
            left = remaining(deadline)
            if left == 0:
                raise
        time.sleep(min(float(look), LOOK_S if left is None else min(left, LOOK_S)))
