"""The fields of answers: their values, and the lengths that are refused."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest
from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32

from rdmeta.errors import MalformedError
from rdmeta.net.fields import FieldReader, encode_uvarint


def test_integers_are_big_endian_and_signed_as_named() -> None:
    reader = FieldReader(struct.pack(">bhHiq", -1, -2, 65535, -3, -4))
    values = reader.int8(), reader.int16(), reader.uint16(), reader.int32(), reader.int64()
    assert values == (-1, -2, 65535, -3, -4)
    reader.end()


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**14, 2**31, 2**32 - 1])
def test_varints_are_those_of_kafka_python(value: int) -> None:
    reader = FieldReader(UnsignedVarInt32.encode(value))
    assert reader.uvarint() == value
    reader.end()
    assert encode_uvarint(value) == UnsignedVarInt32.encode(value)


@pytest.mark.parametrize("data", [b"\xff" * 4 + b"\x10", b"\x80" * 5 + b"\0", b"\x80"])
def test_a_varint_of_more_than_32_bits_or_without_end_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        FieldReader(data).uvarint()


def test_strings_have_their_length_plus_one_and_null_has_none() -> None:
    reader = FieldReader(b"\x04abc\x00\x01")
    assert (reader.string(), reader.optional_string(), reader.string()) == ("abc", None, "")


def test_bytes_that_are_no_utf_8_become_surrogates() -> None:
    assert FieldReader(b"\x03a\xff").string().encode("utf-8", "surrogateescape") == b"a\xff"


def test_a_null_string_is_refused_where_a_string_must_be() -> None:
    with pytest.raises(MalformedError, match="null"):
        FieldReader(b"\0").string()


def test_a_uuid_has_16_bytes() -> None:
    assert FieldReader(bytes(range(16))).uuid() == UUID(bytes=bytes(range(16)))
    with pytest.raises(MalformedError):
        FieldReader(bytes(15)).uuid()


def test_an_array_holds_what_is_read_for_each_element() -> None:
    assert FieldReader(b"\x03\0\7\0\x08").array(FieldReader.int16) == (7, 8)
    assert FieldReader(b"\x01").array(FieldReader.int16) == ()


@pytest.mark.parametrize("data", [b"\0", b"\x03\0", b"\xff\xff\xff\xff\x0f" + bytes(100)])
def test_an_array_of_more_elements_than_bytes_is_refused_before_it_is_read(data: bytes) -> None:
    def read(reader: FieldReader) -> int:
        raise AssertionError("an element was read")

    with pytest.raises(MalformedError, match="announces"):
        FieldReader(data).array(read)


def test_tags_are_skipped_and_may_not_end_beyond_the_data() -> None:
    reader = FieldReader(b"\x02\x01\x02ab\x07\x00!")
    reader.skip_tags()
    assert reader.left == 1
    with pytest.raises(MalformedError):
        FieldReader(b"\x01\x01\x05ab").skip_tags()


def test_bytes_after_the_last_field_are_refused() -> None:
    with pytest.raises(MalformedError, match="1 bytes follow"):
        FieldReader(b"a").end()


def test_older_versions_have_wide_lengths_and_no_tags() -> None:
    reader = FieldReader(b"\0\3abc\xff\xff\0\0\0\0\0\2\0\7\0\x08", flexible=False)
    assert (reader.string(), reader.optional_string(), reader.string()) == ("abc", None, "")
    assert reader.array(FieldReader.int16) == (7, 8)
    reader.skip_tags()
    reader.end()


def test_impossible_lengths_of_older_versions_are_refused() -> None:
    for data, read in (
        (b"\xff\xfe", FieldReader.optional_string),
        (b"\0\3ab", FieldReader.string),
        (b"\xff\xff", FieldReader.string),
        (b"\0\0\0\3ab", lambda reader: reader.array(FieldReader.int8)),
        (b"\xff\xff\xff\xff", lambda reader: reader.array(FieldReader.int8)),
    ):
        with pytest.raises(MalformedError):
            read(FieldReader(data, flexible=False))
