"""Writes the columns of the measures of gold, and the link to their SQL, into docs/measures.md.

    python tools/measure_docs.py          # updates the page, and the comments of columns
    python tools/measure_docs.py --check  # writes nothing; exits with 1 if one is behind

People write the text of the page. What lies between `<!-- begin: NAME -->` and `<!-- end -->` is
that of a measure, from rdmeta/pipeline/gold. Each measure has one such place, in their order. What
the tables of the page say of a column becomes its comment in rdmeta/pipeline/gold.
"""

from __future__ import annotations

import argparse
import json
import re
import sys

import pyarrow as pa
from generated import ROOT, bring_up_to_date

sys.path[:0] = [str(ROOT)]

from rdmeta.pipeline.gold.measures import MEASURES  # noqa: E402

PAGE = ROOT / "docs/measures.md"
COMMENTS = ROOT / "rdmeta/pipeline/gold/column_comments.py"
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


# Columns that identify a row in several measures, and those that only a sentence explains.
_SAME = {
    "cluster_id": "the id of the cluster",
    "hour": "the begin of the hour, in UTC",
    "day": "the begin of the day, in UTC",
    "topic": "the name of the topic",
    "topic_id": "the id of the topic; null if it is not known",
    "partition": "the number of the partition",
    "broker": "the id of the broker",
    "rack": "the rack of the broker or brokers",
    "kind": "what the row is about",
    "began_at": "its begin, in UTC",
    "ended_at": "its end, in UTC",
    "observed": "the time that was observed, in minutes; partition-minutes of a topic",
    "unknown_min_isr": "partition-minutes for which the min ISR is not known",
    "unknown_reassigning": "partition-minutes for which it is not known which replicas are added",
    "unknown_racks": "partition-minutes for which the rack of a broker is not known",
    "eff_is_exact": "whether it is known which replicas are being added",
    "epoch": "the epoch of the controller",
    "seconds": "from began_at to ended_at, in seconds",
    "censored": "its begin or its end was not seen",
}


def comments_of(name: str, section: str) -> dict[str, str]:
    """Returns what the section of a measure says of each of its columns.

    Raises SystemExit if it says nothing of a column.
    """
    found: dict[str, str] = {}
    head: list[str] = []
    for line in section.splitlines():
        if not line.startswith("| "):
            continue
        cells = re.split(r"\s*\|\s*", line.strip("| "))
        if cells[0].startswith("column"):
            head = cells
        elif head:
            plain = (re.sub(r"`|\*\*|\[([^]]*)\]\([^)]*\)", r"\1", each) for each in cells)
            row = dict(zip(head, plain, strict=True))
            while_ = row.get("a partition counts while")
            text = row.get("meaning") or f"partition-minutes for which {while_}"
            text = f"{row['unit']}: {text}" if row.get("unit") else text
            found |= dict.fromkeys(re.findall(r"`(\w+)`", cells[0]), text)
    columns = MEASURES[name].schema.names
    if missing := [each for each in columns if each not in {**_SAME, **found}]:
        raise SystemExit(f"{PAGE.name}: the table of {name} has no row for {', '.join(missing)}")
    return {each: found.get(each) or _SAME[each] for each in columns}


def comments(text: str) -> str:
    """Returns the module with the comments of all columns."""
    sections = {part.split("\n")[0]: part for part in re.split(r"(?m)^##+ ", PLACE.sub("", text))}
    lines = [
        '"""The comments of the columns of gold; tools/measure_docs.py made them."""\n',
        "# ruff: noqa: E501\n",
    ]
    lines.append("from __future__ import annotations\n")
    lines.append('__all__ = ["COMMENTS"]\n\n# fmt: off')
    lines.append("COMMENTS: dict[str, dict[str, str]] = {")
    for name in MEASURES:
        lines.append(f"    {json.dumps(name)}: {{")
        for column, comment in comments_of(name, sections[name]).items():
            lines.append(f"        {json.dumps(column)}: {json.dumps(comment)},")
        lines.append("    },")
    return "\n".join([*lines, "}"]) + "\n"


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
    wanted = {PAGE: page(text), COMMENTS: comments(text)}
    return bring_up_to_date(wanted, parser.parse_args().check)


if __name__ == "__main__":
    sys.exit(main())
