"""What functions read: a published state, an image, or an error that says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from answers import apply_topics
from processes import environment
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from spark_functions import cache_of
from waiting import until

from rdmeta import Image, MetadataCache
from rdmeta._version import __version__
from rdmeta.spark import functions as F
from rdmeta.spark.functions.columns import _shipped
from rdmeta.spark.functions.sharing import chosen

# Spark's worker runs the function like this; `{rdmeta}` is the code that sets up rdmeta there.
EXECUTOR = """
import pickle, sys
import pyarrow as pa
{rdmeta}
called = pickle.loads(sys.stdin.buffer.read())
try:
    print(called(pa.array([1])))
except Exception as error:
    print(error)
"""


def rows_of(spark: SparkSession, topic: str = "orders") -> DataFrame:
    return spark.range(0, 8, 1, 2).select(sf.lit(topic).alias("topic"), sf.lit(0).alias("p"))


def leaders(rows: DataFrame, state: F.Shared | None = None, unknown: str = "null") -> set[object]:
    column = F.leader_of("topic", "p", state=state, unknown=unknown)
    return {row.leader for row in rows.select(column.alias("leader")).collect()}


def test_a_state_that_the_host_publishes_is_taken_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, rows = tmp_path / "state", rows_of(spark)
    state = F.share(spark, cache_of({"orders": [4]}), name="published", published=path)
    assert state == F.Shared("published", str(path))
    assert leaders(rows, state) == {4}
    cache = MetadataCache()
    apply_topics(cache)
    with cache.publish(path) as publisher:
        for leader in (1, 2):
            apply_topics(cache, leader, leader)
            until(lambda: publisher.version == cache.version)
            assert leaders(rows, state) == {leader}
        assert leaders(rows, F.Shared("never_shared", str(path))) == {2}
    path.unlink(missing_ok=True)


def test_an_unknown_topic_is_null_or_an_error(spark: SparkSession) -> None:
    state = F.share(spark, cache_of({"orders": [1, -1]}), name="unknown")
    assert leaders(rows_of(spark, "nope"), state) == {None}
    assert leaders(rows_of(spark).select("topic", sf.lit(1).alias("p")), state, "error") == {None}
    with pytest.raises(PySparkException, match="topic 'nope' is not in the state .* NOT_CACHED"):
        leaders(rows_of(spark, "nope"), state, "error")
    with pytest.raises(PySparkException, match="broker 9 is not in the state"):
        spark.range(1).select(F.rack_of(sf.lit(9), state=state, unknown="error")).collect()
    found = spark.range(1).select(F.rack_of(sf.lit(9), state=state).alias("rack")).collect()
    assert [row.rack for row in found] == [None]


def test_a_job_without_an_image_says_what_to_call(spark: SparkSession, tmp_path: Path) -> None:
    said = "has no image 'never', and nothing is published at .*/none: call rdmeta.spark.functions"
    with pytest.raises(PySparkException, match=said):
        leaders(rows_of(spark), F.Shared("never", str(tmp_path / "none")))


def test_a_key_that_is_neither_binary_nor_a_string_fails_the_job(spark: SparkSession) -> None:
    F.share(spark, cache_of({"orders": [1]}))
    with pytest.raises(PySparkException, match="must hold binary or strings, not Arrow's format"):
        spark.range(1).select(F.partition_for("id", sf.lit("orders"))).collect()


def test_what_is_shared_is_an_image_a_cache_or_a_path(spark: SparkSession, tmp_path: Path) -> None:
    cache = cache_of({"orders": [3]})
    cache.image().save(tmp_path / "image")
    for image in (cache, cache.image(), tmp_path / "image", Image.open(tmp_path / "image")):
        assert leaders(rows_of(spark), F.share(spark, image, name="any")) == {3}
    with pytest.raises(TypeError, match="or a path, not int"):
        F.share(spark, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="letters, digits or underscores, not 'a/b'"):
        F.share(spark, cache, name="a/b")
    with pytest.raises(FileNotFoundError):
        F.share(spark, tmp_path / "none")


def test_functions_read_what_was_shared_last_by_default(spark: SparkSession) -> None:
    F.share(spark, cache_of({"orders": [1]}), published="/nowhere/state")
    assert chosen(None) == F.Shared("default", "/nowhere/state")
    F.share(spark, cache_of({"orders": [2]}))
    assert chosen(None) == F.Shared("default", None)
    with pytest.raises(TypeError, match="what share.. returns, not str"):
        F.leader_of("topic", "p", state="default")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.partition_for("key", "topic", "random"), "'murmur2' or 'crc32', not 'random'"),
        (lambda: F.leader_of("topic", "p", unknown="raise"), "'null' or 'error', not 'raise'"),
    ],
)
def test_a_wrong_option_is_refused(spark: SparkSession, call: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()  # type: ignore[operator]


def said(rdmeta: str) -> str:
    """Returns what a process like that says to a column of one row."""
    sent = cloudpickle.dumps(_shipped("looking", "named", (), [None]))  # type: ignore[no-untyped-call]
    words = [sys.executable, "-c", EXECUTOR.format(rdmeta=rdmeta)]
    done = subprocess.run(words, input=sent, capture_output=True, env=environment(), check=True)
    text: bytes = done.stdout
    return text.decode().strip()


def test_an_executor_without_rdmeta_names_itself_and_what_to_install() -> None:
    assert said("") == str(pa.array([1]))
    text = said("sys.modules['rdmeta'] = None")
    assert text.startswith("executor ")
    assert "cannot import rdmeta" in text
    assert text.endswith(f"install rdmeta[arrow]=={__version__} for its Python")


def test_an_executor_with_another_version_names_both() -> None:
    text = said("import rdmeta._version as found; found.__version__ = '0.0.1'")
    assert f"has rdmeta 0.0.1, and the driver {__version__}; install" in text
