"""Random histories with images: each image always returns what the cache returned then."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import frames
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from test_model_based import NAMES, Histories, assert_recorded, facts

from rdmeta import NOT_CACHED, WAITING, Image, Reading

LOOKED_UP = [*NAMES, "never-there"]


def contents(reading: Reading) -> Any:
    """Returns everything that lookups return; names in flight are not part of an image."""
    states = [reading.state(name) for name in LOOKED_UP]
    return (
        [NOT_CACHED if state == WAITING else state for state in states],
        reading.names(),
        reading.topics(),
        reading.topics(allow_stale=True),
        reading.names(allow_stale=True),
        [reading.source(name) for name in reading.names(allow_stale=True)],
        [reading.reason(name) for name in reading.names(allow_stale=True)],
        [round(reading.age(name), 3) for name in reading.names(allow_stale=True)],
        [reading.leader(name, p, None) for name in LOOKED_UP for p in (0, 1, 7)],
        [reading.last_leader(name, p, None) for name in LOOKED_UP for p in (0, 1, 7)],
        [
            reading.topic_by_id(frames.topic_id((name, i)), None, allow_stale=True)
            for name in NAMES
            for i in range(3)
        ],
        reading.brokers,
        reading.controller,
        reading.cluster_id,
    )


class HistoriesOfImages(Histories):
    """The cache, the model, and images that must not change."""

    def __init__(self) -> None:
        super().__init__()
        self.images: list[tuple[Image, Any, int]] = []
        self.directory = tempfile.TemporaryDirectory()

    def teardown(self) -> None:
        self.directory.cleanup()

    @precondition(lambda self: len(self.images) < 6)
    @rule(in_file=st.booleans())
    def take(self, in_file: bool) -> None:
        image, now = self.cache.image(), contents(self.cache)
        assert contents(image) == now
        if in_file:
            path = Path(self.directory.name, "image")
            image.save(path)
            image = Image.open(path)
            image.verify()
        self.images.append((image, now, self.cache.version))

    @precondition(lambda self: self.images)
    @rule(which=st.integers(0, 5))
    def drop(self, which: int) -> None:
        del self.images[which % len(self.images)]

    @precondition(lambda self: len(self.images) > 1)
    @rule(one=st.integers(0, 5), other=st.integers(0, 5))
    def compare(self, one: int, other: int) -> None:
        """Each fact that differs has a record of its kind."""
        before, after = (self.images[i % len(self.images)][0] for i in (one, other))
        assert_recorded(facts(before), facts(after), list(before.diff(after)))
        assert list(before.diff(before)) == []

    @invariant()
    def images_stay_as_they_were(self) -> None:
        for image, then, version in self.images:
            assert contents(image) == then
            assert image.version == version
        taken = 1 + sum(not image.stats()["mapped"] for image, _, _ in self.images)
        assert self.cache.stats()["images"] == taken


TestHistoriesOfImages = pytest.mark.proof(HistoriesOfImages.TestCase)
TestHistoriesOfImages.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
