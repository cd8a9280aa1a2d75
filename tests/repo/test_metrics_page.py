"""docs/metrics.md: its metrics are those of the output, its programs run, its alerts can fire."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrape import Series, scraped

import rdmeta
from rdmeta.metrics.samples import METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/metrics.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(rdmeta_\w+)` \|(.*?)\|(.*?)\|(.*?)\|.*\|$", TEXT, re.M)
ALERTS = dict(re.findall(r"^ +- alert: (\w+)\n +expr: (.*)$", TEXT, re.M))
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.S | re.M)


@pytest.fixture(scope="module")
def output() -> Iterator[dict[str, Series]]:
    """Yields what a scrape of a client of an embedded cluster reads."""
    with rdmeta.EmbeddedCluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=6, replication_factor=3)
        with rdmeta.Client({"bootstrap.servers": cluster.bootstrap}, topics=rdmeta.ALL) as client:
            client.refresh()
            yield scraped(client, per_topic=["orders"], min_isr=lambda _: {"orders": 1})


def test_every_metric_that_the_page_names_is_in_the_output(output: dict[str, Series]) -> None:
    named = set(re.findall(r"\brdmeta_\w+", TEXT))
    assert len(named) > 20
    assert named <= output.keys()


def test_the_labels_in_the_alerts_have_values_that_come(output: dict[str, Series]) -> None:
    known = {metric.name: ("cluster", *metric.labels) for metric in METRICS}
    selectors = [
        (name, label, value)
        for query in ALERTS.values()
        for name, label, value in re.findall(r'(rdmeta_\w+)\{(\w+)="(\w+)"\}', query)
    ]
    assert len(selectors) == sum(query.count("{") for query in ALERTS.values())
    for name, label, value in selectors:
        place = sorted(known[name][1:]).index(label)
        assert value in {key[place] for key in output[name]}, (name, label, value)
    for query in ALERTS.values():
        assert set(re.findall(r"by \((\w+)\)", query)) <= {"cluster"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_page_runs(program: str, tmp_path: Path) -> None:
    code = program.replace("9308", "0").replace("client.start()", "client.refresh(timeout=30)")
    if "prometheus_client" in code:
        code += "print(prometheus_client.generate_latest().decode())\n"
    with rdmeta.EmbeddedCluster(brokers=1) as cluster:
        (tmp_path / "program.py").write_text(
            code.replace("localhost:9092", cluster.bootstrap), encoding="utf-8"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "program.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("rdmeta_up{" in done.stdout) == ("prometheus_client" in code)
