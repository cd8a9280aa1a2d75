"""docs/metrics.md: its metrics are those of the output, its programs run, its alerts can fire.

The queries of examples/grafana.json pass the same checks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import commands
import pytest
from listener import free_ports
from scrape import Series, scraped
from waiting import until

import rdmeta
from rdmeta.metrics.samples import METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/metrics.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(rdmeta_\w+)` \|(.*?)\|(.*?)\|(.*?)\|.*\|$", TEXT, re.M)
ALERTS = dict(re.findall(r"^ +- alert: (\w+)\n +expr: (.*)$", TEXT, re.M))
PANELS = json.loads((ROOT / "examples/grafana.json").read_text(encoding="utf-8"))["panels"]
QUERIES = [*ALERTS.values(), *(each["expr"] for panel in PANELS for each in panel["targets"])]
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
    named = set(re.findall(r"\brdmeta_\w+", " ".join((TEXT, *QUERIES))))
    assert len(named) > 20
    assert named <= output.keys()


def test_the_labels_in_alerts_and_panels_have_values_that_come(output: dict[str, Series]) -> None:
    known = {metric.name: ("cluster", *metric.labels) for metric in METRICS}
    selectors = [
        (name, label, value)
        for query in QUERIES
        for name, label, value in re.findall(r'(rdmeta_\w+)\{(\w+)="(\w+)"\}', query)
    ]
    assert len(selectors) == sum(query.count("{") for query in QUERIES)
    for name, label, value in selectors:
        place = sorted(known[name][1:]).index(label)
        assert value in {key[place] for key in output[name]}, (name, label, value)
    assert len(PANELS) == 10
    for query in QUERIES:
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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="there is no prometheus")
def test_prometheus_evaluates_each_query_over_a_recorder(tmp_path: Path) -> None:
    with rdmeta.EmbeddedCluster(brokers=3) as cluster, ExitStack() as stack:
        cluster.create_topic("orders", partitions=6, replication_factor=3)
        port, own = free_ports(2)
        words = ["record", "-b", cluster.bootstrap, "-o", str(tmp_path / "h")]
        words += ["--every", "1", "--metrics", f"127.0.0.1:{port}"]
        stack.enter_context(ended(commands.command(*words)))
        jobs = [{"job_name": "r", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]
        settings = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        (tmp_path / "p.yml").write_text(json.dumps(settings), encoding="utf-8")
        files = f"--config.file={tmp_path}/p.yml", f"--storage.tsdb.path={tmp_path}/tsdb"
        stack.enter_context(ended(["prometheus", *files, f"--web.listen-address=127.0.0.1:{own}"]))
        until(lambda: asked(own, "count_over_time(rdmeta_up[1m]) > 2"), "three scrapes")
        names = set(re.findall(r"rdmeta_\w+", " ".join(QUERIES)))
        there = {name for name in names if asked(own, name)}
        assert names - there <= {"rdmeta_under_min_isr_partitions", "rdmeta_at_min_isr_partitions"}
        for query in QUERIES:
            found = asked(own, query)
            if re.fullmatch(r"rdmeta_\w+", query) and query in there:
                assert found, query


@contextmanager
def ended(words: list[str]) -> Iterator[None]:
    """Runs a process during the block."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def asked(port: int, query: str) -> list[object]:
    """Returns what Prometheus answers; it refuses a query that it cannot evaluate."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            found: list[object] = json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        if error.code == 503:  # it begins
            return []
        raise AssertionError(f"{query}: {error.read()!r}") from error
    except OSError:  # it has not begun to listen
        return []
    return found
