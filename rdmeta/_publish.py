"""Publishing a cache: its state in a file that other processes map.

`MetadataCache.publish` gives a Publisher. The cache is known here only by what it can do: this
module stands below it.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Protocol

from rdmeta.errors import Error

__all__ = ["Publisher"]

# How long a wait for a change lasts, so that an end is noticed.
_SLICE_S = 0.05
# How often to look whether an answer that changed nothing has moved the deadlines.
_LOOK_S = 1.0
# Between attempts after one that failed.
_RETRY_S = 0.5


class Saved(Protocol):
    """An image."""

    @property
    def version(self) -> int: ...
    def save(self, path: str | bytes | os.PathLike[Any]) -> None: ...


class Cache(Protocol):
    """What a publisher asks of a cache."""

    def image(self) -> Saved: ...
    def stats(self) -> dict[str, Any]: ...
    def wait_change(self, since: int, timeout: float | None = None) -> int | None: ...


class Publisher:
    """Keeps a file up to date with a cache, until it is closed or the cache is gone.

    A daemon thread waits for changes and saves an image, `interval` seconds apart at least: what
    changes meanwhile goes into the next. An answer that changed nothing is published within a
    second, as it makes everything younger. When the file cannot be written, that is tried again;
    `error` says so meanwhile. In the child of a fork there is no thread, and close() does nothing.
    """

    def __init__(self, cache: Cache, path: str | bytes | os.PathLike[Any], interval: float) -> None:
        if not interval >= 0:
            raise ValueError(f"interval must be seconds >= 0, not {interval!r}")
        self.path = os.path.abspath(os.fspath(path))
        self.interval = interval
        self.error: Exception | None = None
        self._cache = weakref.ref(cache)
        self._pid = os.getpid()
        self._ended = threading.Event()
        self._saved = (-1, -1)
        self._save(cache)
        self._thread = threading.Thread(target=self._run, name="rdmeta-publisher", daemon=True)
        self._thread.start()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._ended.is_set() else f"version={self._saved[0]}"
        return f"<rdmeta.Publisher {self.path!r} {state}>"

    @property
    def version(self) -> int:
        """The version that the file has."""
        return self._saved[0]

    def close(self) -> None:
        """Publish what is left, and stop; OSError if that did not go.

        The file stays, for whoever reads it. A second time does nothing.
        """
        if self._ended.is_set() or os.getpid() != self._pid:
            return
        self._ended.set()
        self._thread.join()
        cache = self._cache()
        if cache is not None:
            self._save(cache)

    def _save(self, cache: Cache) -> None:
        """Save what the cache says, unless the file says so already. OSError, Error."""
        applied = cache.stats()["applies"]
        image = cache.image()
        if (image.version, applied) != self._saved:
            image.save(self.path)
            self._saved = image.version, applied
        self.error = None

    def _run(self) -> None:
        looked = time.monotonic()
        while not self._ended.is_set():
            cache = self._cache()
            if cache is None:
                return
            changed = cache.wait_change(self._saved[0], _SLICE_S)
            if changed is not None or self.error or time.monotonic() - looked >= _LOOK_S:
                looked = time.monotonic()
                try:
                    self._save(cache)
                except (Error, OSError, MemoryError) as error:
                    self.error = error
                del cache
                self._ended.wait(_RETRY_S if self.error else self.interval)
