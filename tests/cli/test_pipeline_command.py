"""`rdmeta pipeline` makes tables, says what it did, and checks them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

import commands
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from processes import environment
from recorded import cluster_day, contents

from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.lock import Lock
from rdmeta.pipeline.store import Store

RENAMES = Path(__file__).parents[1] / "support/renames"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for day in (1, 2):
        cluster_day(tmp_path / "history", "one", day)
    return tmp_path / "history"


def pipeline(*words: str | Path, code: int = 0) -> commands.Done:
    done = commands.run("pipeline", *map(str, words))
    assert done.code == code, done.err
    return done


def json(*words: str | Path, code: int = 0) -> Any:
    return commands.checked_json(pipeline(*words, "--json", code=code).out)


@pytest.mark.slow
def test_tables_are_made_and_a_second_run_makes_nothing(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = json("all", source, out, "--engine", "local")
    assert (first["copied"], first["read"], first["made"]) == (4, 4, 8 + len(MEASURES))
    assert first["rows_in"] == first["rows_out"] == 26
    assert first["holes"] == 1
    assert first["tables"]["observation"]["rows"] == 2
    # Without tasks no JVM is started, so the engine does not matter.
    second = json("all", source, out, "--engine", "spark")
    assert (first["engine"], second["engine"]) == ("local", "spark")
    assert (second["copied"], second["made"]) == (0, 0)
    assert second["unchanged"] == 8 + len(MEASURES)
    assert second["tables"]["observation"] == {**first["tables"]["observation"], "made": 0}
    assert json("check", out)["faults"] == []


@pytest.mark.slow
def test_the_text_has_a_line_for_each_table_and_count(source: Path, tmp_path: Path) -> None:
    done = pipeline("all", source, tmp_path / "out", "--engine", "local")
    tables, counts = done.out.split("\n\n")
    assert tables.splitlines()[0] == "table\trows\tbytes\tparts\tmade"
    assert "observation\t2\t" in tables
    assert "rows_in\t26\nrows_out\t26\n" in counts
    assert done.err == ""


@pytest.mark.slow
def test_a_quiet_run_prints_nothing_but_what_was_asked_for(source: Path, tmp_path: Path) -> None:
    words = ("all", source, tmp_path / "out", "--engine", "local", "-q")
    assert pipeline(*words, "--dry-run").out != ""
    done = pipeline(*words)
    assert (done.out, done.err) == ("", "")
    assert json(*words)["unchanged"] == 8 + len(MEASURES)


def test_a_path_that_is_not_utf_8_is_an_error(source: Path, tmp_path: Path) -> None:
    other = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    shutil.copytree(source, other)
    for places in ((other, str(tmp_path / "out")), (str(source), other)):
        done = pipeline("all", *places, "--engine", "local", code=2)
        assert done.err.startswith(f"rdmeta: {tmp_path}/\ufffd: its path is not UTF-8")


def test_a_dry_run_says_what_would_be_made_and_why_and_writes_nothing(
    source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    found = json("all", source, out, "--dry-run")
    assert found["copies"] == 4
    assert [(task["part"], task["reason"]) for task in found["tasks"]] == [
        ("0 of 1", "2026-11-01 to 2026-11-02 are new"),
        ("gold", "gold of 2026-11 is new or lost"),
    ]
    assert not out.exists()
    text = pipeline("all", source, out, "--dry-run").out
    assert "one\t2026-11\t0 of 1\t26\t2026-11-01 to 2026-11-02 are new\n" in text


@pytest.mark.slow
def test_bronze_then_silver_is_the_same_as_all(source: Path, tmp_path: Path) -> None:
    assert json("bronze", source, tmp_path / "a", "--engine", "local")["made"] == 0
    json("silver", tmp_path / "a", "--engine", "local")
    json("all", source, tmp_path / "b", "--engine", "local")
    json("silver", source, tmp_path / "c", "--engine", "local")
    silver = [
        {name: c for name, c in contents(tmp_path / each).items() if name.startswith("silver")}
        for each in "abc"
    ]
    assert silver[0] == silver[1] == silver[2]
    assert not (tmp_path / "c/bronze").exists()


def test_what_is_set_aside_is_named_and_fails_a_strict_run(source: Path, tmp_path: Path) -> None:
    (source / "changes-x.parquet").write_bytes(b"")
    words = ("silver", source, tmp_path / "out", "--engine", "local")
    done = pipeline(*words)
    assert f"rdmeta: {source}/changes-x.parquet: quarantined: " in done.err
    assert pipeline(*words, "--quiet").err == ""
    found = json(*words, "--strict", code=1)
    assert [fault["path"] for fault in found["faults"]] == [f"{source}/changes-x.parquet"]


def test_days_whose_input_is_gone_fail_a_strict_run(source: Path, tmp_path: Path) -> None:
    words = ("silver", source, tmp_path / "out", "--engine", "local")
    pipeline(*words, "--strict")
    for path in source.rglob("*.parquet"):
        path.unlink()
    cluster_day(source, "one", 3)
    found = json(*words, "--strict", code=1)
    assert [each["day"] for each in found["days_gone"]] == ["2026-11-01", "2026-11-02"]
    assert "one: input of 2026-11-01 is gone; its tables stay" in pipeline(*words).err


def test_check_names_each_file_that_differs(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline("silver", source, out, "--engine", "local")
    parts = sorted(out.glob("silver/v1/*/*/*/*.parquet"))
    parts[0].unlink()
    parts[1].write_bytes(parts[2].read_bytes())
    shutil.copy(parts[3], parts[3].with_name("another.parquet"))
    faults = {fault["path"]: fault["reason"] for fault in json("check", out, code=1)["faults"]}
    assert faults.keys() == {
        str(path) for path in (parts[0], parts[1], parts[3].with_name("another.parquet"))
    }
    assert faults[str(parts[0])] == "it is missing"


def test_a_day_in_other_digits_is_refused(source: Path, tmp_path: Path) -> None:
    day = "".join(chr(ord(each) + 0xFEE0) if each.isdigit() else each for each in "2026-11-01")
    done = pipeline("all", source, tmp_path / "out", "--since", day, "--engine", "local", code=2)
    assert "--since needs a day such as 2026-11-22" in done.err


def test_names_of_clusters_select_them(source: Path, tmp_path: Path) -> None:
    cluster_day(source, "two", 1)
    names = tmp_path / "names"
    names.write_text("one=production\n")
    words = ("silver", source, tmp_path / "out", "--engine", "local", "--names", names)
    found = json(*words, "--clusters", "production", "--since", "2026-11-02")
    assert found["tables"]["observation"]["rows"] == 1


@pytest.mark.slow
def test_a_terminal_shows_bars(source: Path, tmp_path: Path) -> None:
    words = ("pipeline", "bronze", str(source), str(tmp_path / "out"))
    with commands.Terminal(*words) as terminal:
        assert terminal.end() == 0
        assert "bronze" in terminal.text
        assert "1/1" in terminal.text


def test_columns_and_kinds_of_a_later_version_are_warned_about_once(
    source: Path, tmp_path: Path
) -> None:
    found = ((path, pq.ParquetFile(path).read()) for path in source.rglob("*.parquet"))
    path, table = next((p, t) for p, t in found if "leader_changed" in t["kind"].to_pylist())
    kinds = pc.replace_substring(table["kind"], "leader_changed", "mood_changed")
    place = table.schema.get_field_index("kind")
    changed = table.set_column(place, table.schema.field(place), kinds)
    pq.write_table(changed.append_column("mood", kinds), path)
    done = pipeline("silver", source, tmp_path / "out", "--engine", "local")
    assert done.err.splitlines() == [
        "rdmeta: this version does not know these columns, and passes over them: mood",
        "rdmeta: this version does not know the kinds of 4 changes: passed over",
    ]
    parts = (tmp_path / "out/silver/v1/observation").rglob("*.parquet")
    partial = [v for part in parts for v in pq.ParquetFile(part).read()["partial"].to_pylist()]
    assert sorted(partial) == [False, True]


@pytest.mark.slow
def test_two_commands_at_once_make_the_tables_of_one(source: Path, tmp_path: Path) -> None:
    for day in range(3, 6):
        cluster_day(source, f"cluster-{day}", day)
    out, whole = tmp_path / "out", tmp_path / "whole"
    words = ("pipeline", "all", str(source), str(out), "--engine", "local")
    with commands.started(*words) as one, commands.started(*words) as other:
        ended = [process.ended(timeout=60) for process in (one, other)]
    assert 0 in [done.code for done in ended]
    assert all(done.code == 0 or "works on it" in done.err for done in ended)
    pipeline("all", source, whole, "--engine", "local")
    made, wanted = contents(out), contents(whole)
    assert {n: c for n, c in made.items() if n.startswith("silver")} == {
        n: c for n, c in wanted.items() if n.startswith("silver")
    }
    assert json("check", out)["faults"] == []


_TWO_PROCESSES = """
import os
from rdmeta.pipeline import attempting
attempting._FEW_TASKS = 0
os.cpu_count = lambda: 2
"""


@pytest.mark.parametrize(
    ("program", "number", "code"),
    [
        pytest.param(program, number, code, marks=getattr(pytest.mark, mark))
        for program, number, code, mark in (
            (_TWO_PROCESSES, signal.SIGINT, 130, "proof"),
            (_TWO_PROCESSES, signal.SIGTERM, -15, "slow"),
            ("", signal.SIGINT, 130, "slow"),
            ("", signal.SIGTERM, -15, "slow"),
        )
    ],
)
def test_a_signal_ends_a_run_without_a_word_and_the_next_one_goes_on(
    number: int, code: int, program: str, source: Path, tmp_path: Path
) -> None:
    cluster_day(source, "two", 1)
    out, told = tmp_path / "out", tmp_path / "told"
    told.mkdir()
    words = ("all", str(source), str(out), "--engine", "local")
    paths = os.pathsep.join((str(RENAMES), environment()["PYTHONPATH"]))
    env = {"PYTHONPATH": paths, "TEST_RENAMES": str(told), "TEST_SLOW": "0.2"}
    started = commands.started(
        "pipeline", *words, "--json", env=env, program=program + commands.PROGRAM
    )
    with started as process:
        until = time.monotonic() + 60
        while "/silver/" not in renames(told):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert process.ended(number) == (code, "", "")
    workers = {int(line.split()[1]) for line in renames(told).splitlines()} - {process.pid}
    assert bool(workers) == bool(program)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert (out / "lock").read_text() == '{"failed": true}\n'
    assert not (out / "manifest.json").exists()
    assert json(*words)["tables"]["observation"]["rows"] == 3
    assert json("check", out)["faults"] == []


def renames(told: Path) -> str:
    path = told / "renames"
    return path.read_text() if path.exists() else ""


@pytest.mark.slow
def test_the_tables_are_made_also_if_stdout_cannot_be_written(source: Path, tmp_path: Path) -> None:
    for to, said in (("/dev/full", "No space left on device"), ("&-", "is closed")):
        out = tmp_path / to[-4:]
        done = commands.redirected(f">{to}", "pipeline", "silver", str(source), str(out))
        assert (done.code, said in done.err) == (2, True)
        assert json("check", out)["faults"] == []


def test_a_folder_that_cannot_be_written_is_named(source: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = pipeline("all", source, file, "--json", "--engine", "local", code=2)
    assert (done.out, done.err) == ("", f"rdmeta: {file}/lock: Not a directory\n")
    done = pipeline("all", source, "/proc/tables", "--json", "--engine", "local", code=2)
    assert (done.out, done.err) == ("", "rdmeta: /proc/tables: No such file or directory\n")


GOOGLE = "gs://anonymous@bucket/x?"
AMAZON = "s3://a:b@bucket/x?"
REGION = f"{AMAZON}region=eu-west-1&"


@pytest.mark.parametrize(
    ("action", "store", "number", "code"),
    [
        ("check", AMAZON, signal.SIGINT, 130),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in (
                ("all", AMAZON, None, 2),
                ("all", GOOGLE, None, 2),
                ("all", REGION, signal.SIGTERM, -15),
                ("all", REGION, None, 2),
                ("check", AMAZON, None, 2),
                ("all", GOOGLE, signal.SIGINT, 130),
                ("check", GOOGLE, signal.SIGTERM, -15),
            )
        ),
    ],
)
def test_a_store_without_an_answer_ends_a_run_and_so_does_a_signal(
    action: str, store: str, number: signal.Signals | None, code: int, source: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        uri = f"{store}scheme=http&endpoint_override={place}"
        places = [uri] if action == "check" else [str(source), uri]
        timeout = "60" if number else "0.2"
        with commands.started("pipeline", action, *places, "--timeout", timeout) as process:
            if number:
                silent.accept()[0].close()  # it has been asked
            done = process.ended(number)
    assert done.code == code, done.err
    text = "the store did not answer within 0.2 s: check the network"
    assert text in done.err if number is None else done.err == ""


def counted_java(folder: Path) -> tuple[dict[str, str], Path]:
    """Returns an environment whose Java only leaves a file, and that file."""
    java, started = folder / "bin/java", folder / "started"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch '{started}'\necho a line of Java >&2\nexit 1\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder)}, started


@pytest.mark.slow
def test_no_java_is_started_when_nothing_is_new(source: Path, tmp_path: Path) -> None:
    env, started = counted_java(tmp_path / "java")
    out = tmp_path / "out"
    pipeline("all", source, out, "--engine", "local")
    words = ("pipeline", "all", str(source), str(out), "--engine", "spark")
    for more in ((), ("--dry-run",), ("--master", "local[2]")):
        done = commands.run(*words, *more, env=env)
        assert done.code == 0, done.err
        assert not started.exists()
    cluster_day(source, "one", 3)
    assert commands.run(*words, "--dry-run", env=env).code == 0
    assert not started.exists()
    done = commands.run_process(*words, env=env)
    assert started.exists()
    assert done.code == 3
    assert "a line of Java\n" in done.err
    assert done.err.splitlines()[-1].startswith("rdmeta: Spark has not started: ")
    quiet = commands.run_process(*words, "-q", env=env)
    assert (quiet.code, quiet.err.splitlines()) == (3, done.err.splitlines()[-1:])
    pipeline("all", source, out, "--engine", "local")
    assert json("check", out)["faults"] == []


HERE = "rdmeta: the tasks run in processes of this machine, as "


def test_the_page_names_spark_first_and_what_each_engine_needs() -> None:
    lines = Path("docs/pipeline.md").read_text().splitlines()
    first = next(line for line in lines if line.startswith("    rdmeta pipeline"))
    assert "--engine spark " in first
    local = next(line for line in lines if "`--engine local`" in line)
    assert "the extra `pipeline`" in local


def test_without_an_engine_few_rows_go_to_processes(source: Path, tmp_path: Path) -> None:
    env, started = counted_java(tmp_path / "java")
    words = ("pipeline", "silver", str(source), str(tmp_path / "out"))
    done = commands.run(*words, "--json", env=env)
    assert commands.checked_json(done.out)["engine"] == "local"
    assert done.err == f"{HERE}the plan has 26 rows (--engine chooses another)\n"
    assert commands.run(*words, "-q", env=env).err == ""
    assert not started.exists()


@pytest.mark.parametrize(
    ("more", "env", "cause"),
    [
        (("--master", "sc://127.0.0.1:1"), {}, "--master names one"),
        pytest.param(
            (),
            {"SPARK_REMOTE": "sc://127.0.0.1:1"},
            "SPARK_REMOTE names one",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_master_chooses_spark(
    source: Path, tmp_path: Path, more: tuple[str, ...], env: dict[str, str], cause: str
) -> None:
    words = ("pipeline", "silver", str(source), str(tmp_path / "out"), *more)
    done = commands.run(*words, "--dry-run", "--json", env=env)
    assert commands.checked_json(done.out)["engine"] == "spark"
    assert done.err == f"rdmeta: the tasks run on Spark, as {cause} (--engine chooses another)\n"
    done = commands.run(*words, "-q", env=env)
    assert "sc://127.0.0.1:1: no Spark Connect server answers: " in done.err
    done = commands.run(*words[:4], "--engine", "local", env=env)
    assert (done.code, done.err) == (0, "")


@pytest.mark.slow
def test_many_rows_choose_spark_where_it_can_start(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env, _ = counted_java(tmp_path / "java")
    few = f"from rdmeta.cli import pipeline; pipeline._MANY_ROWS = 25; {commands.PROGRAM}"
    monkeypatch.setattr("rdmeta.cli.pipeline._MANY_ROWS", 25)
    words = ("pipeline", "all", str(source), str(tmp_path / "out"), "--json")
    done = commands.run(*words, "--dry-run", env=env)
    assert commands.checked_json(done.out)["engine"] == "spark"
    assert (
        "the tasks run on Spark, as the plan has 26 rows (--engine chooses another)\n" in done.err
    )
    bare = f"import sys; sys.modules['pyspark'] = None; {few}"
    done = commands.run_process(*words, "--dry-run", env=env, program=bare)
    assert commands.checked_json(done.out)["engine"] == "local"
    assert done.err.startswith(f"{HERE}Spark cannot start for the plan's 26 rows: ")
    assert "pip install -e '.[spark]'" in done.err
    done = commands.run(*words, env={"JAVA_HOME": str(tmp_path)})
    assert commands.checked_json(done.out)["engine"] == "local"
    assert "Spark needs Java 17 or later" in done.err


def test_a_run_on_spark_is_refused_before_java_starts_while_another_one_works(
    source: Path, tmp_path: Path
) -> None:
    env, started = counted_java(tmp_path / "java")
    words = ("pipeline", "all", str(source), str(tmp_path / "out"), "--engine", "spark")
    with Lock(Store(tmp_path / "out")):
        done = commands.run(*words, env=env)
    assert done.code == 2
    assert f"process {os.getpid()} on" in done.err
    assert not started.exists()


def test_a_spark_connect_server_that_does_not_listen_is_named(source: Path, tmp_path: Path) -> None:
    """It needs no Java on this machine."""
    env = {"JAVA_HOME": str(tmp_path)}
    words = ("pipeline", "all", str(source), str(tmp_path / "out"), "--master", "sc://127.0.0.1:1")
    done = commands.run(*words, env=env)
    assert done.code == 3
    assert "rdmeta: sc://127.0.0.1:1: no Spark Connect server answers: " in done.err


@pytest.mark.slow
def test_a_run_without_pyspark_names_the_extra_and_the_other_engine(
    source: Path, tmp_path: Path
) -> None:
    program = f"import sys; sys.modules['pyspark'] = None; {commands.PROGRAM}"
    words = ("pipeline", "all", str(source), str(tmp_path / "out"), "--engine", "spark")
    done = commands.run_process(*words, program=program)
    assert done.code == 2
    assert done.err.endswith("pip install -e '.[spark]', or give --engine local\n")
    copies = commands.run_process("pipeline", "bronze", *words[2:4], program=program)
    assert (copies.code, copies.err.startswith(f"{HERE}the plan has 26 rows")) == (0, True)


@pytest.mark.slow
def test_vacuum_prints_what_it_removes(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    out = tmp_path / "out"
    for day in (1, 2):
        cluster_day(tmp_path / "history", "one", day)
        words = ("silver", tmp_path / "history", out, "--engine", "local", "--tables", "delta")
        pipeline(*words, "-q")
    would = json("vacuum", out, "--older-than", "0h", "--dry-run")
    assert (would["dry_run"], len(would["removed"])) == (True, 8)
    done = pipeline("vacuum", out, "--older-than", "0h")
    assert done.out.splitlines() == ["removed", *would["removed"]]
    assert not any((out / name).exists() for name in would["removed"])
    assert json("check", out)["faults"] == []
