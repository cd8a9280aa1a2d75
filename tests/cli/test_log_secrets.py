"""No word prints a secret, in any form, unless it is asked to; then it says so."""

from __future__ import annotations

import base64
from pathlib import Path

import commands
import pytest
from kraft_frames import FRAMES
from kraft_logs import GOLDEN, LOGS, SECRETS, credential_keys, secrets_of_logs

from rdmeta.generate.logs import Log, batch_of, value_of

WORDS = (
    ["info"], ["dump"], ["dump", "--batches"], ["ls"], ["find"], ["tree"], ["cat"],
    ["changes"], ["explain", "--broker", "2"], ["diff", "1", "130"], ["check"],
)  # fmt: skip
NAMES = [*(made.name for made in LOGS), FRAMES]
FORMS: tuple[list[str], ...] = ([], ["--json"], ["--csv"], ["--csv-raw"])


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("name", NAMES)
def test_no_word_prints_a_secret(name: str, words: list[str], tmp_path: Path) -> None:
    hidden = secrets_of_logs()
    word, *rest = words
    for form in FORMS:
        done = commands.run("log", word, str(GOLDEN / name), *rest, *form)
        assert done.code in (0, 1, 2)
        hidden.check(done.out + done.err)
    path = tmp_path / "rows"
    commands.run("log", word, str(GOLDEN / name), *rest, "--parquet", str(path))
    if path.exists():
        import pyarrow.parquet as pq

        hidden.check(str(pq.read_table(path).to_pylist()))


@pytest.mark.parametrize("name", NAMES)
def test_no_list_of_a_log_prints_a_secret(name: str) -> None:
    hidden = secrets_of_logs()
    for shown in (["list"], ["list", "--skew", "--json"]):
        done = commands.run(*shown, "--log", str(GOLDEN / name))
        hidden.check(done.out + done.err)


def test_a_record_of_a_later_kafka_shows_no_secret(tmp_path: Path) -> None:
    log = Log()
    keys = {name: base64.b64encode(key).decode() for name, key in credential_keys().items()}
    user = {"name": "ann", "mechanism": 1, "iterations": 4096, **keys}
    value = bytearray(value_of("USER_SCRAM_CREDENTIAL_RECORD", 0, user))
    value[2] = 9  # its version
    log.data += batch_of([(None, bytes(value))], 0, 1, 1000, False)
    (tmp_path / log.name).write_bytes(bytes(log.data))
    for form in FORMS:
        done = commands.run("log", "dump", str(tmp_path), *form)
        assert (done.code, '"***"' in done.out.replace('""', '"')) == (0, True)
        secrets_of_logs().check(done.out)


@pytest.mark.parametrize("word", ["dump", "cat", "changes", "diff"])
def test_secrets_are_shown_where_they_are_asked_for_and_that_is_said(word: str) -> None:
    points = ["1", "130"] if word == "diff" else []
    done = commands.run("log", word, str(GOLDEN / "4.3.0"), *points, "--show-secrets", "-q")
    assert done.err == "rdmeta: secrets are shown: --show-secrets was given\n"
    assert SECRETS["a key's password"] in done.out
