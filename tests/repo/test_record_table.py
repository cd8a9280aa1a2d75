"""The table of the metadata log's records, and how it is made of Kafka's definitions."""

from __future__ import annotations

from typing import Any

import pytest
import record_table

PLAIN = {"name": "BrokerId", "type": "int32", "versions": "0+"}


def test_the_table_is_what_the_jars_say() -> None:
    """It has types, flags, defaults, versions and structs of every shape."""
    if not record_table.JARS.is_dir():
        pytest.skip("Kafka is not here: `make kafka-jars` fetches it")
    made = record_table.table(*record_table.definitions(record_table.JARS))
    assert made == record_table.TABLE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([PLAIN] * 17, "17 fields"),
        ([{"name": "X", "type": "decimal", "versions": "0+"}], "unknown type decimal"),
        (
            [{"name": "X", "type": "uuid", "versions": "0+", "taggedVersions": "0+", "tag": 0,
              "default": "AAAAAAAAAAAAAAAAAAAAAA"}],
            "tagged uuid with the default",
        ),
        (
            [{"name": "X", "type": "S", "versions": "0+", "nullableVersions": "0+", "fields": []}],
            "no tagged or nullable struct",
        ),
    ],
)  # fmt: skip
def test_what_the_reader_cannot_read_is_refused(fields: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        record_table.Writer().schema("a_record_0", fields, 0, {}, {})


def test_a_record_without_marks_and_a_mark_without_a_field_are_refused() -> None:
    records = {key: {"name": "X"} for key in (*record_table.MARKS, 29)}
    with pytest.raises(SystemExit, match="29"):
        record_table.table(records, {})
    record = {"name": "FenceBrokerRecord", "validVersions": "0", "fields": [PLAIN]}
    marks = record_table.Marks("FACT", 0, {"gone": ("KEY",)})
    with pytest.raises(SystemExit, match="no field.*gone"):
        record_table.type_row(record_table.Writer(), 7, "X", record, marks)
