"""The sdist and the wheel build, install and run outside the source tree.

These tests are slow; `make packaging` runs them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tree_rules import written_files

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command that sees only the pins of this tree; returns its output."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env["PIP_CONSTRAINT"] = str(ROOT / "constraints.txt")
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=540,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies the files that a clone would have: none that is built or ignored."""
    copy = tmp_path_factory.mktemp("source") / "rdmeta"
    for path in written_files(ROOT):
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return copy


@pytest.fixture(scope="module")
def dist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the sdist, and the wheel from it; returns their directory."""
    outdir = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", outdir, source, cwd=outdir)
    return outdir


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


def empty_environment(path: Path) -> Path:
    """Makes a new environment; returns its interpreter."""
    run(sys.executable, "-m", "venv", path, cwd=path.parent)
    return path / "bin" / "python"


def test_a_wheel_built_from_the_sdist_works_without_extras(wheel: Path, tmp_path: Path) -> None:
    python = empty_environment(tmp_path / "env")
    run(python, "-m", "pip", "install", "--no-index", wheel, cwd=tmp_path)
    output = run(python, "-I", ROOT / "tests/repo/installed_use.py", cwd=tmp_path)
    assert "works without extras" in output


def test_pip_installs_a_clone_into_an_empty_environment(source: Path, tmp_path: Path) -> None:
    python = empty_environment(tmp_path / "env")
    run(python, "-m", "pip", "install", source, cwd=tmp_path)
    output = run(python, "-I", ROOT / "tests/repo/installed_use.py", cwd=tmp_path)
    assert "works without extras" in output


def test_the_wheel_contains_headers_declarations_and_types_but_no_sources(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in written_files(ROOT)
        if path.is_relative_to(ROOT / "rdmeta") and path.suffix not in {".pyx", ".pxi"}
    }
    expected.add("pyspark_rdmeta.py")
    expected |= {f"rdmeta/include/{path.name}" for path in (ROOT / "csrc/include").glob("*.h")}
    for essential in (
        "py.typed",
        "_core.pyi",
        "__init__.pxd",
        "include/rdmeta_api.h",
        "cli/output.schema.json",
    ):
        assert f"rdmeta/{essential}" in expected
    assert expected - names == set()
    expected |= {
        f"rdmeta/lib/{name}"
        for name in ("librdmeta.a", "librdmeta.so", "librdmeta.so.0", "pkgconfig/rdmeta.pc")
    }
    (extension,) = {name for name in names - expected if ".dist-info/" not in name}
    assert extension.startswith("rdmeta/_core.")
    assert extension.endswith(".so")


def test_the_wheel_contains_licence_and_notice(wheel: Path) -> None:
    names = {Path(name).name for name in zipfile.ZipFile(wheel).namelist()}
    assert {"LICENSE", "NOTICE"} <= names


def test_the_sdist_contains_all_files_to_build_test_and_measure(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        path.relative_to(ROOT).as_posix()
        for path in written_files(ROOT)
        if path.parts[len(ROOT.parts)] not in {".ci", ".gitignore", ".github"}
    }
    assert needed - names == set()


def test_auditwheel_finds_a_platform_tag_for_the_wheel(wheel: Path, tmp_path: Path) -> None:
    output = run(sys.executable, "-m", "auditwheel", "show", wheel, cwd=tmp_path)
    assert "manylinux" in " ".join(output.split())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installs the wheel and the examples' packages in a new environment; returns its Python."""
    directory = tmp_path_factory.mktemp("installed")
    python = empty_environment(directory / "env")
    packages = ["setuptools", "Cython", "numpy", "kafka-python", "polars", "duckdb"]
    run(python, "-m", "pip", "install", f"{wheel}[kafka,cffi,arrow]", *packages, cwd=directory)
    return python


def test_the_readmes_programs_find_the_package_after_the_install_lines(
    installed: Path, source: Path
) -> None:
    """Runs the lines after `pip install` in a clone, and then the program with its own cluster."""
    text = (source / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.S | re.M)
    shell = next(block for language, block in blocks if "\npip install " in block)
    end = [language for language, _ in blocks].index("text")
    (_, program), (_, shown) = blocks[end - 1 : end + 1]
    then = shell.partition("\npip install ")[2].splitlines()[1:]
    script = "\n".join([*then, f"{installed} - <<'END'", f"{program}END"])
    assert run("bash", "-ec", script, cwd=source) == shown


PROGRAM = """
#include <rdmeta.h>
int main(void) {
        rdmeta_cache_t *cache = rdmeta_cache_new(NULL);
        int ok = cache && rdmeta_abi_version() == RDMETA_ABI_VERSION;
        rdmeta_cache_unref(cache);
        return !ok;
}
"""


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_a_c_program_builds_with_the_flags_that_the_installed_package_prints(
    installed: Path, tmp_path: Path, static: bool
) -> None:
    (tmp_path / "program.c").write_text(PROGRAM, encoding="utf-8")
    options = ["--cflags", "--libs", *(["--static"] if static else [])]
    flags = run(installed, "-I", "-m", "rdmeta", *options, cwd=tmp_path).split()
    assert any("site-packages" in flag for flag in flags)
    run("cc", "-std=c11", "-Wall", "-Werror", "program.c", "-o", "program", *flags, cwd=tmp_path)
    run(tmp_path / "program", cwd=tmp_path)


def test_a_c_program_builds_with_pkg_config_of_the_installed_package(
    installed: Path, tmp_path: Path
) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    (tmp_path / "program.c").write_text(PROGRAM, encoding="utf-8")
    path = run(installed, "-I", "-m", "rdmeta", "--pkgconfigdir", cwd=tmp_path).strip()
    options = [f"--with-path={path}", "--cflags", "--libs", "--static", "rdmeta"]
    flags = run("pkg-config", *options, cwd=tmp_path).split()
    assert "-lrdmeta" in flags
    run("cc", "-std=c11", "program.c", "-o", "program", *flags, cwd=tmp_path)


EXAMPLES = sorted(
    path.name
    for path in (ROOT / "examples").iterdir()
    if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.c"))) or path.name == "cython"
)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="that setuptools is of older Pythons")
@pytest.mark.parametrize("example", ["c_extension", "cython"])
def test_an_extension_builds_with_the_oldest_setuptools_that_it_names(
    installed: Path, tmp_path: Path, example: str
) -> None:
    copy = shutil.copytree(ROOT / "examples" / example, tmp_path / example)
    text = (copy / "pyproject.toml").read_text(encoding="utf-8")
    (oldest,) = re.findall(r'"setuptools>=([\d.]+)"', text)
    target = tmp_path / "oldest"
    free = ("env", "-u", "PIP_CONSTRAINT", f"PYTHONPATH={target}", installed)
    run(*free, "-m", "pip", "install", "--target", target, f"setuptools=={oldest}", cwd=copy)
    run(*free, "setup.py", "build_ext", "--inplace", cwd=copy)
    run(installed, "use.py", cwd=copy)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs_against_the_installed_wheel(
    installed: Path, tmp_path: Path, example: str
) -> None:
    if example.endswith(".py"):
        shutil.copy2(ROOT / "examples" / example, tmp_path)
        run(installed, example, cwd=tmp_path)
        return
    copy = shutil.copytree(ROOT / "examples" / example, tmp_path / example)
    if (copy / "setup.py").exists():
        run(installed, "setup.py", "build_ext", "--inplace", cwd=copy)
        run(installed, "use.py", cwd=copy)
    else:
        run("make", f"PYTHON={installed}", "run", cwd=copy)
