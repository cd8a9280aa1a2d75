"""Keeps the table of public C functions in step with the public headers.

    python tools/api_table.py          # updates the table and prints each change
    python tools/api_table.py --check  # writes nothing; exits with 1 if the table is behind

tests/repo/api_table.txt is the table's order: one function with its prototype per line. It only
grows at its end, because compiled extensions call a function by its place. The tool writes
csrc/include/rdmeta_api_calls.h and the number of functions in rdmeta.h's RDMETA_ABI_VERSION.
"""

from __future__ import annotations

import argparse
import re
import sys

from generated import ROOT, bring_up_to_date

INCLUDE = ROOT / "csrc/include"
ORDER = ROOT / "tests/repo/api_table.txt"
CALLS = INCLUDE / "rdmeta_api_calls.h"
MAIN = INCLUDE / "rdmeta.h"
VERSION = re.compile(r"(?<=^#define RDMETA_ABI_VERSION )0x[0-9a-f]{8}(?=u$)", re.MULTILINE)

HEAD = """\
/*
 * rdmeta: the functions of the table of rdmeta_api.h, in its order.
 *
 * tools/api_table.py writes it from the other headers. The list only grows, at
 * its end. Threads: see the declaration of each function.
 */
#ifndef RDMETA_API_CALLS_H
#define RDMETA_API_CALLS_H

"""
MIDDLE = """
/* rdmeta_api.h defines it in extensions, which do not link the functions. */
#ifdef RDMETA_API_ROUTED
"""
TAIL = """\
#endif

#endif /* RDMETA_API_CALLS_H */
"""


def declared() -> dict[str, str]:
    """Returns public functions with their prototypes on one line, in the order of the headers."""
    others = sorted(set(INCLUDE.glob("*.h")) - {MAIN, CALLS})
    found = {}
    for header in [MAIN, *others]:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)
        for prototype in re.findall(r"^RDMETA_API\b([^;]*;)", text, re.MULTILINE):
            words = " ".join(prototype.split()).replace("( ", "(")
            name = re.match(r"[^(]*?(\w+)\(", words)
            if name is None:
                raise SystemExit(f"{header.name}: no function in {words!r}")
            found[name[1]] = words
    return found


def name_of(prototype: str) -> str:
    return prototype.partition("(")[0].split()[-1].lstrip("*")


def ordered(old: list[str], now: dict[str, str]) -> list[str]:
    """Returns the old table with today's prototypes, and with new functions at its end."""
    names = [name_of(line) for line in old]
    gone = [name for name in names if name not in now]
    if gone:
        raise SystemExit(f"{', '.join(gone)}: in the table, but no longer in the headers")
    return [now[name] for name in [*names, *(name for name in now if name not in names)]]


def calls(table: list[str]) -> str:
    """Returns the text of rdmeta_api_calls.h."""
    names = [name_of(line) for line in table]
    rows = [""]
    for name in names:
        if len(rows[-1]) + len(f" F({name})") > 70:
            rows.append("")
        rows[-1] += f" F({name})"
    listed = "".join(f" \\\n       {row}" for row in rows)
    return f"{HEAD}#define RDMETA_API_CALLS(F){listed}\n{MIDDLE}{''.join(map(route, names))}{TAIL}"


def route(name: str) -> str:
    """Returns the macro that calls a function through the table, on one line if that fits."""
    macro, call = f"#define {name}(...)", f"(rdmeta_api->{name}(__VA_ARGS__))"
    return f"{macro} {call}\n" if len(macro) + len(call) < 80 else f"{macro} \\\n        {call}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing")
    check = parser.parse_args().check
    old = ORDER.read_text(encoding="utf-8").splitlines() if ORDER.exists() else []
    table = ordered(old, declared())
    version = f"0x0001{len(table):04x}"
    wanted = {
        ORDER: "".join(f"{line}\n" for line in table),
        CALLS: calls(table),
        MAIN: VERSION.sub(version, MAIN.read_text(encoding="utf-8")),
    }
    for line in table:
        if line not in old:
            changed = name_of(line) in [name_of(other) for other in old]
            print(f"{'changed' if changed else 'new'}: {line}")
    return bring_up_to_date(wanted, check)


if __name__ == "__main__":
    sys.exit(main())
