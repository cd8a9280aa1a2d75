"""What generated recorders write: whole recordings, with holes and ends where they are planned."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from recorded import contents

from rdmeta import history
from rdmeta.generate.cluster import HOUR_US, SECOND_US, WatchPlan
from rdmeta.generate.recordings import POLL_US, polls, record
from rdmeta.generate.scenarios import ScenarioPlan, Sizes

BEGIN = datetime(2026, 11, 19, tzinfo=timezone.utc)
SIZES = Sizes(1, 1, 3, 1, 1)
HOLE = (3 * HOUR_US, 5 * HOUR_US)


def lost_broker() -> ScenarioPlan:
    plan = ScenarioPlan(0, "seed", BEGIN, SIZES)
    plan.broker_lost(2 * HOUR_US, 1, 20)
    plan.cluster.run(8 * HOUR_US)
    return plan


def test_each_change_is_seen_by_the_next_poll_and_one_comes_right_before(tmp_path: Path) -> None:
    cluster, watch = lost_broker().cluster, WatchPlan()
    times = list(polls(cluster, watch, 8 * HOUR_US))
    assert times[0] == watch.phase
    assert {(at - watch.phase) % POLL_US for at in times} == {0}
    for change in cluster.changes[1:]:
        seen = min(at for at in times if at >= change.at)
        assert seen - change.at < POLL_US or seen == watch.phase
        assert seen == watch.phase or seen - POLL_US in times
    assert len(times) < 8 * 3600 / 30 / 3


def test_a_recorder_has_a_hole_and_one_that_is_killed_has_no_end(tmp_path: Path) -> None:
    cluster = lost_broker().cluster
    skew = timedelta(seconds=2)
    watch = WatchPlan(skew=2 * SECOND_US, holes=(HOLE,), killed=7 * HOUR_US)
    record(cluster, watch, BEGIN, 8 * HOUR_US, tmp_path)
    first, second = history.recordings(tmp_path)
    assert first.observed_from == BEGIN + timedelta(seconds=7) + skew
    assert first.ended_by == "gap"
    assert first.observed_to <= BEGIN + timedelta(hours=3) + skew < second.observed_from
    assert second.ended_by is None
    kinds = [row.kind for row in history.changes(tmp_path)]
    assert {"broker_removed", "leader_changed", "isr_changed", "config_changed"} <= {*kinds}


def test_ids_of_recordings_follow_from_the_clusters_numbers(tmp_path: Path) -> None:
    for place in ("one", "two"):
        record(lost_broker().cluster, WatchPlan(), BEGIN, 8 * HOUR_US, tmp_path / place)
    one, two = (contents(tmp_path / place) for place in ("one", "two"))
    assert one == two
