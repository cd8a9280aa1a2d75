"""What a command waits for in its main thread, where a signal may come at any moment."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Wake:
    """An event that other threads set, and for which the main thread waits.

    SIGTERM and Ctrl-C raise an exception between any two steps of Python code. threading.Event
    takes and releases its lock there, so it may be left locked, and the next wait() or set() never
    returns. The locks of a SimpleQueue are C's.
    """

    def __init__(self) -> None:
        self._settings: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Ends the wait that runs, or the next one."""
        if self._settings.empty():
            self._settings.put(None)

    def wait(self, timeout: float) -> bool:
        """Returns whether it is set, or is within `timeout` seconds; then it is set no more."""
        try:
            self._settings.get(timeout=timeout)
        except Empty:
            return False
        return True
