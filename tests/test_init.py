"""What `import rdmeta` gives, and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rdmeta

EXTRAS = ["confluent_kafka", "cffi", "pyarrow", "pyspark", "pandas", "numpy", "click", "rich"]


@pytest.mark.parametrize("name", rdmeta.__all__)
def test_every_name_that_is_promised_is_there(name: str) -> None:
    assert getattr(rdmeta, name) is not None
    assert name in dir(rdmeta)


def test_nothing_public_is_there_that_is_not_promised() -> None:
    modules = {name for name, value in vars(rdmeta).items() if type(value) is type(rdmeta)}
    public = {name for name in vars(rdmeta) if not name.startswith("_")} - modules
    assert public - {"annotations", "TYPE_CHECKING"} <= set(rdmeta.__all__)


def test_every_exception_is_there_under_its_own_name() -> None:
    exceptions = {name for name in rdmeta.errors.__all__ if name.endswith("Error")}
    assert exceptions <= set(rdmeta.__all__)
    for name in exceptions:
        assert issubclass(getattr(rdmeta, name), rdmeta.Error)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        rdmeta.nothing  # noqa: B018


@pytest.mark.parametrize("package", [*EXTRAS, "asyncio", "socket", "ssl"])
def test_import_brings_no_package_of_an_extra_and_nothing_slow(package: str) -> None:
    code = f"import sys, rdmeta; sys.exit({package!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_header_is_where_it_is_said_to_be() -> None:
    assert (Path(rdmeta.get_include()) / "rdmeta.h").is_file()
