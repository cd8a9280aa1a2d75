"""Tables made of recorded history on Spark: who led what, from when to when."""

from __future__ import annotations

from rdmeta.spark.session import NoJavaError, build_session, find_java

__all__ = ["NoJavaError", "build_session", "find_java"]
