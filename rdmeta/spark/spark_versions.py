"""What an older Spark lacks: the version that has it, and the error that says so.

rdmeta.spark works in Spark 4.0 and later. What a release does not have is refused by
`require_spark`, or done without where the rows are the same: docs/spark.md has the list.
"""

from __future__ import annotations

from rdmeta.errors import Error


class OldSparkError(Error):
    """This Spark lacks what was asked for; the text says which release has it."""


def has_spark(release: str) -> bool:
    """Returns whether this process's Spark is of a release, such as 4.1, or a later one."""
    import pyspark

    return _number(pyspark.__version__) >= _number(release)


def require_spark(release: str, what: str) -> None:
    """Raises OldSparkError for an older Spark; `what` is what needs the release."""
    import pyspark

    if not has_spark(release):
        raise OldSparkError(
            f"{what} needs Spark {release} or later, and this is {pyspark.__version__}"
        )


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
