"""The table of sources, kinds and columns of change records, and the files made from it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rdmeta._change_table import (
    COLUMNS,
    END_KINDS,
    KINDS,
    MADE_BY,
    RECORD_COLUMNS,
    SOURCES,
    STATE_KINDS,
    TYPES,
    WHOLE_KINDS,
)
from rdmeta.history import CHANGE_SCHEMA
from rdmeta.model import Change

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    "csrc/topic/diff_table.h",
    "csrc/include/rdmeta_kinds.h",
    "rdmeta/_capi.pxd",
    "rdmeta/_change_table.py",
    "rdmeta/model.py",
    "tools/change_table.py",
    "tools/generated.py",
]


def write_from_table(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, root / "tools/change_table.py", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_new_kind_and_a_new_column_reach_every_file(tree: Path) -> None:
    table = tree / "rdmeta/_change_table.py"
    last = KINDS[-1].name
    text = table.read_text(encoding="utf-8")
    line = re.search(rf'    Kind\("{last}".*\n', text)
    assert line
    edit(table, line[0], f'{line[0]}    Kind("rack_lost", "", "none"),\n')
    line = re.search(rf'    Column\("{COLUMNS[-1].name}".*\n', text)
    assert line
    edit(table, line[0], f'{line[0]}    Column("racks", "ids", True),\n')
    assert write_from_table(tree, "--check").returncode == 1
    assert write_from_table(tree).returncode == 0
    kinds = (tree / "csrc/include/rdmeta_kinds.h").read_text(encoding="utf-8")
    assert f"RDMETA_RACK_LOST = {len(KINDS)}\n" in kinds
    names = (tree / "csrc/topic/diff_table.h").read_text(encoding="utf-8")
    assert 'X("rack_lost")' in names
    assert "X(racks, IDS)" in names
    assert "RDMETA_RACK_LOST\n" in (tree / "rdmeta/_capi.pxd").read_text(encoding="utf-8")
    model = (tree / "rdmeta/model.py").read_text(encoding="utf-8")
    assert "    racks: tuple[int, ...] | None\n" in model
    assert write_from_table(tree, "--check").returncode == 0


def test_a_list_of_the_abi_grows_only_at_its_end(tree: Path) -> None:
    edit(
        tree / "rdmeta/_change_table.py",
        '    Kind("resync",',
        '    Kind("a", "", "b"),\n    Kind("resync",',
    )
    done = write_from_table(tree)
    assert done.returncode == 1
    assert "only grows" in done.stderr


def test_a_change_has_a_field_per_column_and_parquet_a_column_per_field() -> None:
    assert Change._fields == tuple(column.name for column in RECORD_COLUMNS)
    assert CHANGE_SCHEMA.names == [column.name for column in COLUMNS]


def test_every_kind_has_a_maker_and_a_meaning_of_its_rows() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    assert {by for kind in KINDS for by in kind.made_by} == set(MADE_BY)
    assert {meaning for kind in KINDS for meaning in kind.rows} == {"whole", "part", "end"}
    assert {column.type for column in COLUMNS} <= set(TYPES)
    assert set(WHOLE_KINDS) < set(STATE_KINDS)
    assert set(END_KINDS) & set(STATE_KINDS) == {"topic_recreated"}


def kinds_in(paths: set[Path]) -> set[str]:
    """Returns the kinds that are named in these files of C."""
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    named = set(re.findall(r"\bRDMETA_(\w+)", text))
    return {k.name for k in KINDS if k.name.upper() in named}


def test_the_core_and_a_log_make_exactly_the_kinds_that_the_table_says() -> None:
    """A fold reads kinds, and makes none. A log has some of its kinds by the rules of the diff."""
    of_logs = set((ROOT / "csrc/kraft").rglob("*.c"))
    others = set((ROOT / "csrc/fold").rglob("*.c")) | of_logs
    made = kinds_in(set((ROOT / "csrc").rglob("*.c")) - others)
    assert made == {kind.name for kind in KINDS if "core" in kind.made_by}
    logged = {kind.name for kind in KINDS if "log" in kind.made_by}
    assert kinds_in(of_logs) <= logged <= kinds_in(of_logs | {ROOT / "csrc/topic/diff.c"})
