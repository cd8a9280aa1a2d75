"""How a run of the command begins and ends: help, usage errors, exit codes, signals, pipes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import commands
import frames
import pytest
from broker import Brokers
from in_process import Running

from rdmeta import ALL, MetadataCache, __version__
from rdmeta.cli.app import COMMANDS

HEAVY = {"asyncio", "confluent_kafka", "logging", "pandas", "pyarrow", "pyspark", "rich", "ssl"}


def test_the_help_lists_each_command_and_imports_none_of_them() -> None:
    done = commands.run("--help")
    assert done.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in done.out
    loaded = commands.modules_of("--help")
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.removeprefix("rdmeta.cli.") in COMMANDS}


def test_the_version_is_printed_without_any_package() -> None:
    assert commands.run("--version") == (0, f"rdmeta {__version__}\n", "")
    assert not commands.modules_of("--version") & {*HEAVY, "click"}


def test_a_version_that_cannot_be_written_ends_like_other_output() -> None:
    ours, closed = os.pipe()
    os.close(ours)
    full = os.open("/dev/full", os.O_WRONLY)
    for stdout, code, said in ((closed, 0, b""), (full, 2, b"rdmeta: No space left on device\n")):
        done = subprocess.run(
            commands.command("--version"),
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=commands.surroundings(),
            check=False,
        )
        os.close(stdout)
        assert (done.returncode, done.stderr) == (code, said)


def test_ctrl_c_while_packages_are_imported_ends_with_130() -> None:
    program = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
"""
    assert commands.run_process("list", program=program + commands.PROGRAM) == (130, "", "")


@pytest.mark.parametrize(
    ("words", "collects"),
    [(["list", "--image", "no-such-file"], "False"), (["embedded", "--", "true"], "True")],
)
def test_a_command_that_keeps_running_collects_its_garbage(words: list[str], collects: str) -> None:
    program = "import atexit, gc, sys\n"
    program += "atexit.register(lambda: print(gc.isenabled(), file=sys.stderr))\n"
    done = commands.run_process(*words, program=program + commands.PROGRAM)
    assert done.err.splitlines()[-1] == collects


def test_each_command_has_help_that_ends_with_two_examples() -> None:
    for name in COMMANDS:
        assert commands.run(name, "--help").code == 0
        assert [words[0] for words in commands.examples(name)] == [name, name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in COMMANDS
        if name not in ("embedded", "generate", "log", "pipeline", "report")
    ],
)
def test_the_examples_run(name: str, tmp_path: Path) -> None:
    with Brokers(3) as brokers:
        for topic in ("orders", "clicks"):
            brokers.truth.create(topic)
        env = {"RDMETA_BOOTSTRAP": brokers.bootstrap}
        for words in commands.examples(name):
            goes_on = name in ("publish", "record") and "--for" not in words
            end = Running.interrupt_after_a_line if goes_on else None
            timed = zip(["", *words], words, strict=False)
            brief = ["0.4" if before in ("--for", "--hold") else word for before, word in timed]
            done = commands.run(*brief, env=env, cwd=tmp_path, meanwhile=end)
            assert (done.code, done.err) == (130 if goes_on else 0, "")


@pytest.mark.parametrize(
    ("package", "line", "said"),
    [
        ("click", "list", "the command needs the extra cli: pip install -e '.[cli]'"),
        (
            "pyarrow",
            "record -o {dir}/x",
            "rdmeta record needs more packages: pip install -e '.[arrow]'",
        ),
        ("prometheus_client", "watch --metrics 9", "pip install -e '.[metrics]'"),
        ("cffi", "embedded", "pip install -e '.[kafka,cffi]'"),
    ],
)
def test_without_a_package_the_command_says_what_to_install(
    package: str, line: str, said: str, tmp_path: Path
) -> None:
    program = f"import sys; sys.modules[{package!r}] = None\n{commands.PROGRAM}"
    env = {"RDMETA_BOOTSTRAP": "127.0.0.1:1"}
    done = commands.run_process(*line.format(dir=tmp_path).split(), program=program, env=env)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("rdmeta: ")
    assert said in done.err


def test_the_command_without_words_shows_its_help() -> None:
    code, out, err = commands.run()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: rdmeta")


# ---- how a run ends -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns a saved state of 20 000 partitions, with odd bytes in a topic's and a rack's name."""
    topics = [frames.T(f"t{n:04}", [frames.P(p) for p in range(10)]) for n in range(2000)]
    topics.append(frames.T(b"odd \xff\x1b[2J\n\xc3\xa9", [frames.P(0)]))
    brokers = [frames.B(1, rack="caf\u00e9 \u6f22"), frames.B(2), frames.B(3)]
    cache = MetadataCache()
    cache.apply(frames.response(12, topics, brokers=brokers), 12, ALL)
    path = tmp_path_factory.mktemp("image") / "state"
    cache.image().save(path)
    return str(path)


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Yields a listener whose connections get no answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        yield listener


def address(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_pipe_that_is_closed_ends_the_run_quietly(image: str) -> None:
    with commands.started("list", "--image", image) as process:
        assert process.next_line() == "broker\thost\tport\track\tcontroller"
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_a_pipe_that_is_closed_before_a_short_output_ends_the_run_quietly(image: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    words = commands.command("list", "--image", image, "-t", "t0000")
    done = subprocess.run(
        words, stdout=theirs, stderr=subprocess.PIPE, env=commands.surroundings(), check=False
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


def test_output_that_cannot_be_written_is_an_error(image: str) -> None:
    for redirection, said in (
        ("> /dev/full", "rdmeta: No space left on device\n"),
        (">&-", "rdmeta: stdout is closed\n"),
    ):
        assert commands.redirected(redirection, "list", "--image", image) == (2, "", said)


@pytest.mark.parametrize("words", ["--help", "--version", "completion bash"])
def test_help_that_cannot_be_written_is_an_error(words: str) -> None:
    done = commands.redirected(">&-", *words.split())
    assert done == (2, "", "rdmeta: stdout is closed\n")


def test_a_closed_stderr_does_not_mix_errors_into_the_output(image: str) -> None:
    words = ("list", "--image", image, "-t", "NOPE", "--table", "topics")
    done = commands.redirected("2>&-", *words)
    assert (done.code, done.out.count("\n")) == (1, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("clusters", [1, 3])
def test_a_signal_ends_a_run_that_waits_for_a_server(
    number: int, clusters: int, silent: socket.socket, tmp_path: Path
) -> None:
    env = commands.clusters(tmp_path, **{f"c{each}": address(silent) for each in range(clusters)})
    with commands.started("list", "-c", "all", "--timeout", "50", env=env) as process:
        connections = [silent.accept()[0] for _ in range(clusters)]
        began = time.monotonic()
        code = 130 if number == signal.SIGINT else -signal.SIGTERM
        assert process.ended(number) == (code, "", "")
        assert time.monotonic() - began < 10
        for each in connections:
            each.close()


def test_ctrl_c_on_a_terminal_ends_with_130(silent: socket.socket) -> None:
    words = ("list", "-b", address(silent), "--timeout", "50")
    with commands.Terminal(*words) as terminal:
        connection, _ = silent.accept()
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text
        connection.close()


def test_a_terminal_may_be_resized_while_a_server_is_slow(silent: socket.socket) -> None:
    """The answers to ApiVersions come late, in two parts, with a resize before each."""
    words = ("list", "-b", address(silent), "--timeout", "50")
    with commands.Terminal(*words) as terminal:
        connection, _ = silent.accept()
        assert connection.recv(1000)
        for columns in (20, 200):
            terminal.resize(10, columns)
            time.sleep(0.1)
            connection.sendall(b"\0\0")
        connection.close()
        assert terminal.end() == 3
        (line,) = terminal.text.splitlines()
        assert line.startswith(f"rdmeta: {address(silent)}: ")


def test_a_terminal_may_be_resized_while_a_table_is_drawn(image: str) -> None:
    with commands.Terminal("list", "--image", image, columns=60) as terminal:
        terminal.wait_for("t0000")
        terminal.resize(24, 200)
        assert terminal.end() == 0
        lines = terminal.text.splitlines()
    assert sum(line.startswith("t") and "1,2,3" in line for line in lines) == 20_000


@pytest.mark.parametrize(
    ("form", "env"),
    [
        ([], LOCALE := {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}),
        (["--json"], LOCALE),
        (["--csv", "--table", "brokers"], LOCALE),
        ([], {"PYTHONIOENCODING": "latin-1"}),
    ],
)
def test_a_locale_that_is_not_utf8_gets_escapes(
    image: str, env: dict[str, str], form: list[str]
) -> None:
    words = commands.command("list", "--image", image, *form)
    done = subprocess.run(words, env=commands.surroundings(env), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    e = b"\xe9" if "PYTHONIOENCODING" in env else b"\\u00e9" if "--json" in form else b"\\xe9"
    assert b"caf" + e + b" \\u6f22" in done.stdout


def test_odd_bytes_in_a_topics_name_are_escaped(image: str) -> None:
    done = commands.run("list", "--image", image, "-t", "/odd/", "--table", "partitions")
    assert done.out.splitlines()[1].startswith("odd \\udcff\\x1b[2J\\n\u00e9\t0\t1")
    words = ("list", "--image", image, "-t", "/odd/", "--json")
    found = commands.checked_json(commands.run(*words).out)
    assert "odd \udcff\x1b[2J\n\u00e9" in [topic["name"] for topic in found["topics"]]
    with commands.Terminal("list", "--image", image, "-t", "/odd/") as terminal:
        assert terminal.end() == 0
    assert "odd \\udcff\\x1b[2J\\n\u00e9" in terminal.text
    assert "\x1b[2J" not in terminal.raw


def test_odd_bytes_on_the_command_line_are_named_with_escapes(image: str) -> None:
    for words in (["-t", "\udcff\x1b"], ["-t", "/\udcff(/"], ["--table", "\udcff"]):
        done = commands.run("list", "--image", image, *words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert "\\udcff" in done.err


def test_a_pipe_gets_lines_without_rich_and_large_libraries(image: str) -> None:
    assert not commands.modules_of("list", "--image", image) & HEAVY
    assert not commands.modules_of("list", "--image", image, "--json") & HEAVY


def test_output_begins_before_all_rows_are_objects(image: str) -> None:
    program = """
import re, sys
from rdmeta.cli import main
try:
    main()
finally:
    peak = re.search("VmHWM: *(.*) kB", open("/proc/self/status").read())
    print(peak[1], file=sys.stderr)
"""
    small, large = (
        int(commands.run_process("list", "--image", image, *words, program=program).err)
        for words in (["-t", "t0000"], [])
    )
    assert large - small < 3000, (small, large)  # kilobytes; 20 000 partitions are 7 MB of objects
