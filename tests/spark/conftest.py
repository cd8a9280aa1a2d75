"""One Spark session for all tests in this folder, which are skipped without Java."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from rdmeta.spark import NoJavaError, build_session, find_java


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test that uses the session as `spark`, and gives it time for a JVM."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(180))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(str(error))
    session = build_session("local[2]", app="rdmeta-tests", short=True)
    yield session
    session.stop()
