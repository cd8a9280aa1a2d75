"""The table of the metadata log's records, and how it is made of Kafka's definitions."""

from __future__ import annotations

from typing import Any

import pytest
import record_table

PLAIN = {"name": "BrokerId", "type": "int32", "versions": "0+"}


def written(*fields: dict[str, Any], version: int = 0, **structs: Any) -> tuple[str, str]:
    """Returns the name of a schema, and the C text of it."""
    writer = record_table.Writer()
    name = writer.schema("a_record_0", fields, version, structs, {"brokerId": ("KEY",)})
    return name, "".join(writer.text)


def test_the_table_is_what_the_jars_say() -> None:
    if not record_table.JARS.is_dir():
        pytest.skip("Kafka is not here: `make kafka-jars` fetches it")
    made = record_table.table(*record_table.definitions(record_table.JARS))
    assert made == record_table.TABLE.read_text(encoding="utf-8")


def test_a_field_has_its_type_its_flags_and_its_mark() -> None:
    name, text = written(
        PLAIN, {"name": "Rack", "type": "string", "versions": "0+", "nullableVersions": "0+"}
    )
    assert name == "a_record_0"
    assert 'FIELD("brokerId", INT32, KEY)' in text
    assert 'FIELD("rack", STRING, NULLABLE)' in text
    assert "SCHEMA(a_record_0_fields, 6)" in text


def test_a_field_is_only_in_its_versions() -> None:
    later = {"name": "Later", "type": "uuid", "versions": "1-2", "nullableVersions": "2+"}
    assert "later" not in written(PLAIN, later)[1]
    assert 'FIELD("later", UUID, 0)' in written(PLAIN, later, version=1)[1]
    assert 'FIELD("later", UUID, NULLABLE)' in written(PLAIN, later, version=2)[1]
    assert "later" not in written(PLAIN, later, version=3)[1]


@pytest.mark.parametrize(
    ("kind", "default", "row"),
    [
        ("int32", "-2", 'TAGGED("leader", 1, INT32, -2, 0)'),
        ("bool", "true", 'TAGGED("leader", 1, BOOL, 1, 0)'),
        ("string", "", 'TAGGED("leader", 1, STRING, 0, 0)'),
        ("[]int32", "null", 'TAGGED("leader", 1, INT32, 0, ARRAY | DEFAULT_NULL)'),
    ],
)
def test_a_tagged_field_has_its_tag_and_default(kind: str, default: str, row: str) -> None:
    tagged = {
        "name": "Leader", "type": kind, "versions": "0+", "taggedVersions": "0+", "tag": 1,
        "default": default,
    }  # fmt: skip
    _, text = written(PLAIN, tagged)
    assert row in text
    assert "SCHEMA(a_record_0_fields, 5)" in text  # a tagged field may take no byte


def test_structs_are_schemas_of_their_own() -> None:
    inner = [{"name": "Host", "type": "string", "versions": "0+"}]
    array = {"name": "EndPoints", "type": "[]EndPoint", "versions": "0+", "fields": inner}
    single = {"name": "Range", "type": "Common", "versions": "0+"}
    _, text = written(array, single, Common=[PLAIN])
    assert 'STRUCT("endPoints", a_record_0_end_points, ARRAY)' in text
    assert 'STRUCT("range", a_record_0_range, 0)' in text
    assert 'FIELD("host", STRING, 0)' in text
    assert "SCHEMA(a_record_0_fields, 7)" in text  # 1 of the array, 5 of the struct, 1


def test_equal_schemas_are_written_once() -> None:
    writer = record_table.Writer()
    names = [writer.schema(name, [PLAIN], 0, {}, {}) for name in ("first", "second")]
    assert names == ["first", "first"]
    assert len(writer.text) == 1
    assert writer.schema("empty", [], 0, {}, {}) == "nothing"


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
        written(*fields)


def test_a_record_without_marks_and_a_mark_without_a_field_are_refused() -> None:
    records = {key: {"name": "X"} for key in (*record_table.MARKS, 29)}
    with pytest.raises(SystemExit, match="29"):
        record_table.table(records, {})
    record = {"name": "FenceBrokerRecord", "validVersions": "0", "fields": [PLAIN]}
    marks = record_table.Marks("FACT", 0, {"gone": ("KEY",)})
    with pytest.raises(SystemExit, match="no field.*gone"):
        record_table.type_row(record_table.Writer(), 7, "X", record, marks)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NoOpRecord", "no_op_record"),
        ("ZkMigrationStateRecord", "zk_migration_state_record"),
        ("ClearElrRecord", "clear_elr_record"),
        ("EndPoints", "end_points"),
    ],
)
def test_names_are_in_the_style_of_c(name: str, said: str) -> None:
    assert record_table.snake(name) == said
