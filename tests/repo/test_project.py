"""The project's files agree with each other: pins, workflows, flags, notices, tools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def pins() -> dict[NormalizedName, str]:
    """Returns the version of each package that constraints.txt pins for this Python."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        requirement = None if line.startswith("#") else Requirement(line)
        if requirement and (requirement.marker is None or requirement.marker.evaluate()):
            (specifier,) = requirement.specifier
            assert specifier.operator == "==", line
            found[canonicalize_name(requirement.name)] = specifier.version
    return found


def requirements() -> Iterator[Requirement]:
    """Yields the requirements of the build and of the extras."""
    for text in [*PROJECT["build-system"]["requires"], *sum(EXTRAS.values(), [])]:
        requirement = Requirement(text)
        if requirement.name != PROJECT["project"]["name"]:
            yield requirement


def test_every_requirement_has_a_lower_bound_that_its_pin_meets() -> None:
    pinned = pins()
    for requirement in requirements():
        assert any(spec.operator == ">=" for spec in requirement.specifier), requirement
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])


def test_the_installed_packages_are_the_pinned_versions() -> None:
    different = {}
    for name, pin in pins().items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = "not installed"
        if installed != pin:
            different[name] = (installed, pin)
    assert different == {}


def test_the_parts_that_a_passing_c_test_skips_are_printed(tmp_path: Path) -> None:
    outputs = {
        "skips": "  skipped: no such call",
        "says": "  nothing skipped: fine",
        "fails": "why",
    }
    for name, line in outputs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{line}' >&2\nexec test {name} != fails\n")
        (tmp_path / name).chmod(0o755)
    command = [str(ROOT / "tools/run-c-tests"), "10", *(str(tmp_path / name) for name in outputs)]
    environment = {**os.environ, "JOBS": "1"}
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=50, env=environment)
    lines = ran.stdout.replace(f"{tmp_path}/", "").splitlines()
    assert ran.returncode == 1
    assert [line.split(" (")[0].strip() for line in lines] == [
        "ok    skips",
        "skipped: no such call",
        "ok    says",
        "FAIL  fails",
        "why",
        "2 C tests passed, 1 failed",
    ]


def test_c_tests_run_side_by_side_and_each_failure_counts(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a"), ("c", "c")):
        wait = f"until test -e {tmp_path}/{other}.began; do sleep 0.01; done"
        begin = f"touch {tmp_path}/{name}.began; {wait}; test {name} = a"
        (tmp_path / name).write_text(f"#!/bin/sh\n{begin}\n")
        (tmp_path / name).chmod(0o755)
    command = [str(ROOT / "tools/run-c-tests"), "10", *(str(tmp_path / name) for name in "abc")]
    environment = {**os.environ, "JOBS": "2"}
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=50, env=environment)
    lines = [
        line.partition(" (")[0] for line in ran.stdout.replace(f"{tmp_path}/", "").splitlines()
    ]
    assert ran.returncode == 1
    assert sorted(lines[:3]) == ["FAIL  b", "FAIL  c", "ok    a"]
    assert lines[3] == "1 C tests passed, 2 failed"


def test_c_tests_with_threads_run_alone_after_the_others(tmp_path: Path) -> None:
    running = tmp_path / "running"
    for name in ("a_thread", "b", "c_thread", "d"):
        alone = f"test ! -e {running} && " if "thread" in name else ""
        program = f"#!/bin/sh\n{alone}touch {running} && sleep 0.2 && rm -f {running}\n"
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)
    command = [str(ROOT / "tools/run-c-tests"), "10", *map(str, sorted(tmp_path.iterdir()))]
    environment = {**os.environ, "JOBS": "4"}
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=50, env=environment)
    names = [line.split(" (")[0][-8:] for line in ran.stdout.splitlines()]
    assert (names[2:4], ran.returncode) == (["a_thread", "c_thread"], 0)


LISTS = ("C_HEADERS", "C_PUBLIC", "C_SUPPORT", "C_TESTS", "C_BENCHES", "FUZZ_TARGETS")


@pytest.mark.parametrize(
    "files", ["C_OWN", *(pytest.param(files, marks=pytest.mark.slow) for files in LISTS)]
)
def test_lint_fails_where_it_finds_no_files(files: str) -> None:
    command = ["make", "-n", "lint-c", f"{files}="]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert ran.returncode != 0
    assert f"{files} is empty: there is nothing to check" in ran.stderr


def test_importing_rdmeta_needs_no_extra() -> None:
    modules = ["aiokafka", "cffi", "click", "confluent_kafka", "duckdb", "kafka", "numpy"]
    modules += ["pandas", "polars", "pyarrow", "pyspark", "rich"]
    program = f"import sys; sys.modules.update(dict.fromkeys({modules}))\n"
    program += "import rdmeta; rdmeta.MetadataCache()"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=50)


def test_vendored_files_have_the_checksums_of_their_readme() -> None:
    vendored = ROOT / "csrc/vendor/nanoarrow"
    readme = (vendored / "README.md").read_text(encoding="utf-8")
    for name in ("nanoarrow.c", "nanoarrow.h"):
        assert f"`{sha256((vendored / name).read_bytes()).hexdigest()}` {name}" in readme
    (release,) = re.findall(r"# nanoarrow (\S+)", readme)
    assert f'#define NANOARROW_VERSION "{release}"' in (vendored / "nanoarrow.h").read_text()
    assert f"nanoarrow {release}" in (ROOT / "NOTICE").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["RDMETA_CFLAGS", "RDMETA_LDFLAGS", "RDMETA_WARNINGS"])
def test_no_other_file_defines_the_compiler_flags(name: str) -> None:
    files = [
        path.name
        for path in (ROOT / "csrc/flags.mk", ROOT / "Makefile", ROOT / "setup.py")
        if f"{name} =" in path.read_text(encoding="utf-8")
    ]
    assert files == ["flags.mk"]


def test_the_flags_ask_for_no_more_than_the_baseline_of_the_architecture() -> None:
    lines = (ROOT / "csrc/flags.mk").read_text(encoding="utf-8").splitlines()
    words = [word for line in lines if not line.startswith("#") for word in line.split()]
    assert "-O2" in words
    assert [word for word in words if word.startswith("-m")] == []


def test_a_page_that_is_behind_is_named_and_not_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    generated = import_module("generated")
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generated, "TOOLS", ())
    monkeypatch.setattr(generated, "pages", lambda: {tmp_path / "page.md": "new"})
    assert generated.main(["--check"]) == 1
    assert capsys.readouterr().out.startswith("page.md is behind\nrun ")
    assert not (tmp_path / "page.md").exists()
    assert (generated.main([]), generated.main(["--check"])) == (0, 0)
