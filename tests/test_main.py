"""`python -m rdmeta` prints the flags that compilers need."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import rdmeta
from rdmeta.__main__ import main


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that stands for librdmeta's, with a name that a shell must quote."""
    made = tmp_path / "a dir"
    made.mkdir()
    monkeypatch.setattr(rdmeta, "get_library", lambda: str(made))
    return made


def test_flags_are_printed_on_one_line(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cflags", "--libs"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert shlex.split(printed) == [
        f"-I{rdmeta.get_include()}",
        f"-L{library}",
        f"-Wl,-rpath,{library}",
        "-lrdmeta",
    ]


def test_the_static_library_is_named_by_its_path(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--libs", "--static"]) == 0
    assert shlex.split(capsys.readouterr().out) == [str(library / "librdmeta.a"), "-pthread"]


def test_the_directory_for_pkg_config_is_printed(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--pkgconfigdir"]) == 0
    assert shlex.split(capsys.readouterr().out) == [str(library / "pkgconfig")]


@pytest.mark.parametrize("arguments", [[], ["--static"], ["--nothing"], ["x"]])
def test_a_usage_error_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_end_with_0(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option])
    assert ended.value.code == 0
    assert ("--cflags" if option == "--help" else rdmeta.__version__) in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--help", "--version", "--cflags"])
def test_a_closed_stdout_is_an_error(option: str) -> None:
    words = [sys.executable, "-m", "rdmeta", option]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.endswith("error: stdout is closed\n")


def test_a_library_that_is_not_built_is_an_error_that_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rdmeta, "_HERE", str(tmp_path / "rdmeta"))
    monkeypatch.setattr(rdmeta, "_TREE", str(tmp_path))
    with pytest.raises(rdmeta.Error, match="make librdmeta"):
        rdmeta.get_library()
    with pytest.raises(SystemExit) as ended:
        main(["--libs"])
    assert ended.value.code == 2
    assert "make librdmeta" in capsys.readouterr().err


def test_a_word_is_a_command_of_rdmeta() -> None:
    words = [sys.executable, "-m", "rdmeta", "list", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "rdmeta list" in done.stdout
