"""No word prints a secret, in any form, unless it is asked to; then it says so."""

from __future__ import annotations

import base64
from pathlib import Path

import commands
import pytest
from kraft_frames import FRAMES
from kraft_logs import GOLDEN, LOGS, SECRETS, credential_keys
from marked_secrets import Secrets

from rdmeta.generate.logs import Log, batch_of, value_of

WORDS = (
    ["info"], ["dump"], ["dump", "--batches"], ["ls"], ["find"], ["tree"], ["cat"],
    ["changes"], ["explain", "--broker", "2"], ["diff", "1", "130"], ["check"],
)  # fmt: skip
FORMS: tuple[list[str], ...] = ([], ["--json"], ["--csv"], ["--csv-raw"])


def secrets() -> Secrets:
    found = Secrets()
    for name, secret in SECRETS.items():
        found.add(name, secret)
    for name, key in credential_keys().items():
        found.add(f"{name} in base64", base64.b64encode(key).decode())
        found.add(f"{name} in hexadecimal", key.hex())
    return found


@pytest.mark.parametrize("name", [*(made.name for made in LOGS), FRAMES])
def test_no_word_prints_a_secret(name: str, tmp_path: Path) -> None:
    hidden = secrets()
    for word, *rest in WORDS:
        for form in FORMS:
            done = commands.run("log", word, str(GOLDEN / name), *rest, *form)
            assert done.code in (0, 1, 2)
            hidden.check(done.out + done.err)
    for word, *rest in WORDS:
        path = tmp_path / f"{word}{len(rest)}"
        commands.run("log", word, str(GOLDEN / name), *rest, "--parquet", str(path))
        if path.exists():
            import pyarrow.parquet as pq

            hidden.check(str(pq.read_table(path).to_pylist()))
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
        secrets().check(done.out)


@pytest.mark.parametrize("word", ["dump", "cat", "changes", "diff"])
def test_secrets_are_shown_where_they_are_asked_for_and_that_is_said(word: str) -> None:
    points = ["1", "130"] if word == "diff" else []
    done = commands.run("log", word, str(GOLDEN / "4.3.0"), *points, "--show-secrets", "-q")
    assert done.err == "rdmeta: secrets are shown: --show-secrets was given\n"
    assert SECRETS["a key's password"] in done.out
