"""Spark's Java is looked for as Spark's own start script does."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdmeta.errors import Error
from rdmeta.spark import NoJavaError, find_java


def test_java_is_looked_for_as_spark_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == str(java)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(NoJavaError, match="no java on the PATH") as caught:
        find_java()
    assert isinstance(caught.value, Error)
