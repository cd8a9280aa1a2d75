"""The data source `rdmeta` of Spark: clusters, images and recorded history as tables.

    spark.read.format("rdmeta").option("path", "history").option("table", "changes").load()

It registers itself, by the module `pyspark_rdmeta`. docs/spark.md has its tables and options.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rdmeta.errors import MissingExtraError

# These checks come before the modules that use the packages, so that they need none.
try:
    from pyspark.errors import PySparkException
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark.source", "spark") from error
try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark.source", "spark") from error

from rdmeta.spark.source.options import Options, label
from rdmeta.spark.source.schemas import columns_of, spark_schema
from rdmeta.spark.spark_session import has_secret, hiding_secrets
from rdmeta.spark.spark_versions import has_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DefaultSource", "read"]


class DefaultSource(DataSource):
    """The data source: which table, and how a batch or a stream reads it.

    An error of an option is a ConfigError, which arrives as the text of an AnalysisException.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the name for `format()`."""
        return "rdmeta"

    def schema(self) -> StructType:
        """Returns the columns of the table; raises ConfigError."""
        return spark_schema(Options.parse(self.options).table)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns what plans and reads a batch; raises ConfigError."""
        from rdmeta.spark.source.batch_reader import BatchReader, PushReader

        options = self._parsed_options()
        kind = PushReader if options.pushdown else BatchReader
        return kind(options, columns_of(options.table, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns the reader of a stream of changes; raises ConfigError."""
        from rdmeta.spark.source.streaming import StreamReader
        from rdmeta.spark.source.unlimited_streaming import UnlimitedReader

        options = self._parsed_options()
        kind = StreamReader if has_spark("4.2") else UnlimitedReader
        return kind(options, columns_of(options.table, schema))

    def _parsed_options(self) -> Options:
        """Returns the options, and forgets them.

        Spark sends this object to each task together with its reader. No task needs a credential.
        """
        options = Options.parse(self.options)
        self.options: Any = {}
        return options


def read(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Returns a table of the data source. Its plans show which one, of which source.

        rdmeta.spark.read(spark, {"path": "history", "topic": "orders"}).explain()

    The scan is called `rdmeta: changes of history, topic orders`, as Spark shows of a data source
    in Python its name alone. So this registers the data source by that name in the session, Classic
    or Connect. No other option is in the name. If one is a credential, this also sets
    `spark.sql.redaction.string.regex` of a session of Connect, so that its server's pages hide it.
    Raises ConfigError for a wrong source or table; AnalysisException for another wrong option.
    """
    named = label(options)
    kind = type("NamedSource", (DefaultSource,), {"name": classmethod(lambda _: named)})
    session.dataSource.register(kind)
    if has_secret(options):
        try:
            hiding_secrets(session)
        except PySparkException as error:  # some servers let nobody set it
            warnings.warn(f"the pages of this server may show credentials: {error}", stacklevel=2)
    return session.read.format(named).options(**options).load()
