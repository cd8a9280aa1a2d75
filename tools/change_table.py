"""Writes the files that C, Cython and rdmeta.model take from the table of change records.

    python tools/change_table.py          # updates the files and prints their names
    python tools/change_table.py --check  # writes nothing; exits with 1 if a file is behind

The table is rdmeta/_change_table.py. The tool writes csrc/include/rdmeta_kinds.h (the public
numbers), csrc/topic/diff_table.h (names and columns), and the marked lines of rdmeta/_capi.pxd
and of rdmeta/model.py. Programs rely on the places in the written files. So the tool refuses a
table in which a kind or a column has moved.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from pathlib import Path
from runpy import run_path
from typing import Any

from generated import ROOT, bring_up_to_date

TABLE = ROOT / "rdmeta/_change_table.py"
KINDS = ROOT / "csrc/include/rdmeta_kinds.h"
NAMES = ROOT / "csrc/topic/diff_table.h"
CAPI = ROOT / "rdmeta/_capi.pxd"
MODEL = ROOT / "rdmeta/model.py"

WRITTEN = "tools/change_table.py writes it from rdmeta/_change_table.py."

KINDS_HEAD = f"""\
/*
 * rdmeta: the sources and kinds of changes. Part of rdmeta_change.h.
 *
 * {WRITTEN}
 * The lists only grow, at their ends. Threads: there is no function here.
 */
#ifndef RDMETA_KINDS_H
#define RDMETA_KINDS_H

"""
NAMES_HEAD = f"""\
/*
 * diff_table: names of sources and kinds, and the columns of change records.
 *
 * {WRITTEN}
 */
#pragma once

"""


def wrapped(doc: str) -> str:
    """Returns a comment of lines of at most 80 columns."""
    return textwrap.fill(
        f"/** {doc} */", 80, initial_indent=" " * 8, subsequent_indent=" " * 8 + " *  "
    )


def enum(what: str, rows: list[tuple[str, str]]) -> str:
    """Returns a C enum with a comment per value."""
    lines = [
        f"{wrapped(doc)}\n        {name} = {number}" for number, (name, doc) in enumerate(rows)
    ]
    return f"/** {what} */\nenum {{\n" + ",\n".join(lines) + "\n};\n"


def listed(name: str, rows: list[str]) -> str:
    """Returns a macro that calls X once per row."""
    return f"#define {name}(X)" + "".join(f" \\\n        X({row})" for row in rows) + "\n"


def source(name: str) -> str:
    return f"RDMETA_SOURCE_{name.upper()}"


def kind(name: str) -> str:
    return f"RDMETA_{name.upper()}"


def kind_doc(row: Any) -> str:
    makers = {"recorder": "recorders make it", "log": "the metadata log has it"}
    if "core" in row.made_by:
        return str(row.doc)
    made = " and ".join(makers[by] for by in row.made_by)
    return f"{row.doc}; {made or 'nothing makes it yet'}"


def between(text: str, comment: str, lines: list[str]) -> str:
    """Returns `text` with the lines between its two marks replaced."""
    head, begin, rest = text.partition(f"# {comment}: begin\n")
    old, end, tail = rest.partition(f"# {comment}: end\n")
    if not end:
        raise SystemExit(f"no lines between '{comment}: begin' and '{comment}: end'")
    indent = old.rpartition("\n")[2]
    return "".join([head, begin, *lines, indent, end, tail])


def outputs(table: dict[str, Any]) -> dict[Path, str]:
    """Returns the text of each file that the tool writes."""
    sources, kinds, members = table["SOURCES"], table["KINDS"], table["RECORD_COLUMNS"]
    types = table["TYPES"]
    numbers = [source(row.name) for row in sources] + [kind(row.name) for row in kinds]
    mark = "tools/change_table.py"
    return {
        KINDS: KINDS_HEAD
        + enum("The source of a change.", [(source(row.name), row.doc) for row in sources])
        + "\n"
        + enum("The kind of a change.", [(kind(row.name), kind_doc(row)) for row in kinds])
        + "\n#endif /* RDMETA_KINDS_H */\n",
        NAMES: NAMES_HEAD
        + "/* The names, in the order of their numbers. */\n"
        + listed("RDMETA_SOURCE_NAMES", [f'"{row.name}"' for row in sources])
        + "\n"
        + listed("RDMETA_KIND_NAMES", [f'"{row.name}"' for row in kinds])
        + "\n/* The columns in their order, each with its type in Arrow. */\n"
        + listed("RDMETA_CHANGE_COLUMNS", [f"{row.name}, {types[row.type].c}" for row in members]),
        CAPI: between(
            CAPI.read_text(encoding="utf-8"), mark, [f"        {number}\n" for number in numbers]
        ),
        MODEL: between(
            MODEL.read_text(encoding="utf-8"),
            mark,
            [
                f"    {row.name}: {types[row.type].python}{' | None' if row.optional else ''}\n"
                for row in members
            ],
        ),
    }


def check_order(table: dict[str, Any]) -> None:
    """Raises SystemExit if the written files have another order."""
    if not NAMES.exists():
        return
    text = NAMES.read_text(encoding="utf-8")
    for name, rows in (
        ("RDMETA_SOURCE_NAMES", table["SOURCES"]),
        ("RDMETA_KIND_NAMES", table["KINDS"]),
        ("RDMETA_CHANGE_COLUMNS", table["RECORD_COLUMNS"]),
    ):
        macro = re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*)", text)
        old = re.findall(r'X\("?(\w+)', macro[1]) if macro else []
        if [row.name for row in rows][: len(old)] != old:
            raise SystemExit(f"{name}: the list only grows, at its end; it was {', '.join(old)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing")
    check = parser.parse_args().check
    table = run_path(str(TABLE))
    check_order(table)
    wanted = outputs(table)
    return bring_up_to_date(wanted, check)


if __name__ == "__main__":
    sys.exit(main())
