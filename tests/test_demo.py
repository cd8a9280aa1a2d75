"""The demo shows the whole path, only reads from its user's cluster, and needs no Java.

The command runs in it while a broker is away.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from broker import Brokers
from frames import B, P, T

from rdmeta import EmbeddedCluster
from rdmeta.demo import MEASURE, QUERIES, command, show, spark_session
from rdmeta.errors import Error
from rdmeta.history import changes
from rdmeta.net.handshake import API_VERSIONS, METADATA
from rdmeta.pipeline import check


def demo(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name != "BOOTSTRAP"}
    root = str(Path(__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-m", "rdmeta.demo", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**plain, "PYTHONPATH": root, "COLUMNS": "120", **environment},
    )


@pytest.mark.proof
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_demo_goes_from_sockets_to_spark_tables(tmp_path: Path) -> None:
    done = demo("--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the client has seen it") == 4
    assert "rdmeta.spark.run(" in done.stdout
    measure = done.stdout.partition(f"\n{MEASURE}, as a DataFrame of Spark:\n")[2]
    assert re.search(r"\| *began_at\| *minutes\|most\|partitions\|\n.*\n\| *20", measure)
    assert_tables(tmp_path / "out/tables", done.stdout, by_spark=(MEASURE,))


def assert_tables(tables: Path, text: str, by_spark: tuple[str, ...] = ()) -> None:
    """Asserts that the demo has made all tables and shows them, but for some by DuckDB.

    The rows are those of its own cluster, without the generated ones.
    """
    assert check(tables) == []
    names = {folder.rpartition("/")[2] for folder in QUERIES}
    assert {name for name in names if f"\n{name}: SELECT" in text} == names - {*by_spark}
    rows = {
        folder.rpartition("/")[2]: [
            row
            for row in pq.read_table(tables / folder, partitioning=None).to_pylist()
            if not row["cluster_id"].startswith("cluster-")
        ]
        for folder in QUERIES
    }
    assert all(rows.values())
    events = json.loads((tables.parent / "week/truth.json").read_text())["events"]
    assert {"rack_lost", "hole"} <= {event["kind"] for event in events}
    (incident,) = (row for row in rows["incident"] if row["kind"] == "leaderless")
    assert incident["most"] == incident["partitions"] > 0
    (churn,) = (row for row in rows["churn_day"] if row["broker"] == 3)
    # The broker gets some leaders first, and is lost with all that it has.
    assert churn["lost"] >= incident["partitions"] > churn["gained"] > 0
    assert {row["broker"] for row in rows["balance_hour"] if row["kind"] == "broker"} == {1, 2, 3}
    assert sum(row["observed"] for row in rows["coverage_hour"]) > 0


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Returns what a demo without Java prints, without the log, and the directory of its run."""
    directory = tmp_path_factory.mktemp("demo")
    done = demo(cwd=directory, JAVA_HOME=str(directory), RDMETA_BOOTSTRAP="127.0.0.1:1")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines(keepends=True)
    return "".join(line for line in lines if "the client logs:" not in line), directory


@pytest.mark.slow
def test_without_java_the_demo_makes_the_tables_and_says_so(shown: tuple[str, Path]) -> None:
    text, directory = shown
    assert "without Spark: Spark needs Java 17 or later" in text
    assert f"DuckDB shows the measure {MEASURE}" in text
    assert "--engine local" in text
    (out,) = (directory / "demo-out").iterdir()
    assert_tables(out / "tables", text)
    kinds = [row.kind for row in changes(out / "history")]
    assert (kinds[0], kinds[-1]) == ("observed_from", "observed_to")
    assert {"leader_changed", "broker_removed", "broker_added"} <= set(kinds)


@pytest.mark.slow
def test_the_demo_ends_with_the_page_of_a_bad_friday(shown: tuple[str, Path]) -> None:
    text, directory = shown
    (out,) = (directory / "demo-out").iterdir()
    sentences = text.partition("The week of these clusters on one page")[2]
    assert "Fleet: 2 of 4 clusters had partitions without a leader;" in sentences
    assert "The gravest one was in cluster-1, from " in sentences
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.slow
def test_the_demo_explains_what_a_real_log_says(shown: tuple[str, Path]) -> None:
    text, _ = shown
    said = text.partition("The metadata log of a real cluster")[2]
    assert "the copies of nodes 1, 2, 3, of 3 voters" in said
    assert "an unclean election: broker 2 was unfenced (offset 92)" in said
    tables = said.partition("rdmeta pipeline silver ")[2]
    assert "2026-11-26 06:09:40.847" in tables  # broker 2 leads, without the records of broker 1
    assert "controller: SELECT broker, epoch, began_at" in tables


def test_without_pyspark_the_demo_takes_the_local_engine_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.util", None)
    with spark_session() as session:
        assert session is None
    assert "without Spark: rdmeta.spark needs more packages" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_lists_and_waits_while_a_broker_is_away(shown: tuple[str, Path]) -> None:
    text, _ = shown
    (lost,) = re.findall(r"is lost: (\d+) partitions have no leader", text)
    *_, section = text.split("The command, while broker 3 is away\n")
    listing, waiting = section.split("  $ rdmeta wait -t orders.eu-0 ")
    first, *rows, rest = listing.partition("--leaderless\n")[2].splitlines()
    assert first.split()[:3] == ["topic", "partition", "leader"]
    assert {line.split()[2] for line in rows} == {"-"}
    (more,) = re.findall(r"and (\d+) lines more", rest)
    assert len(rows) + int(more) == int(lost)
    before, after = waiting.split("the other brokers become leaders\n")
    # Chance decides whether broker 3 leads more partitions of this topic than the first one.
    among = r"(\d+ of 6 partitions of orders\.eu-0, such as )?"
    assert re.search(rf"waiting: {among}orders\.eu-0-0,? ha(s|ve) no leader", before)
    assert "rdmeta wait has ended" not in before
    assert "rdmeta wait has ended with exit code 0" in after


def test_a_command_that_fails_in_the_demo_is_shown_with_its_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        command("127.0.0.1:1", "list", "--nonsense") as failing,
        pytest.raises(Error, match="rdmeta list --nonsense: exit code 2"),
    ):
        show(failing)
    assert "there is no option --nonsense" in capsys.readouterr().out


def test_a_cluster_of_the_users_own_is_only_read_from(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster.create_topic("mine", 4, replication_factor=3)
    cluster.set_leader("mine", 1, None)
    cluster.track_requests()
    done = demo(cwd=tmp_path, BOOTSTRAP=cluster.bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 topics, 4 partitions" in done.stdout
    assert "LeaderNotAvailableError" in done.stdout
    assert {request.api_key for request in cluster.requests()} == {API_VERSIONS, METADATA}
    assert list(tmp_path.iterdir()) == []


def test_hostile_texts_of_the_users_cluster_are_escaped(tmp_path: Path) -> None:
    with Brokers(1, "c\x1b[2Jx[/]\u202e") as brokers:
        brokers.truth.brokers[2] = B(2, "h\n  forged [/] [link=http://x]\x1b", 9, None)
        brokers.truth.topics["t\x9b"] = T("t\x9b", [P(0, 1, 1, (1,))])
        done = demo(cwd=tmp_path, BOOTSTRAP=brokers.bootstrap)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(c.isprintable() or c == "\n" for c in done.stdout + done.stderr)
    assert "h\\n  forged [/] [link=http://x]\\x1b" in done.stdout.replace("\n  ", "")


def test_a_cluster_without_topics_leaves_nothing_to_look_up(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    done = demo("--bootstrap", cluster.bootstrap, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no topic here, so" in done.stdout


def test_a_cluster_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    done = demo("--bootstrap", "127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stdout
    assert "Traceback" not in done.stderr


def test_an_invalid_address_is_a_usage_error(tmp_path: Path) -> None:
    done = demo("--bootstrap", "host:no-port", cwd=tmp_path)
    assert done.returncode == 2
    assert "no-port" in done.stdout
