"""What functions read: a published state, an image, or an error that says what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from answers import apply_topics
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from spark_functions import cache_of
from spark_releases import since
from waiting import until

from rdmeta import Image, MetadataCache, partitions_for
from rdmeta.spark import functions as F


def rows_of(spark: SparkSession, topic: str = "orders") -> DataFrame:
    return spark.range(0, 8, 1, 2).select(sf.lit(topic).alias("topic"), sf.lit(0).alias("p"))


def leaders(rows: DataFrame, state: F.Shared | None = None, unknown: str = "null") -> set[object]:
    column = F.leader_of("topic", "p", state=state, unknown=unknown)
    return {row.leader for row in rows.select(column.alias("leader")).collect()}


@pytest.mark.slow
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


@pytest.mark.slow
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


@since("4.1")
@pytest.mark.slow
def test_a_null_without_a_type_gives_a_null_and_so_does_any_number(spark: SparkSession) -> None:
    state = F.share(spark, cache_of({"orders": [1]}), name="nulls")
    none, topic = sf.lit(None), sf.lit("orders")
    numbers = [sf.lit(each) for each in (1 << 40, -(1 << 40), (1 << 31) - 1, -1)]
    pairs = [(none, sf.lit(0)), (topic, none), *((topic, number) for number in numbers)]
    columns = [F.leader_of(*pair, state=state) for pair in pairs]
    columns += [F.rack_of(each, state=state) for each in (none, *numbers)]
    columns += [F.partition_for(*pair, state=state) for pair in ((none, topic), (topic, none))]
    rows = spark.range(2)
    assert {value for row in rows.select(*columns).collect() for value in row} == {None}
    assert F.repartition_by_leader(rows, 2, topic=none, key=none, state=state).count() == 2


@pytest.mark.slow
def test_a_job_without_an_image_says_what_to_call(spark: SparkSession, tmp_path: Path) -> None:
    said = "has no image 'never', and nothing is published at .*/none: call rdmeta.spark.functions"
    with pytest.raises(PySparkException, match=said):
        leaders(rows_of(spark), F.Shared("never", str(tmp_path / "none")))


@pytest.fixture(params=["true", "false"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Sets whether Spark casts by the rules of ANSI."""
    before = spark.conf.get("spark.sql.ansi.enabled") or "true"
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    spark.conf.set("spark.sql.ansi.enabled", before)


@since("4.1")
@pytest.mark.slow
@pytest.mark.usefixtures("ansi")
@pytest.mark.parametrize("wrong", ["i", "d", "b", "n"])
def test_columns_of_wrong_types_fail_when_the_plan_is_made(spark: SparkSession, wrong: str) -> None:
    F.share(spark, cache_of({"orders": [1]}))
    kinds = "t string, i int, l bigint, d double, b boolean, n binary"
    rows = spark.createDataFrame([], kinds)
    columns = [F.leader_of(wrong, "i"), F.partition_for("t", wrong)]
    if wrong != "i":
        columns += [F.leader_of("t", wrong), F.rack_of(wrong)]
    if wrong != "n":
        columns.append(F.partition_for(wrong, "t"))
    for column in columns:
        with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
            rows.select(column)
    for topic, partition in ((wrong, "i"), ("t", "t")):
        with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
            F.repartition_by_leader(rows, 2, topic=topic, partition=partition)
    F.repartition_by_leader(rows, 2, topic="t", key="n", partition="l").collect()


@since("4.1")
@pytest.mark.slow
def test_plans_and_columns_have_the_names_of_the_functions(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    F.share(spark, cache_of({"orders": [1]}))
    rows = rows_of(spark)
    leader = F.leader_of("topic", sf.col("p"))
    found = rows.select(leader, F.rack_of(leader), F.partition_for("topic", sf.lit("orders")))
    assert found.columns == [
        "leader_of(topic, p)", "rack_of(leader_of(topic, p))", "partition_for(topic, 'orders')",
    ]  # fmt: skip
    topic, number = sf.concat("topic", sf.lit(" AS ")), sf.col("p").cast("long")
    assert rows.select(F.leader_of(topic, number)).columns == [
        "leader_of(concat(topic, ' AS '), CAST(p AS BIGINT))"
    ]
    found.explain()
    F.repartition_by_leader(rows, 2).explain()
    shown = capsys.readouterr().out
    assert "[leader_of(orders, 0)" in shown
    assert "route_by_leader(orders, " in shown
    assert "CASE WHEN" not in shown


@pytest.mark.slow
def test_sql_calls_functions_that_are_registered(spark: SparkSession) -> None:
    state = F.share(spark, cache_of({"orders": [1, 2]}), name="sql")
    F.register(spark, state=state)
    rows_of(spark).createOrReplaceTempView("rows_of_sql")
    found = spark.sql(
        "SELECT rdmeta_leader_of(topic, p) AS leader, rdmeta_rack_of(2) AS rack,"
        " rdmeta_partition_for('21', topic) AS partition FROM rows_of_sql"
    )
    partition = partitions_for([b"21"], 2)[0]
    assert {tuple(row) for row in found.collect()} == {(1, "b", partition)}
    with pytest.raises(ValueError, match="'null' or 'error', not 'x'"):
        F.register(spark, unknown="x")


@pytest.mark.slow
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


@pytest.mark.slow
def test_functions_read_the_newest_image_by_default(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "state"
    cache_of({"orders": [4]}).image().save(path)
    for leader in (1, 2):
        F.share(spark, cache_of({"orders": [leader]}), published=path)
        assert leaders(rows_of(spark)) == {leader}
    with pytest.raises(TypeError, match="what share.. returns, not str"):
        F.leader_of("topic", "p", state="default")  # type: ignore[arg-type]


@pytest.mark.slow
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
