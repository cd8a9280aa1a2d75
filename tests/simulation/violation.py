"""The exception of a failed check, and the constants that checks share."""

from __future__ import annotations

# Times are compared with this tolerance, in seconds: the cache counts microseconds.
EPSILON = 2e-6
# The jitter of every wait.
JITTER = 0.2


class Violation(AssertionError):
    """An invariant does not hold."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule, self.text = rule, text
