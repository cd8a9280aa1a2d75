"""One Spark session for every test here; without Java they are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from rdmeta.spark import NoJavaError, build_session, find_java


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything that takes the session is marked `spark`, and may take a JVM's time."""
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
