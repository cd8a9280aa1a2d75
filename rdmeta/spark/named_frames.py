"""DataFrames by name, each made when it is asked for first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NamedFrames:
    """The DataFrames of `names`, as attributes of these names."""

    names: tuple[str, ...] = ()

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._made: dict[str, DataFrame] = {}

    def __getattr__(self, name: str) -> DataFrame:
        if name not in self.names:
            expected = ", ".join(self.names)
            raise AttributeError(f"there is no table {name!r}: expected one of {expected}")
        if name not in self._made:
            self._made[name] = self.make(name)
        return self._made[name]

    def make(self, name: str) -> DataFrame:
        """Returns the DataFrame of a name."""
        raise NotImplementedError

    def create_views(self, prefix: str) -> None:
        """Creates or replaces a temporary view for each DataFrame: `prefix`, "_" and its name.

        Raises ValueError for a prefix with which no name of SQL begins.
        """
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(f"prefix {prefix!r}: expected letters, digits and _, such as 'rdmeta'")
        for name in self.names:
            getattr(self, name).createOrReplaceTempView(f"{prefix}_{name}")
