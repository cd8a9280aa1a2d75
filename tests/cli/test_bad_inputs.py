"""Each bad input of docs/reference/commands.md prints what that page says; others are a line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
from bad_inputs import FILES, Bad, bad_inputs
from broker import Brokers, black_hole
from kraft_logs import GOLDEN
from login_server import LoginServer
from secured import Guard

import rdmeta

# Command lines, and a part of the line that they print.
OTHERS = """
completion | Missing argument '{bash|zsh|fish}'
embedded --brokers 0 | 0 is not in the range 1<=x<=1000
embedded --brokers two | 'two' is not a valid integer range
embedded --topic :3 | --topic ':3': '' is no topic's name: it is empty
embedded --topic a/b | --topic 'a/b': 'a/b' is no topic's name: it has characters other
embedded --topic a:b | --topic 'a:b': expected NAME[:PARTITIONS[:REPLICAS]]
embedded --topic a:1:1:1 | expected NAME[:PARTITIONS[:REPLICAS]]
embedded --topic a:0 | --topic 'a:0': expected 1 to 100000 partitions
embedded --topic a:{nines} | expected 1 to 100000 partitions
embedded --topic a:1:0 | expected 1 to 100000 partitions, and 1 replica or more
embedded --topic a:1:4 | --topic 'a:1:4': that many replicas need --brokers 4
embedded --topic a --topic a:2 | --topic: a topic is named twice
embedded --broker 2 | there is no option --broker; did you mean --brokers?
image | Missing argument 'save|diff|verify'
image sav x | 'sav' is not one of 'save', 'diff', 'verify'
image save x y | image save takes one FILE, not 2
image diff x y z | image diff takes one FILE, or two, not 3
image verify missing | missing: No such file or directory
image diff missing -b 127.0.0.1:1 | missing: No such file or directory
image diff x y -b a:1 | image diff reads files and asks no cluster
image verify x -b a:1 | image verify reads files and asks no cluster
image save x | no cluster is named
list --table topics --skew | --table topics contradicts --skew
list --table topics --json | --json has every table: leave out --table
publish state -t 'a b' | -t 'a b' is no topic's name
publish state -t '/(/' | no regular expression
publish state --every 3601 | --every needs 0.001 to 3600 seconds
publish state --for 0 | --for needs a number of seconds above 0
quorum --max-lag -1 | -1 is not in the range x>=0
quorum --max-lag few | 'few' is not a valid integer range
quorum --every 1 | --every and --for need --watch
quorum --watch --every 0 | --every needs a number of seconds above 0
quorum --watch --parquet x | --watch prints as it goes: leave out --parquet
record -o /dev/null/x | /dev/null/x: Not a directory
record -o /dev/null | /dev/null: Not a directory
record -o x --every 0 | --every needs 0.001 to 3600 seconds
record -o x --every nan | --every needs 0.001 to 3600 seconds
record -o x --every 4000 | --every needs 0.001 to 3600 seconds
record -o x --flush-every -1 | --flush-every needs a number of seconds above 0
record -o x --for soon | 'soon' is not a valid float
record -o x -X no.such=1 | no.such
wait -p 0 --no-urp | -p needs a topic: give -t NAME
wait -t a --gone --no-urp | --gone and --no-urp contradict each other
wait -t a --hold -1 | --hold needs a number of seconds above 0
wait -t a --isr 0 | 0 is not in the range x>=1
wait -t 'a b' | -t 'a b' is no topic's name
wait -t a -X client.idd=x | unknown option 'client.idd'
watch --csv --live | --csv and --live exclude each other
watch --count 0 | 0 is not in the range x>=1
watch --for nan | --for needs a number of seconds above 0
watch -t '/(/' | -t /(/: no regular expression
watch -X client.idd=x | unknown option 'client.idd'
list --timeout nan | --timeout needs a number of seconds above 0
list -X secret | -X needs key=value, such as -X security.protocol=ssl
list -t '' | -t '' is no topic's name: it is empty
"""
# These ask no cluster, or name one themselves.
OF_FILES = ("completion", "embedded", "image")


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yields what the names in braces stand for."""
    directory = tmp_path_factory.mktemp("files")
    guard = Guard(None, LoginServer({"alice": "secret"}))
    with (
        rdmeta.EmbeddedCluster(brokers=1) as cluster,
        Brokers(1, guard=guard) as secured,
        black_hole() as silent,
    ):
        cluster.create_topic("orders", partitions=1, replication_factor=1)
        for name, text in FILES.items():
            directory.joinpath(name).write_text(text.replace("{server}", cluster.bootstrap))
        yield {
            "server": cluster.bootstrap,
            "secured": secured.bootstrap,
            "closed": "127.0.0.1:1",
            "silent": silent,
            "dir": str(directory),
            "log": str(GOLDEN / "4.3.0"),
        }


@pytest.mark.parametrize("bad", bad_inputs(), ids=lambda bad: bad.line)
def test_a_bad_input_prints_one_line_and_ends_with_its_code(
    bad: Bad, values: dict[str, str]
) -> None:
    line, text, code = bad.filled(values)
    words = shlex.split(line)
    start = words.index("rdmeta")
    env = dict(word.split("=", 1) for word in words[:start])
    done = commands.run(*words[start + 1 :], env=env)
    # A port that does not speak TLS may close or reset the connection.
    said = done.err.replace("the port reset", "the port closed")
    assert (done.code, said) == (code, f"{text}\n")
    assert code == 1 or not done.out


@pytest.mark.parametrize(("line", "said"), [o.split(" | ") for o in OTHERS.strip().splitlines()])
def test_any_other_bad_input_is_one_line_and_ends_with_2(
    line: str, said: str, tmp_path: Path
) -> None:
    words = shlex.split(line.format(nines="9" * 400))
    where = () if words[0] in OF_FILES else ("-b", "127.0.0.1:1")
    done = commands.run(*words, *where, cwd=tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("rdmeta: ")
    assert said in done.err
