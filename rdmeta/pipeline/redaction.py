"""Takes the values of sensitive configurations out of change records, before a fold sees them.

The recorder asks for min.insync.replicas alone, but a record may tell of any configuration. Which
keys are sensitive is said once, in C, for a metadata log as for this: Kafka's keys of type PASSWORD
have names by which they are known. A key that only resembles one is redacted too.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rdmeta._core import kraft_is_sensitive
from rdmeta.config.secret import MASK


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
    found = texts.to_pylist()
    shown = list(map(_shown, found))
    if shown == found:
        return rows
    # Rows of other kinds keep their texts: the dictionary has both.
    moved = pc.if_else(
        configs, pc.add(detail.indices, pa.scalar(len(texts), pa.int32())), detail.indices
    )
    both = pa.DictionaryArray.from_arrays(
        moved, pa.concat_arrays([texts, pa.array(shown, texts.type)])
    )
    return rows.set_column(place, "detail", both)


def _shown(text: str | None) -> str | None:
    """Returns the text KEY=VALUE without the value of a sensitive key."""
    key, equals, _ = (text or "").partition("=")
    return f"{key}={MASK}" if equals and kraft_is_sensitive(key) else text
