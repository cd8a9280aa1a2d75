"""Takes the values of sensitive configurations out of change records, before a fold sees them.

The recorder asks for min.insync.replicas alone, but a record may tell of any configuration. Kafka's
keys of type PASSWORD have names by which they are known here; a listener's prefix does not hide
them. A key that only resembles one is redacted too.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["redacted"]

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
    texts = detail.dictionary if isinstance(detail, pa.DictionaryArray) else detail
    if not pc.any(pc.match_substring_regex(texts, _SENSITIVE)).as_py():
        return rows
    detail = detail.cast(pa.string())  # a dictionary has no replacement
    shown = pc.replace_substring_regex(detail, _SENSITIVE, rf"\1={_MASK}")
    return rows.set_column(place, "detail", pc.if_else(configs, shown, detail))
