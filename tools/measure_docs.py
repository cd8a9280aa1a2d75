"""Writes the columns and the SQL of the measures of gold into docs/measures.md.

    python tools/measure_docs.py          # updates the page
    python tools/measure_docs.py --check  # writes nothing; exits with 1 if the page is behind

People write the text of the page. What lies between `<!-- begin: NAME -->` and `<!-- end -->` is
that of a measure, or of `prelude`, from rdmeta/pipeline/gold. Each measure has one such place.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

import pyarrow as pa
from generated import ROOT, bring_up_to_date

sys.path[:0] = [str(ROOT)]

from rdmeta.pipeline.gold.measures import MEASURES, text_of  # noqa: E402
from rdmeta.pipeline.layout import SILVER  # noqa: E402
from rdmeta.pipeline.tables import TABLES  # noqa: E402

PAGE = ROOT / "docs/measures.md"
PLACE = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
PRELUDE = "prelude"

SETTINGS = """\
SET TimeZone = 'UTC';
-- What `--min-isr N` and `--flap-seconds S` set; without them it is this.
SET VARIABLE min_isr = NULL::INTEGER;
SET VARIABLE flap_us = 600000000::BIGINT;

"""
# The days of files that were set aside are those of their folders, else those of their rows.
INPUT_FILE = """\
CREATE OR REPLACE VIEW input_file AS
SELECT
    cluster_id,
    coalesce(
        nullif(regexp_extract(name, '(?:^|/)day=([^/]{10})/', 1), ''),
        strftime(from_time, '%Y-%m-%d')
    ) AS day,
    state
FROM 'tables/input.parquet'
WHERE state IN ('quarantined', 'set aside') AND cluster_id <> '';

"""
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


def folded(title: str, sql: str) -> str:
    """Returns SQL that a reader opens by a click."""
    return f"<details><summary>{title}</summary>\n\n```sql\n{sql}```\n\n</details>\n"


def views() -> str:
    """Returns the SQL of the tables of silver and of what the measures share."""
    tables = "".join(
        f"CREATE OR REPLACE VIEW {table} AS\nFROM read_parquet(\n"
        f"    'tables/{SILVER}/{table}/**/*.parquet', hive_partitioning = false\n);\n\n"
        for table in TABLES
    )
    return SETTINGS + tables + INPUT_FILE + text_of(PRELUDE)


def part_of(name: str) -> str:
    """Returns what the page shows of a measure, or of the prelude."""
    if name == PRELUDE:
        return folded("The SQL that all queries need", views())
    measure = MEASURES[name]
    columns = ", ".join(
        f"`{each.name}{'?' if each.nullable else ''}` {kind_of(each.type)}"
        for each in measure.schema
    )
    query = text_of(name).rstrip("\n") + ";\n"
    return f"Columns: {columns}.\n\n{folded('The query over silver', query)}"


def places(text: str) -> Iterator[str]:
    """Yields the names of the places in the order of the page."""
    for place in PLACE.finditer(text):
        yield place[2]


def page(text: str) -> str:
    """Returns the page with the columns and the SQL of today.

    Raises SystemExit if it has not one place for each measure.
    """
    found, wanted = list(places(text)), [PRELUDE, *MEASURES]
    if sorted(found) != sorted(wanted):
        differ = sorted({*found} ^ {*wanted}) or sorted(found)
        raise SystemExit(f"{PAGE.name}: needs one place for each measure: {', '.join(differ)}")
    return PLACE.sub(lambda place: place[1] + part_of(place[2]) + place[3], text)


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing")
    text = PAGE.read_text(encoding="utf-8")
    return bring_up_to_date({PAGE: page(text)}, parser.parse_args().check)


if __name__ == "__main__":
    sys.exit(main())
