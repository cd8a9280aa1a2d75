"""The names that `import rdmeta` has, and the packages that it does not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rdmeta

EXTRAS = ["confluent_kafka", "cffi", "pyarrow", "pyspark", "pandas", "numpy", "click", "rich"]


@pytest.mark.parametrize("name", rdmeta.__all__)
def test_every_name_in_all_exists(name: str) -> None:
    assert getattr(rdmeta, name) is not None
    assert name in dir(rdmeta)


def test_every_public_name_is_in_all() -> None:
    modules = {name for name, value in vars(rdmeta).items() if type(value) is type(rdmeta)}
    public = {name for name in vars(rdmeta) if not name.startswith("_")} - modules
    assert public - {"annotations", "TYPE_CHECKING"} <= set(rdmeta.__all__)


def test_every_exception_is_exported_under_its_own_name() -> None:
    exceptions = {name for name in rdmeta.errors.__all__ if name.endswith("Error")}
    assert exceptions <= set(rdmeta.__all__)
    for name in exceptions:
        assert issubclass(getattr(rdmeta, name), rdmeta.Error)


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        rdmeta.nothing  # noqa: B018


@pytest.mark.parametrize("package", [*EXTRAS, "asyncio", "socket", "ssl"])
def test_import_loads_no_package_of_an_extra_and_no_slow_module(package: str) -> None:
    code = f"import sys, rdmeta; sys.exit({package!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("name", ["config", "Client", "fetch"])
def test_a_name_that_is_imported_on_first_use_needs_no_import_of_its_own(name: str) -> None:
    code = f"import rdmeta; assert rdmeta.{name}.__name__.endswith({name!r}), rdmeta.{name}"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("name", ["compat", "history", "kraft", "metrics", "pipeline", "spark"])
def test_a_package_of_rdmeta_needs_no_import_of_its_own(name: str) -> None:
    code = f"import rdmeta; assert rdmeta.{name}.__name__ == 'rdmeta.{name}'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_star_import_needs_no_extra() -> None:
    code = "import sys; sys.modules['pyarrow'] = None\nfrom rdmeta import *"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_get_include_returns_the_directory_of_the_header() -> None:
    assert (Path(rdmeta.get_include()) / "rdmeta.h").is_file()
