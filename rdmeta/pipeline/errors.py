"""The errors of the pipeline."""

from __future__ import annotations

from rdmeta.errors import Error


class PipelineError(Error, ValueError):
    """An input or an output folder cannot be used; the text says why, and what to do."""


class LockedError(PipelineError):
    """Another run works on the output folder."""


class CommitLostError(PipelineError):
    """Another program has written to OUT since this run has read it, so the run plans again."""


class BadFileError(PipelineError):
    """One input file is damaged; the pipeline sets it aside and goes on.

    `path` is its path as the plan has it, `reason` is why.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason

    def __reduce__(self) -> tuple[type[BadFileError], tuple[str, str]]:
        return BadFileError, (self.path, self.reason)
