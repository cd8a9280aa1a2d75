"""The bench of the report makes clusters, gold and pages, and times them. No speeds."""

from __future__ import annotations

import pytest

from bench.report import made, page


@pytest.mark.nightly
def test_the_page_is_timed_beside_its_gold() -> None:
    found = page.measure(2, 7, 2)
    counts = {name: len(samples) for name, samples in found.items()}
    times = dict.fromkeys(("gold", "gold_memory", "report", "report_memory"), 2)
    assert counts == {**times, "html": 1, "json": 1}
    assert all(value > 0 for samples in found.values() for value in samples)


@pytest.mark.nightly
def test_generating_is_timed_beside_the_pipeline() -> None:
    found = made.measure(1, 2)
    assert {*found} == {"generate", "pipeline", "short", "long"}
    assert all(len(samples) == 2 and min(samples) > 0 for samples in found.values())
