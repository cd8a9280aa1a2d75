"""Each bad input of docs/reference/commands.md prints what that page says."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import commands
import pytest
from bad_inputs import FILES, Bad, bad_inputs
from broker import Brokers, black_hole
from login_server import LoginServer
from secured import Guard

import rdmeta


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
