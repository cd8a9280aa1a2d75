"""What is said of files that are damaged: which, what of it, and where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from told import told

from rdmeta import Attached, Image, MalformedError, MetadataCache, attach


@pytest.fixture
def path(tmp_path: Path) -> Path:
    cache = MetadataCache()
    told(cache, names="orders other third")
    cache.image().save(tmp_path / "state")
    return tmp_path / "state"


def damage(path: Path, at: int, value: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.unlink()
    path.write_bytes(data)


def topic_at(path: Path, name: bytes) -> int:
    """Where the topic's block begins: 16 bytes before its name."""
    return path.read_bytes().index(name) - 16


OPENS: list[Callable[[Path], object]] = [
    Image.open,
    lambda path: Image.open(path, copy=True),
    attach,
    MetadataCache.load,
]


@pytest.mark.parametrize("opens", OPENS)
def test_what_cannot_be_opened_is_said_with_its_place(
    opens: Callable[[Path], object], path: Path
) -> None:
    size, whole = path.stat().st_size, path.read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(MalformedError, match=r"state\': it ends .*, at byte 100 \(head\)"):
        opens(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(MalformedError, match=r"another size than the file\'s, at byte 16 \(head\)"):
        opens(path)
    path.write_bytes(b"x" * size)
    with pytest.raises(MalformedError, match=r"does not begin as an image does, at byte 0"):
        opens(path)


def test_verify_says_what_is_wrong_and_where(path: Path) -> None:
    at = topic_at(path, b"other")
    damage(path, at + 8, b"\xff\xff\xff\xff")
    image = Image.open(path)
    assert image.path == str(path)
    with pytest.raises(
        MalformedError, match=rf"{path}\': a topic that cannot be, at byte {at} \(blocks\)"
    ):
        image.verify()
    with pytest.raises(
        MalformedError, match=rf"{path}\': a topic that cannot be, at byte {at} \(blocks\)"
    ):
        MetadataCache.load(path)


def test_a_lookup_says_in_which_file(path: Path) -> None:
    damage(path, topic_at(path, b"other") + 8, b"\xff\xff\xff\xff")
    attached = Attached(path)
    for reading in (Image.open(path), attached, attached.image()):
        for lookup, what in (
            (lambda: reading.topic("other"), "topic 'other'"),  # noqa: B023
            (lambda: reading.partition("other", 0), "partition 0 of 'other'"),  # noqa: B023
            (lambda: reading.topics(), "walk over topics"),  # noqa: B023
        ):
            with pytest.raises(MalformedError, match=rf"{what} in the image '{path}', of which"):
                lookup()
        assert reading.topic("orders").name == "orders"


def test_a_difference_says_of_which_files(path: Path) -> None:
    whole = MetadataCache().image()
    assert whole.path is None
    damage(path, topic_at(path, b"other") + 8, b"\xff\xff\xff\xff")
    with pytest.raises(MalformedError, match=rf"diff of '{path}'"):
        whole.diff(Image.open(path))
