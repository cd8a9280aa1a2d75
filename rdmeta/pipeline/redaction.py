"""Takes the values of sensitive configurations out of change records, before a fold sees them.

The recorder asks for min.insync.replicas alone, but a record may tell of any configuration. Kafka's
keys of type PASSWORD have names by which they are known here; a listener's prefix does not hide
them. A key that only resembles one is redacted too.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# As `rdmeta config` shows a secret.
_MASK = "***"
_ANYWHERE = "password|passphrase|secret|credential|jaas"
_AT_END = r"\.key|\.token|\.certificates|\.certificate\.chain"
_SENSITIVE = f"(?is)^([^=]*(?:{_ANYWHERE})[^=]*|[^=]*(?:{_AT_END}))=.*$"


def redacted(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns change records in which sensitive values are `***`; the keys stay."""
    place = rows.schema.get_field_index("detail")
    if place < 0:
        return rows
    configs = pc.equal(rows.column("kind"), pa.scalar("config_changed"))
    if not pc.any(configs).as_py():
        return rows
    detail = rows.column(place)
    if not isinstance(detail, pa.DictionaryArray):
        detail = detail.dictionary_encode()
    texts = detail.dictionary
    if not pc.any(pc.match_substring_regex(texts, _SENSITIVE)).as_py():
        return rows
    # Rows of other kinds keep their texts: the dictionary has both.
    shown = pc.replace_substring_regex(texts, _SENSITIVE, rf"\1={_MASK}")
    moved = pc.if_else(
        configs, pc.add(detail.indices, pa.scalar(len(texts), pa.int32())), detail.indices
    )
    both = pa.DictionaryArray.from_arrays(moved, pa.concat_arrays([texts, shown]))
    return rows.set_column(place, "detail", both)
