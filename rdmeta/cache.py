"""The cache, and what its lookups say in place of a broker id.

`MetadataCache` is the extension's own class, so that a lookup is one call into C. The codes are
those of rdmeta.h: in the buffers of `leaders()`, and from `state()`.
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
from rdmeta._publish import Publisher
from rdmeta._waits import LOOK_S, deadline_of, remaining

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
    """Read the state that another process publishes at `path`, at the speed of its own cache.

    Costs neither a connection nor a thread: a lookup looks whether there is a new state once `look`
    seconds have passed since the last look. A file that is missing or damaged later leaves the
    last good state in use: when who publishes dies, what it knew stays, and gets older. `timeout`
    seconds are waited for the first file, None for no limit. `copy` is for files that others may
    write to; see Image.open(), whose errors this raises. TypeError, ValueError.
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
