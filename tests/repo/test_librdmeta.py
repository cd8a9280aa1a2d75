"""librdmeta, for programs without Python: its exports, pkg-config, and installation."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from declarations import declared

ROOT = Path(__file__).resolve().parents[2]
# The first one compiles the whole library.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PROGRAM = r"""
#include <rdmeta.h>
#include <stdio.h>

int main(void) {
        rdmeta_cache_t *cache = rdmeta_cache_new(NULL);
        if (!cache || rdmeta_abi_version() != RDMETA_ABI_VERSION)
                return 1;
        printf("version %llu\n",
               (unsigned long long)rdmeta_cache_version(cache));
        rdmeta_cache_unref(cache);
        return 0;
}
"""


def run(*command: str | Path, **env: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def prefix() -> Path:
    run("make", "librdmeta")
    return ROOT / "build"


def exported(library: Path) -> set[str]:
    rows = run("nm", "-D", "--defined-only", library).splitlines()
    return {row.split()[-1] for row in rows}


def test_the_library_exports_the_public_headers_functions_and_nothing_else(prefix: Path) -> None:
    assert declared()
    assert exported(prefix / "lib/librdmeta.so") == declared()


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_a_program_builds_with_pkg_config_and_runs(
    prefix: Path, tmp_path: Path, static: bool
) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    paths = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "rdmeta", **paths).split()
    if static:
        flags = [str(prefix / "lib/librdmeta.a") if f == "-lrdmeta" else f for f in flags]
        flags.append("-pthread")
    (tmp_path / "program.c").write_text(PROGRAM, encoding="utf-8")
    run("cc", "-std=c11", tmp_path / "program.c", "-o", tmp_path / "program", *flags)
    output = run(tmp_path / "program", LD_LIBRARY_PATH=str(prefix / "lib"))
    assert output == "version 0\n"


def test_pkg_config_for_static_programs_has_none_of_our_own_linker_flags(prefix: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    flags = run(
        "pkg-config", "--static", "--libs", "rdmeta", PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig")
    )
    assert "-pthread" in flags.split()
    assert not [flag for flag in flags.split() if flag.startswith("-Wl")]


def test_make_install_installs_all_that_a_program_needs(prefix: Path, tmp_path: Path) -> None:
    run("make", "install", f"DESTDIR={tmp_path}", "PREFIX=/opt/rdmeta")
    installed = tmp_path / "opt/rdmeta"
    files = {each.relative_to(installed).as_posix() for each in installed.rglob("*.*")}
    headers = {f"include/{path.name}" for path in (ROOT / "csrc/include").glob("*.h")}
    libraries = {f"lib/librdmeta.{end}" for end in ("a", "so", "so.0")}
    assert files == headers | libraries | {"lib/pkgconfig/rdmeta.pc"}
    (tmp_path / "program.c").write_text(PROGRAM, encoding="utf-8")
    flags: list[str | Path] = ["-I", installed / "include", "-L", installed / "lib", "-lrdmeta"]
    run("cc", "-std=c11", tmp_path / "program.c", "-o", tmp_path / "program", *flags)
    assert run(tmp_path / "program", LD_LIBRARY_PATH=str(installed / "lib")) == "version 0\n"
