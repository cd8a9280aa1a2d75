"""Random logs are sound, of all types, and the same for the same seed."""

from __future__ import annotations

import random

import pytest
from kraft_model import Model
from kraft_random import RandomLog
from kraft_records import batches

from rdmeta.generate.logs import SCHEMAS

# Only Kafka 3.3 wrote the first; the other is as a broker's registration.
RARE = {"ACCESS_CONTROL_RECORD", "REGISTER_CONTROLLER_RECORD"}


def made(seed: int, commits: int = 60) -> RandomLog:
    log = RandomLog(random.Random(seed))
    log.grow(commits)
    return log


@pytest.mark.parametrize("seed", range(8))
def test_each_state_follows_from_the_log_and_from_its_snapshot(seed: int) -> None:
    found, model = made(seed), Model()
    for batch in batches(bytes(found.log.data)):
        model.apply(batch)
        if (state := found.states.get(model.next)) is not None:
            assert model.shown() == state.shown()
    assert model.next == found.log.end
    for end in random.Random(seed).sample(sorted(found.states)[1:], 5):
        name, data = found.snapshot(end)
        assert int(name[:20]) == end
        loaded = Model()
        loaded.load(batches(data), end)
        assert loaded.shown() == found.states[end].shown()


def test_the_same_seed_makes_the_same_log() -> None:
    assert made(3).log.data == made(3).log.data != made(4).log.data


def test_all_types_come() -> None:
    seen = {
        record.name for batch in batches(bytes(made(1, 300).log.data)) for record in batch.records
    }
    assert seen >= set(SCHEMAS) - RARE
