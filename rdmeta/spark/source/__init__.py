"""The data source `rdmeta` of Spark: clusters, images and recorded history as tables.

    spark.read.format("rdmeta").option("path", "history").option("table", "changes").load()

It registers itself, by the module `pyspark_rdmeta`. docs/spark.md has its tables and options.
"""

from __future__ import annotations

from typing import Any

from rdmeta.errors import MissingExtraError

# These checks come before the modules that use the packages, so that they need none.
try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark.source", "spark") from error
try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark.source", "spark") from error

from rdmeta.spark.source.options import Options
from rdmeta.spark.source.schemas import columns_of, spark_schema

__all__ = ["DefaultSource"]


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
        from rdmeta.spark.source.pushdown import PushReader
        from rdmeta.spark.source.reader import Reader

        options = self._taken()
        kind = PushReader if options.pushdown else Reader
        return kind(options, columns_of(options.table, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns the reader of a stream of changes; raises ConfigError."""
        from rdmeta.spark.source.streaming import StreamReader

        options = self._taken()
        return StreamReader(options, columns_of(options.table, schema))

    def _taken(self) -> Options:
        """Returns the options, and forgets them.

        Spark sends this object to each task together with its reader. No task needs a credential.
        """
        options = Options.parse(self.options)
        self.options: Any = {}
        return options
