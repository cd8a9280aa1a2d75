"""The forms of a table: terminal, lines, CSV, Parquet; and JSON."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyarrow import parquet

from rdmeta.cli.output import Output, Share, Stream, Table, TableColumn, json_text, rfc3339

COLUMNS = (
    TableColumn("topic"),
    TableColumn("partition", "integer"),
    TableColumn("isr", "integers"),
    TableColumn("up", "flag"),
    TableColumn("since", "time"),
)
TIME = datetime(2026, 1, 31, 13, 0, 0, 1500, timezone(timedelta(hours=1)))
ROWS = [("orders", 0, (1, 2), True, TIME), ("a,b", None, (), False, None)]


def printed(form: str, capsys: pytest.CaptureFixture[str], rows: list[tuple[object, ...]]) -> str:
    Output(form).tables(Table(COLUMNS, iter(rows)))
    return capsys.readouterr().out


def test_plain_lines_have_tabs_and_a_header(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("text", capsys, list(ROWS)) == (
        "topic\tpartition\tisr\tup\tsince\n"
        "orders\t0\t1,2\ttrue\t2026-01-31T12:00:00.001Z\n"
        "a,b\t-\t-\tfalse\t-\n"
    )


@pytest.mark.parametrize("form", ["text", "csv"])
def test_a_cell_has_its_own_text_whatever_cells_came_before(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cells: list[object] = [1, True, 0, False, Share(0), Share(1), (1,), "1"] * 2
    Output(form).tables(
        Table([TableColumn("value"), TableColumn("n", "integer")], [(c, 1) for c in cells])
    )
    shares = ["+0.0%", "+100.0%"] if form == "text" else ["0.0", "1.0"]
    texts = ["1", "true", "0", "false", *shares, "1", "1"] * 2
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out), delimiter="\t,"[form == "csv"]))
    assert rows == [["value", "n"], *([text, "1"] for text in texts)]


def test_many_different_cells_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(f"t{n}", n, (n, n + 1)) for n in range(25_000)]
    Output("text").tables(Table(COLUMNS[:3], rows))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [f"t{n}\t{n}\t{n},{n + 1}" for n in range(25_000)]


def test_a_row_that_lacks_a_cell_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    for rows in ([("orders",)], [("orders", 1), ("orders",)]):
        with pytest.raises(ValueError, match="argument 2 is shorter"):
            Output("text").tables(Table(COLUMNS[:2], rows))


def test_an_absent_cell_of_csv_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(csv.reader(io.StringIO(printed("csv", capsys, list(ROWS))))) == [
        ["topic", "partition", "isr", "up", "since"],
        ["orders", "0", "1,2", "true", "2026-01-31T12:00:00.001Z"],
        ["a,b", "", "", "false", ""],
    ]


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "=a,b", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201"]


@pytest.mark.parametrize(("form", "mark"), [("csv", "'"), ("csv-raw", "")])
def test_no_text_of_csv_is_a_formula_and_numbers_stay_numbers(
    form: str, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [
        TableColumn("text"),
        TableColumn("texts", "texts"),
        TableColumn("n", "integer"),
        TableColumn("s", "share"),
    ]
    cells = [(text, tuple(text.split(",")), -1, Share(-0.5)) for text in FORMULAS]
    cells.append(("a=b", ("a", "=b"), -2, Share(1)))
    Output(form).tables(Table(columns, cells))
    out = capsys.readouterr().out
    wanted = [[mark + text, mark + text, "-1", "-0.5"] for text in FORMULAS]
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[1:] == [*wanted, ["a=b", "a,=b", "-2", "1.0"]]
    stream = Stream(Output(form), columns)
    stream.header()
    for row in cells:
        stream.write(row)
    assert capsys.readouterr().out == out


def test_text_for_people_has_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("text", capsys, [("-1", 0, (), None, None)]).splitlines()[1].startswith("-1\t")


@pytest.mark.parametrize("form", ["text", "csv"])
def test_a_name_sends_no_control_characters(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(form, capsys, [("a\x1b[2Jb\tc\nd\udcff\u202e", 0, (), False, None)])
    assert text.splitlines()[1].startswith("a\\x1b[2Jb\\tc\\nd\\udcff\\u202e")


def test_an_empty_line_separates_two_plain_tables(capsys: pytest.CaptureFixture[str]) -> None:
    Output("text").tables(Table([TableColumn("a")], [("1",)]), Table([TableColumn("b")], []))
    assert capsys.readouterr().out == "a\n1\n\nb\n"


def test_rows_are_written_before_all_of_them_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> object:
        for number in range(2500):
            yield (str(number),)
        assert capsys.readouterr().out.count("\n") >= 2000
        yield ("last",)

    Output("text").tables(Table([TableColumn("n")], rows()))  # type: ignore[arg-type]
    assert capsys.readouterr().out.endswith("last\n")


def test_a_parquet_file_has_types_and_appears_whole(tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"

    def rows() -> object:
        yield from ROWS
        assert not file.exists()
        yield ("odd\udcff", 1, (3,), True, TIME)

    Output("parquet", str(file)).tables(Table(COLUMNS, rows()))  # type: ignore[arg-type]
    assert parquet.read_table(file).to_pylist() == [
        {"topic": "orders", "partition": 0, "isr": [1, 2], "up": True, "since": TIME},
        {"topic": "a,b", "partition": None, "isr": [], "up": False, "since": None},
        {"topic": "odd\\udcff", "partition": 1, "isr": [3], "up": True, "since": TIME},
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_a_parquet_file_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def rows() -> object:
        yield ROWS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Output("parquet", str(tmp_path / "f")).tables(Table(COLUMNS, rows()))  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_json_is_ascii_with_times_as_text() -> None:
    assert json_text({"a": (1, None), "t": TIME, "n": "é\udcff"}) == (
        '{"a":[1,null],"t":"2026-01-31T12:00:00.001Z","n":"\\u00e9\\udcff"}'
    )
    with pytest.raises(TypeError, match="object has no form in JSON"):
        json_text(object())


def test_a_time_is_in_utc() -> None:
    assert rfc3339(TIME) == "2026-01-31T12:00:00.001Z"


Draw = Callable[..., str]


@pytest.fixture
def draw(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Draw:
    """Returns a function that draws rows with these topics on a terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def drawn(topics: Iterable[str], color: bool = True) -> str:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        rows = [(topic, n, (1, 2, 3)) for n, topic in enumerate(topics)]
        Output("text", color=color).tables(Table(COLUMNS[:3], rows))
        return capsys.readouterr().out

    return drawn


def test_a_terminal_gets_all_of_a_name_that_is_too_wide_for_it(draw: Draw) -> None:
    text = draw(["Z" * 249])
    assert text.startswith("\x1b[1mtopic  ")
    assert text.count("Z") == 249


def test_columns_on_a_terminal_stand_below_each_other(draw: Draw) -> None:
    assert draw(["z" * n + "\u6f22" for n in range(3)], color=False) == (
        "topic  partition  isr\n"
        "\u6f22             0  1,2,3\n"
        "z\u6f22            1  1,2,3\n"
        "zz\u6f22           2  1,2,3\n"
    )


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("COLUMNS", "9")])
def test_a_terminal_gets_no_escape_sequences_if_it_wants_none(
    draw: Draw, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    text = draw(["a"], color=name != "COLUMNS")
    assert "\x1b" not in text
    assert "1,2,3" in text


def test_a_long_table_on_a_terminal_has_one_header_and_may_become_wider(draw: Draw) -> None:
    lines = draw("z" * (n // 500) for n in range(2500)).splitlines()
    assert [line.index("1,2,3") for line in lines[1::500]] == [18] * 5
    assert len(lines) == 2501


def test_a_closed_stdout_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OSError, match="stdout is closed"):
        Output("json").json(["{}"])
