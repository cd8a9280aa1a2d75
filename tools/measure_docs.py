"""Writes the columns of the measures of gold, and the link to their SQL, into docs/measures.md.

    python tools/measure_docs.py          # updates the page
    python tools/measure_docs.py --check  # writes nothing; exits with 1 if the page is behind

People write the text of the page. What lies between `<!-- begin: NAME -->` and `<!-- end -->` is
that of a measure, from rdmeta/pipeline/gold. Each measure has one such place, in their order.
"""

from __future__ import annotations

import argparse
import re
import sys

import pyarrow as pa
from generated import ROOT, bring_up_to_date

sys.path[:0] = [str(ROOT)]

from rdmeta.pipeline.gold.measures import MEASURES  # noqa: E402

PAGE = ROOT / "docs/measures.md"
PLACE = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
_KINDS = {
    pa.string(): "string",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.timestamp("us", tz="UTC"): "timestamp",
}


def kind_of(kind: pa.DataType) -> str:
    """Returns the name of a type as the page shows it."""
    if pa.types.is_list(kind):
        return f"list of {kind_of(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "(" + ", ".join(f"`{each.name}` {kind_of(each.type)}" for each in kind) + ")"
    return _KINDS[kind]


def part_of(name: str) -> str:
    """Returns what the page shows of a measure."""
    columns = ", ".join(
        f"`{each.name}{'?' if each.nullable else ''}` {kind_of(each.type)}"
        for each in MEASURES[name].schema
    )
    return f"Columns: {columns}. [The query](../rdmeta/pipeline/gold/sql/{name}.sql).\n"


def unexplained(text: str) -> list[str]:
    """Returns the columns of which the section of their measure does not say what they mean."""
    found = []
    for section in re.split(r"^##+ ", PLACE.sub("", text), flags=re.MULTILINE):
        name = section.split("\n")[0]
        if name in MEASURES:
            columns = {*MEASURES[name].schema.names} - {"cluster_id", *MEASURES[name].order}
            found += [f"{name}.{each}" for each in columns if f"`{each}`" not in section]
    return found


def page(text: str) -> str:
    """Returns the page with the columns of today.

    Raises SystemExit if it has not one place for each measure, or does not explain a column.
    """
    if [place[2] for place in PLACE.finditer(text)] != list(MEASURES):
        raise SystemExit(f"{PAGE.name}: needs these places in this order: {', '.join(MEASURES)}")
    if missing := unexplained(text):
        raise SystemExit(f"{PAGE.name}: does not say what these are: {', '.join(missing)}")
    return PLACE.sub(lambda place: place[1] + part_of(place[2]) + place[3], text)


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing")
    text = PAGE.read_text(encoding="utf-8")
    return bring_up_to_date({PAGE: page(text)}, parser.parse_args().check)


if __name__ == "__main__":
    sys.exit(main())
