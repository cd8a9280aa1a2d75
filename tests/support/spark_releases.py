"""Tests of what not every release of Spark has: RDMETA_PYSPARK runs them in an older one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rdmeta.spark.spark_versions import has_spark

LIMITS = ("maxFilesPerTrigger", "maxRowsPerTrigger", "failOnDataLoss")


def since(release: str) -> pytest.MarkDecorator:
    """Returns a mark that skips a test in an older Spark."""
    return pytest.mark.skipif(not has_spark(release), reason=f"needs Spark {release}")


def skip_limits(options: Mapping[str, str]) -> None:
    """Skips a test if this Spark refuses an option of its stream."""
    if not has_spark("4.2") and any(name in options for name in LIMITS):
        pytest.skip("limits of a stream need Spark 4.2")
