"""Writes csrc/kraft/record_table.c, the fields of the metadata log's records, from Kafka's JSON.

    python tools/record_table.py          # updates the file and prints its name
    python tools/record_table.py --check  # writes nothing; exits with 1 if the file is behind

The definitions are in the jars that `make kafka-jars` fetches. Without the jars the file stays as
it is. What a record does to a state is not in them: MARKS has that.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from generated import ROOT, bring_up_to_date

VERSION = "4.3.0"
JARS = ROOT / ".cache/kafka" / VERSION
TABLE = ROOT / "csrc/kraft/record_table.c"

# The smallest size of each type; those of a string, an array and a struct are in least().
SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
    "string": 1,
    "bytes": 1,
}
MOST_FIELDS = 16  # RDMETA_KRAFT_FIELDS
MOST_TYPE = 28  # RDMETA_KRAFT_TYPES - 1: those above are not settled

_ACL = ("ResourceType", "ResourceName", "PatternType", "Principal", "Host", "Operation")
# Kafka 3.3 defined it and no later version does.
ACCESS_CONTROL: dict[str, Any] = {
    "apiKey": 6,
    "name": "AccessControlRecord",
    "validVersions": "0",
    "fields": [
        {
            "name": name,
            "type": "int8" if name.endswith(("Type", "Operation")) else "string",
            "versions": "0+",
            **({"nullableVersions": "0+"} if name == "ResourceName" else {}),
        }
        for name in (*_ACL, "PermissionType")
    ],
}

CONTROLS = {
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}


class Marks(NamedTuple):
    """What a record does to a state: its role, and the flags of its fields by name."""

    role: str
    removes: int = 0
    flags: Mapping[str, tuple[str, ...]] = {}


def _fact(*key: str, removes: int | None = None, **flags: str) -> Marks:
    """Returns the marks of a fact, or of a record that removes one."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(key, ("KEY",))
    for name, flag in flags.items():
        found[name] = (*found.get(name, ()), flag)
    return Marks("FACT", 0, found) if removes is None else Marks("REMOVES", removes, found)


_ROW = Marks("ROW")
MARKS = {
    **dict.fromkeys((0, 1, 2, 3, 5, 7, 8, 9, 17, 23, 24, 25, 28), _ROW),
    4: _fact("resourceType", "resourceName", "name", value="GONE_IF_NULL"),
    6: _fact(*(name[0].lower() + name[1:] for name in (*_ACL, "PermissionType"))),
    10: _fact("tokenId", tokenId="SECRET"),
    11: _fact("name", "mechanism", salt="SECRET", storedKey="SECRET", serverKey="SECRET"),
    12: _fact("name", featureLevel="GONE_IF_ZERO"),
    14: _fact("entity", "key", remove="GONE_IF_TRUE"),
    15: _fact(),
    18: _fact("id"),
    19: _fact("id", removes=18),
    20: Marks("NOTHING"),
    21: _fact(),
    22: _fact("name", "mechanism", removes=11),
    26: _fact("tokenId", removes=10, tokenId="SECRET"),
    27: _fact("controllerId"),
}
CONTROL_MARKS = {2: _ROW, 3: _ROW, 4: _ROW, 5: _fact(), 6: _fact()}

HEAD = f"""\
/* The records of Apache Kafka {VERSION}, and AccessControlRecord of 3.3.
 *
 * tools/record_table.py writes it from the definitions in Kafka's jars, which
 * are under the Apache License, Version 2.0; see NOTICE. */
#include "kraft/record_table.h"

#include <stddef.h>

"""
# The flags under short names, in the order of the header.
FLAGS = (
    "ARRAY",
    "NULLABLE",
    "DEFAULT_NULL",
    "KEY",
    "SECRET",
    "GONE_IF_NULL",
    "GONE_IF_TRUE",
    "GONE_IF_ZERO",
)
SHORT = (
    "/* Short names, so that a field is one line. */\nenum {\n"
    + ",\n".join(f"        {flag:<12} = RDMETA_KRAFT_{flag}" for flag in FLAGS)
    + """
};

/* A field; a tagged one with its tag and its default; a struct; a version; a
 * record with its role, the type of the fact it removes, and its versions. */
#define FIELD(name, type, flags) {name, NULL, 0, -1, RDMETA_KRAFT_##type, flags}
#define TAGGED(name, tag, type, number, flags) \\
        {name, NULL, number, tag, RDMETA_KRAFT_##type, flags}
#define STRUCT(name, of, flags) {name, &(of), 0, -1, RDMETA_KRAFT_STRUCT, flags}
#define SCHEMA(fields, count, least) {fields, count, least}
#define TYPE(key, role, removes, name, versions)                           \\
        [key] = {name, versions, sizeof(versions) / sizeof(*versions) - 1, \\
                 RDMETA_KRAFT_##role, removes}
"""
)


class Versions(NamedTuple):
    """The versions `first` to `last`, both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Returns the versions of Kafka's notation: "none", "3", "0-2", "1+"."""
        if text == "none":
            return cls(1, 0)
        first, dash, last = text.rstrip("+").partition("-")
        return cls(int(first), 32767 if text.endswith("+") else int(last if dash else first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


def lower_first(name: str) -> str:
    return name[0].lower() + name[1:]


def snake(name: str) -> str:
    """Returns a name of Kafka's in C's style: NoOpRecord is no_op_record."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class Writer:
    """Collects the C text of schemas; those with equal begins share fields."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self._fields: dict[tuple[str, ...], str] = {}
        self._structs: dict[str, str] = {}

    def schema(
        self,
        name: str,
        fields: Iterable[Mapping[str, Any]],
        version: int,
        structs: Mapping[str, Any],
        flags: Mapping[str, tuple[str, ...]],
    ) -> tuple[str, int]:
        """Writes the fields of one version unless they are there.

        Returns its schema in C, and the fewest bytes that it takes.
        """
        rows, least = [], 1
        for field in fields:
            if version in Versions.parse(field["versions"]):
                row, size = self._field(name, field, version, structs, flags)
                rows.append(row)
                least += size
        if len(rows) > MOST_FIELDS:
            raise SystemExit(f"{name}: {len(rows)} fields, more than RDMETA_KRAFT_FIELDS")
        if not rows:
            return f"SCHEMA(NULL, 0, {least})", least
        longer = (of for all, of in self._fields.items() if all[: len(rows)] == tuple(rows))
        of = next(longer, None)
        if of is None:
            of = self._fields[tuple(rows)] = f"{name}_fields"
            head = _split(f"static const rdmeta_kraft_field_t {of}[] = {{")
            self.text.append(f"\n{head}" + ",\n".join(rows) + "};\n")
        return f"SCHEMA({of}, {len(rows)}, {least})", least

    def _struct(self, name: str, schema: str) -> str:
        """Writes the schema of a struct unless it is there; returns its name in C."""
        if schema not in self._structs:
            self._structs[schema] = name
            head = _split(f"static const rdmeta_kraft_schema_t {name} =")
            self.text.append(f"{head}        {schema};\n")
        return self._structs[schema]

    def _field(
        self,
        owner: str,
        field: Mapping[str, Any],
        version: int,
        structs: Mapping[str, Any],
        marks: Mapping[str, tuple[str, ...]],
    ) -> tuple[str, int]:
        """Returns a field as a row of C, and the fewest bytes that it takes."""
        name = lower_first(field["name"])
        is_array = field["type"].startswith("[]")
        kind = field["type"].removeprefix("[]")
        flags = {"ARRAY"} if is_array else set()
        if version in Versions.parse(field.get("nullableVersions", "none")):
            flags.add("NULLABLE")
        default = field.get("default")
        if default == "null":
            flags.add("DEFAULT_NULL")
        flags.update(marks.get(name, ()))
        words = " | ".join(flag for flag in FLAGS if flag in flags) or "0"
        is_tagged = version in Versions.parse(field.get("taggedVersions", "none"))
        if kind not in SIZES:
            inner = structs.get(kind) or field.get("fields")
            if inner is None:
                raise SystemExit(f"{owner}: {field['name']} has the unknown type {kind}")
            if is_tagged or (not is_array and "NULLABLE" in flags):
                raise SystemExit(f"{owner}: {name}: no tagged or nullable struct is read")
            of = f"{owner}_{snake(name)}"
            schema, least = self.schema(of, inner, version, structs, {})
            row = _row("STRUCT", f'"{name}"', self._struct(of, schema), words)
            return row, 1 if is_array else least
        if is_tagged:
            number = str(_number(default, kind, is_array))
            row = _row("TAGGED", f'"{name}"', str(field["tag"]), kind.upper(), number, words)
            return row, 0
        return _row("FIELD", f'"{name}"', kind.upper(), words), 1 if is_array else SIZES[kind]


def _row(macro: str, *arguments: str) -> str:
    """Returns a call of a macro, on two lines if it is long."""
    row = f"        {macro}({', '.join(arguments)})"
    if len(row) < 78:
        return row
    *first, last = arguments
    return f"        {macro}({', '.join(first)},\n{' ' * (9 + len(macro))}{last})"


def _split(line: str) -> str:
    """Returns a line of C with its end, on two lines if it is long."""
    if len(line) <= 80:
        return f"{line}\n"
    head, _, name = line.rpartition("_t ")
    return f"{head}_t\n        {name}\n"


def _number(default: object, kind: str, is_array: bool) -> int:
    """Returns the default of a tagged number or bool; 0 for others."""
    if default in (None, "null", "", "false") or is_array:
        return 0
    if default == "true":
        return 1
    if kind in ("float64", "string", "bytes", "uuid"):
        raise SystemExit(f"a tagged {kind} with the default {default} is not read")
    return int(str(default))


def definition(text: str) -> dict[str, Any]:
    """Returns one of Kafka's definitions, which have comments."""
    made = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert isinstance(made, dict)
    return made


def definitions(jars: Path) -> tuple[dict[int, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Returns the records in the jars by their key, and the control records by their name."""
    records = {6: ACCESS_CONTROL}
    with zipfile.ZipFile(jars / f"kafka-metadata-{VERSION}.jar") as jar:
        for name in sorted(jar.namelist()):
            if re.fullmatch(r"common/metadata/\w+\.json", name):
                record = definition(jar.read(name).decode())
                records[record["apiKey"]] = record
    with zipfile.ZipFile(jars / f"kafka-clients-{VERSION}.jar") as jar:
        controls = {
            name: definition(jar.read(f"common/message/{name}.json").decode())
            for _, name in CONTROLS.values()
        }
    return dict(sorted(records.items())), controls


def type_row(writer: Writer, key: int, shown: str, record: dict[str, Any], marks: Marks) -> str:
    """Writes a record's schemas; returns its row in the table of types."""
    name = snake(record["name"]).removesuffix("_record")
    last = Versions.parse(record["validVersions"])
    if last.first:
        raise SystemExit(f"{record['name']}: its versions begin at {last.first}")
    structs = {each["name"]: each["fields"] for each in record.get("commonStructs", ())}
    known = {lower_first(field["name"]) for field in record["fields"]}
    if not known.issuperset(marks.flags):
        raise SystemExit(f"{record['name']} has no field {set(marks.flags) - known}")
    schemas = [
        writer.schema(f"{name}_{version}", record["fields"], version, structs, marks.flags)[0]
        for version in range(last.last, -1, -1)
    ]
    lines = ",\n".join(f"        {schema}" for schema in reversed(schemas))
    writer.text.append(f"static const rdmeta_kraft_schema_t {name}[] = {{\n{lines}}};\n")
    return _row("TYPE", str(key), marks.role, str(marks.removes), f'"{shown}"', name)


def table(records: dict[int, dict[str, Any]], controls: dict[str, dict[str, Any]]) -> str:
    """Returns the text of record_table.c."""
    if set(records) != set(MARKS) or max(records) > MOST_TYPE:
        raise SystemExit(f"MARKS and Kafka differ in the keys {set(records) ^ set(MARKS)}")
    writer = Writer()
    types = [
        type_row(writer, key, snake(record["name"]).upper(), record, MARKS[key])
        for key, record in records.items()
    ]
    control_types = [
        type_row(writer, key, shown, controls[name], CONTROL_MARKS[key])
        for key, (shown, name) in CONTROLS.items()
    ]
    return "".join(
        [
            HEAD,
            SHORT,
            *writer.text,
            "\nconst rdmeta_kraft_type_t rdmeta_kraft_types[RDMETA_KRAFT_TYPES] = {\n",
            ",\n".join(types),
            "};\n\nconst rdmeta_kraft_type_t rdmeta_kraft_controls[RDMETA_KRAFT_CONTROLS] = {\n",
            ",\n".join(control_types),
            "};\n",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="writes nothing")
    check = parser.parse_args().check
    if not JARS.is_dir():
        return 0
    return bring_up_to_date({TABLE: table(*definitions(JARS))}, check)


if __name__ == "__main__":
    sys.exit(main())
