"""Writes the queries of gold for Spark, rdmeta/pipeline/gold/sql/spark, from those for DuckDB.

    python tools/spark_sql.py          # writes the files that differ
    python tools/spark_sql.py --check  # writes nothing; exits with 1 if a file is behind

People write the queries for DuckDB. Where both engines have a word for a thing, the queries use
that one; `RULES` are what is left. A test runs both on random fleets.
"""

from __future__ import annotations

import argparse
import re
import sys

from generated import ROOT, bring_up_to_date

sys.path[:0] = [str(ROOT)]

from rdmeta.pipeline.gold.measures import MEASURES, text_of  # noqa: E402

FOLDER = ROOT / "rdmeta/pipeline/gold/sql/spark"
# Spark counts days and months in the session's time zone, and so what is here counts microseconds.
_DAY = "86400000000"
_BEGIN = r"unix_micros(\1) - pmod(unix_micros(\1), {0})"
# Spark's sequence() has its last value, too, and it refuses functions of SQL in a generator.
_TOUCHED = (
    rf"transform(filter(sequence({_BEGIN}, unix_micros(\2), {{0}}),"
    r" each -> each < unix_micros(\2)), each -> timestamp_micros(each))"
)
_DATE = rf"date_from_unix_date((unix_micros(\1) DIV {_DAY})::INT)"
_US = r"(unix_micros(least(\2, \3 + INTERVAL 1 HOUR)) - unix_micros(greatest(\1, \3)))"

RULES = (
    (r"(?s)-- [^\n]*\nCREATE OR REPLACE MACRO .*?;\n(?=\n--)", ""),
    (r"(?m)^CREATE OR REPLACE VIEW", "CREATE OR REPLACE TEMPORARY VIEW"),
    (r"\bhours\((\w+), (\w+)\)", _TOUCHED.format("3600000000")),
    (r"\bdays\((\w+), (\w+)\)", _TOUCHED.format(_DAY)),
    (r"\bdate_trunc\('day', ([^()]+)\)", f"timestamp_micros({_BEGIN.format(_DAY)})"),
    (
        r"\bdate_trunc\('month', ([^()]+)\) \+ INTERVAL 1 MONTH",
        f"timestamp_micros((unix_date(last_day({_DATE})) + 1) * {_DAY})",
    ),
    (
        r"\bdate_trunc\('month', ([^()]+)\)",
        f"timestamp_micros(unix_date(trunc({_DATE}, 'MONTH')) * {_DAY})",
    ),
    (r"([\w.]+) ([+-]) INTERVAL 1 DAY", rf"timestamp_micros(unix_micros(\1) \2 {_DAY})"),
    (r"(\w+)::TIMESTAMP AT TIME ZONE 'UTC'", rf"timestamp_micros(unix_date(\1::DATE) * {_DAY})"),
    (r"\bus_in_hour\((\w+), (\w+), (\w+)\)", _US),
    (r"(?s)\bunnest\(\[(.*?)\n( +)\]\)", r"explode(array(\1\n\2))"),
    (r"\bunnest\(", "explode("),
    (r"\blambda each: ", "each -> "),
    (r"\bgetvariable\('(\w+)'\)", r":\1"),
    (r"\b([\w.]*replicas)\[1\]", r"get(\1, 0)"),
    # size() gives -1 for a null where spark.sql.ansi.enabled is off.
    (r"\blen\(", "array_size("),
    (r", \[\]\)", ", array())"),
    (r"\{'reason': (.*?), 'minutes': (.*?)\}", r"named_struct('reason', \1, 'minutes', \2)"),
    (r"NOT list_has_all\((\w+), (\w+)\)", r"array_size(array_except(\2, \1)) > 0"),
    (r"(\w+) IGNORE NULLS\)", r"\1, true)"),
    (r"::HUGEINT", "::DECIMAL(38, 0)"),
    (r"::VARCHAR::DOUBLE", "::DOUBLE"),
    (r"::VARCHAR", "::STRING"),
    (r"::TIMESTAMPTZ", "::TIMESTAMP"),
    (r"-- [^\n]*DuckDB[^\n]*\n", ""),
)


def for_spark(text: str) -> str:
    """Returns a query for DuckDB as Spark takes it, in a session of any time zone."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing")
    wanted = {
        FOLDER / f"{name}.sql": f"-- Made by tools/spark_sql.py from ../{name}.sql.\n"
        + for_spark(text_of(name))
        for name in ("prelude", *MEASURES)
    }
    FOLDER.mkdir(exist_ok=True)
    return bring_up_to_date(wanted, parser.parse_args().check)


if __name__ == "__main__":
    sys.exit(main())
