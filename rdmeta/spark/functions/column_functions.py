"""Functions of columns: the leader of a partition, the rack of a broker, the partition of a key.

They are Arrow UDFs. Spark sends their code along, which says so where rdmeta is missing or has
another version. All else is imported on the executor.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as sf

from rdmeta._version import __version__
from rdmeta.spark.functions.sharing import Shared, chosen
from rdmeta.spark.spark_versions import has_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, SparkSession


class _Function(NamedTuple):
    """A function: its name, what it is on a worker, the types that it takes, and its own."""

    name: str
    what: str
    takes: tuple[str, ...]
    returns: str


_LEADER = _Function("leader_of", "leaders", ("string", "bigint"), "int")
_RACK = _Function("rack_of", "racks", ("bigint",), "string")
_PARTITION = _Function("partition_for", "partitions", ("binary", "string"), "int")
_PARTITIONERS = ("murmur2", "crc32")
_UNKNOWN = ("null", "error")


def leader_of(
    topic: Column | str,
    partition: Column | str,
    *,
    state: Shared | None = None,
    unknown: str = "null",
) -> Column:
    """Returns the broker that leads a partition, as int.

        df.withColumn("leader", F.leader_of("topic", "partition"))

    The column is called `leader_of(topic, partition)`. A column of another type fails the plan. It
    is null for a null, for a partition without a leader, and for an unknown topic or partition.
    With `unknown="error"` an unknown one fails the job. `state` is what share() returned. The job
    fails if an executor has no image and no published state.
    """
    return _column(_LEADER, [topic, partition], state, unknown)


def rack_of(broker: Column | str, *, state: Shared | None = None, unknown: str = "null") -> Column:
    """Returns the rack of a broker, as string.

        df.withColumn("rack", F.rack_of(F.leader_of("topic", "partition")))

    It is null for a null, for a broker without a rack, and for an unknown broker. The other
    arguments are those of leader_of().
    """
    return _column(_RACK, [broker], state, unknown)


def partition_for(
    key: Column | str,
    topic: Column | str,
    partitioner: str = "murmur2",
    *,
    state: Shared | None = None,
    unknown: str = "null",
) -> Column:
    """Returns the partition that a producer puts a record with this key into, as int.

        df.withColumn("partition", F.partition_for("key", "topic"))

    `key` is binary, or a string, whose UTF-8 counts. `partitioner` is "murmur2" (Java's producer,
    so also Spark's own sink) or "crc32" (librdkafka's default). A null key gives null: its
    producer may choose any partition. So does an empty key with "crc32". An unknown topic gives
    null. The other arguments are those of leader_of().
    """
    if partitioner not in _PARTITIONERS:
        raise ValueError(f"partitioner must be 'murmur2' or 'crc32', not {partitioner!r}")
    return _column(_PARTITION, [key, topic], state, unknown, partitioner)


def register(spark: SparkSession, *, state: Shared | None = None, unknown: str = "null") -> None:
    """Lets SQL of a session call the functions, by names that begin with `rdmeta_`.

        F.register(spark)
        spark.sql("SELECT rdmeta_leader_of(topic, partition) FROM rows")

    They are rdmeta_leader_of(topic, partition), rdmeta_rack_of(broker) and
    rdmeta_partition_for(key, topic), which is Java's. The other arguments are those of leader_of().
    """
    for each, more in ((_LEADER, ()), (_RACK, ()), (_PARTITION, ("murmur2",))):
        arguments = (*_checked(state, unknown), *more)
        name = f"rdmeta_{each.name}"
        values: list[str | None] = [None] * len(each.takes)
        udf = _udf("row_lookups", each.what, each.returns, arguments, values, name)
        spark.udf.register(name, udf)


def typed(column: Column | str, kind: str) -> Column:
    """Returns a column that does not get into a plan unless it is of a type, or a null.

    `kind` is string, bigint for whole numbers of any size, or binary, which strings are as well.
    Spark checks all branches of a condition, and then leaves out those that cannot be reached.
    """
    column = sf.col(column) if isinstance(column, str) else column
    if kind != "bigint" and literal_of(column) is not None:
        return column
    if kind == "binary":
        checked = sf.md5(column)  # unlike a cast it takes no number, also without ANSI's rules
    else:
        checked = sf.get(sf.array_append(sf.array().cast(f"array<{kind}>"), column), sf.lit(0))
    if kind == "bigint":
        checked = checked.bitwiseAND(sf.lit(-1))
    return sf.when(sf.lit(True), column).when(checked.isNull(), column)


def _column(
    function: _Function,
    columns: list[Column | str],
    state: Shared | None,
    unknown: str,
    *more: object,
) -> Column:
    arguments = (*_checked(state, unknown), *more)
    given = [typed(column, kind) for column, kind in zip(columns, function.takes, strict=True)]
    made = on_executors(
        "row_lookups", function.what, function.returns, arguments, given, function.name
    )
    return made.alias(f"{function.name}({', '.join(map(_name_of, columns))})")


def _checked(state: Shared | None, unknown: str) -> tuple[object, ...]:
    """Returns the arguments that functions have in common; raises ValueError or TypeError."""
    if unknown not in _UNKNOWN:
        raise ValueError(f"unknown must be 'null' or 'error', not {unknown!r}")
    return (*chosen(state), unknown)


def _name_of(column: Column | str) -> str:
    """Returns how a column is called, as far as Spark shows it in few words."""
    if isinstance(column, str):
        return column
    shown = re.sub(r"^Column<'(.*)'>$", r"\1", str(column), flags=re.S)
    before, _, alias = shown.rpartition(" AS ")
    if before.count("(") == before.count(")") and before.count("'") % 2 == 0:
        shown = alias  # and no cast, nor a part of a text
    return shown.strip("`") if len(shown) <= 60 else "..."


def on_executors(
    module: str,
    what: str,
    kind: str,
    arguments: tuple[object, ...],
    columns: Sequence[Column],
    name: str,
) -> Column:
    """Returns a column that a function of a module of this package makes of other columns.

    `kind` is its type in Spark's words, and `name` its name in plans. The function gets Arrow
    arrays, and then `arguments`. A string of lit() does not travel with each row: executors make a
    column of it.
    """
    values = [literal_of(column) for column in columns]
    if all(value is not None for value in values):
        values[-1] = None  # the rows must have one column, which says how many there are
    sent = [column for column, value in zip(columns, values, strict=True) if value is None]
    column: Column = _udf(module, what, kind, arguments, values, name)(*sent)
    return column


def _udf(
    module: str,
    what: str,
    kind: str,
    arguments: tuple[object, ...],
    values: list[str | None],
    name: str,
) -> Any:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa
    from pyspark.sql.pandas import functions

    has_arrow = has_spark("4.1")
    function = _shipped(module, what, arguments, values, has_arrow)
    # Spark reads from the types of a function what it takes.
    taken = pa.Array if has_arrow else pd.Series
    function.__annotations__ = {"columns": taken, "return": taken}
    function.__name__ = name
    udf: Any = functions.arrow_udf if has_arrow else functions.pandas_udf
    return udf(function, kind)


def literal_of(column: Column | str) -> str | None:
    """Returns the string that lit() made a column of; None for any other column.

    Spark does not tell this officially. Where it cannot be seen, the column is as any other.
    """
    if isinstance(column, str):
        return None
    classic: Any = getattr(column, "_jc", None)
    connect: Any = getattr(column, "_expr", None)
    value: object = None
    with contextlib.suppress(Exception):
        if type(connect).__name__ == "LiteralExpression":
            value = connect._value
        elif classic is not None and classic.node().getClass().getSimpleName() == "Literal":
            value = classic.node().value()
    return value if isinstance(value, str) else None


def _shipped(
    module: str,
    what: str,
    arguments: tuple[object, ...],
    values: list[str | None],
    has_arrow: bool = True,
) -> Callable[..., pa.Array]:
    """Returns what calls a function on an executor. Its code has no name of rdmeta.

    `values` has a string for each column that is this string, and None for one of the rows.
    Without `has_arrow` it takes and returns Series of pandas, as Spark 4.0 gives them.
    """
    version = __version__

    def called(*columns: Any) -> Any:
        import importlib
        import socket

        import pyarrow as pa

        problem = None
        try:
            from rdmeta._version import __version__ as found

            if found != version:
                problem = f"has rdmeta {found}, and the driver {version}"
        except ImportError as error:
            problem = f"cannot import rdmeta: {error}"
        if problem is not None:
            advice = f"install rdmeta[arrow]=={version} for its Python"
            raise RuntimeError(f"executor {socket.gethostname()} {problem}; {advice}")
        if not has_arrow:  # whole numbers with nulls are floats there
            given = (pa.array(each, from_pandas=True) for each in columns)
            columns = tuple(
                each.cast(pa.int64()) if pa.types.is_floating(each.type) else each for each in given
            )
        rows, rest = len(columns[0]), iter(columns)
        whole = [next(rest) if value is None else pa.repeat(value, rows) for value in values]
        functions = importlib.import_module(f"rdmeta.spark.functions.{module}")
        found = getattr(functions, what)(*whole, *arguments)
        return found if has_arrow else found.to_pandas()

    return called
