"""`rdmeta config` shows what is set and from where; `--check` tries every server."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
from broker import Brokers, Fault
from certificates import Authority
from frames import B
from login_server import LoginServer
from marked_secrets import Secrets
from pyarrow import parquet
from secured import Guard

from rdmeta.config.option_table import OPTIONS

MARK = "m4rked"
ours = Authority()
FORMS = [[], ["--json"], ["--csv"], ["-v"], ["-vv"]]


@pytest.fixture
def secrets() -> Secrets:
    found = Secrets()
    found.add("a secret", MARK)
    return found


def rows(*words: str, env: dict[str, str] | None = None) -> dict[str, dict[str, str]]:
    """Returns the rows of CSV by their first column, without -c."""
    done = commands.run("config", *words, "--csv-raw", env=env or {})
    assert (done.code, done.err) == (0, "")
    return {next(iter(row.values())): row for row in csv.DictReader(io.StringIO(done.out))}


# ---- options ------------------------------------------------------------------------------------


def test_each_option_is_shown_with_its_default() -> None:
    found = rows()
    assert list(found) == [each.key for each in OPTIONS if each.kind != "callable"]
    assert found["client.id"] == {
        "option": "client.id",
        "value": "",
        "default": "rdmeta",
        "from": "",
    }
    assert found["socket.keepalive.enable"]["default"] == "false"
    assert (
        found["metadata.max.age.ms"]["default"]
        == "3 x topic.metadata.refresh.interval.ms, at least a minute"
    )
    assert found["ssl.ca.location"]["default"] == ""


def test_what_is_set_is_shown_with_its_source(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id = file\nsocket.timeout.ms = 1000\nmax.block.ms = 5\n")
    env = {
        "RDMETA_CLIENT_ID": "environment",
        "RDMETA_BOOTSTRAP": "a:1",
        "RDMETA_RETRY_BACKOFF_MS": "70",
    }
    words = ["-F", str(file), "-X", "max.block.ms=6", "-X", "metadata.max.topics=9"]
    found = rows(*words, env=env)
    said = {key: (row["value"], row["from"]) for key, row in found.items() if row["from"]}
    assert said == {
        "bootstrap.servers": ("a:1", "RDMETA_BOOTSTRAP"),
        "client.id": ("file", str(file)),
        "max.block.ms": ("6", "-X"),
        "retry.backoff.ms": ("70", "RDMETA_RETRY_BACKOFF_MS"),
        "socket.timeout.ms": ("1000", str(file)),
        "metadata.max.topics": ("9", "-X"),
    }
    assert rows(*words, "-b", "b:1", env=env)["bootstrap.servers"]["from"] == "-b"
    servers = {"RDMETA_BOOTSTRAP_SERVERS": "c:1"}
    assert rows(env=servers)["bootstrap.servers"]["from"] == "RDMETA_BOOTSTRAP_SERVERS"
    other = rows("-X", "metadata.broker.list=d:1", env=env)
    assert other["bootstrap.servers"]["value"] == "d:1"


def test_json_says_the_same_and_obeys_the_schema() -> None:
    done = commands.run("config", "--json", "-X", "client.id=me")
    found = commands.checked_json(done.out)
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    by_key = {each["option"]: each for each in found["options"]}
    assert by_key["client.id"] == {
        "option": "client.id",
        "value": "me",
        "default": "rdmeta",
        "from": "-X",
    }
    assert by_key["ssl.ca.pem"]["value"] is None


def test_parquet_has_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "config.parquet"
    assert commands.run("config", "--parquet", str(file)) == (0, "", "")
    assert parquet.read_table(file).column_names == ["option", "value", "default", "from"]


def test_sections_are_shown_side_by_side(tmp_path: Path) -> None:
    file = tmp_path / "clusters.ini"
    file.write_text("[a]\nbootstrap.servers = a:1\nclient.id = x\n[b]\nbootstrap.servers = b:1\n")
    env = {"RDMETA_CLUSTERS": str(file)}
    done = commands.run("config", "-c", "all", "--json", env=env)
    found = commands.checked_json(done.out)["options"]
    ids = {each["cluster"]: each for each in found if each["option"] == "client.id"}
    assert (ids["a"]["value"], ids["a"]["from"]) == ("x", f"{file} [a]")
    assert (ids["b"]["value"], ids["b"]["from"]) == (None, None)


@pytest.mark.parametrize("form", FORMS)
def test_no_secret_is_shown(form: list[str], secrets: Secrets, tmp_path: Path) -> None:
    """Each key that may have a secret has one, and so have keys with slips."""
    file = tmp_path / "client.properties"
    key = f"-----BEGIN PRIVATE KEY-----{MARK}-----END PRIVATE KEY-----"
    given = {each.key: MARK for each in OPTIONS if each.kind in ("secret", "private key")}
    given |= {"sasl.jaas.config": f'x.PlainLoginModule required password="{MARK}";'}
    given |= {"ssl.keystore.key": key, "ssl.keystore.password": MARK}
    given |= {"ssl.truststore.password": MARK}
    given |= {"ssl.certificate.pem": key, "bootstrap.servers": f"user:{MARK}@host:1"}
    given |= {"sasl.oauthbearer.token.endpoint.url": f"https://user:{MARK}@host/"}
    given |= {"sasl.pasword": MARK, "ssl.key.passphrase": MARK, "client.id": key}
    file.write_text("".join(f"{key} = {value}\n" for key, value in given.items()))
    done = commands.run("config", "-F", str(file), *form)
    assert done.code == 2
    assert "sasl.pasword" in done.out
    secrets.check(done.out + done.err)


def test_what_is_wrong_is_said_after_the_options() -> None:
    done = commands.run("config", "-X", "sasl.pasword=x", "-X", "max.block.ms=never")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "did you mean sasl.password?" in done.err
    assert "max.block.ms" in done.err
    assert "\nsasl.pasword\t***\t-\t-X\n" in done.out


def test_a_check_of_tls_that_is_off_is_a_warning() -> None:
    off = "enable.ssl.certificate.verification=false"
    words = ("config", "-X", "security.protocol=ssl", "-X", off)
    done = commands.run(*words)
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert "enable.ssl.certificate.verification" in done.err
    assert commands.run(*words, "-q").err == ""


# ---- servers ------------------------------------------------------------------------------------


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with Brokers(2) as made:
        yield made


def checked(bootstrap: str, *words: str) -> commands.Done:
    return commands.run("config", "--check", "-b", bootstrap, *words)


def test_each_server_and_each_advertised_broker_is_a_row(brokers: Brokers) -> None:
    done = checked(brokers[1].address)
    assert (done.code, done.err) == (0, "")
    header, *lines = (line.split("\t") for line in done.out.splitlines())
    first, second = (dict(zip(header, line, strict=True)) for line in lines)
    assert (first["server"], first["broker"], first["bootstrap"]) == (
        brokers[1].address,
        "1",
        "true",
    )
    assert (second["server"], second["broker"], second["bootstrap"]) == (
        brokers[2].address,
        "2",
        "false",
    )
    for row in (first, second):
        assert (row["result"], row["error"], row["cluster_id"]) == ("ok", "-", "cluster")
        assert (row["metadata_versions"], row["tls"], row["days"]) == ("0-13", "-", "-")
        assert 0 < float(row["round_trip_ms"]) < 10_000
        assert row["tls_ms"] == row["sasl_ms"] == "-"


def test_a_broker_that_is_advertised_wrong_is_named_with_the_key(brokers: Brokers) -> None:
    brokers.truth.brokers[7] = B(7, "127.0.0.1", 1)
    done = checked(brokers.bootstrap, "--json")
    assert done.code == 1
    *good, bad = commands.checked_json(done.out)["servers"]
    assert [each["result"] for each in good] == ["ok", "ok"]
    cause = "cannot connect: Connection refused; check advertised.listeners of broker 7"
    assert (bad["server"], bad["broker"], bad["result"], bad["error"]) == (
        "127.0.0.1:1",
        7,
        "tcp",
        cause,
    )
    assert done.err == f"rdmeta: 1 of 3 fail: 127.0.0.1:1 at tcp: {cause}\n"


def test_where_no_server_answers_the_exit_code_is_3(brokers: Brokers) -> None:
    done = checked("127.0.0.1:1,localhost:1", "--csv")
    assert done.code == 3
    assert done.err == (
        "rdmeta: no server can be used: 127.0.0.1:1, localhost:1 at tcp: cannot connect:"
        " Connection refused; check bootstrap.servers\n"
    )
    assert done.out.count("\n") == 3


def test_servers_of_several_clusters_are_told(brokers: Brokers) -> None:
    with Brokers(1, "another") as other:
        done = checked(f"{brokers.bootstrap},{other.bootstrap}")
    assert (done.code, done.err.count("\n")) == (1, 1)
    said = f"{other.bootstrap} is of cluster 'another', and {brokers[1].address} of 'cluster'"
    assert said in done.err


@pytest.mark.parametrize("form", FORMS)
def test_a_secured_server_has_its_certificate_dated_and_no_secret_shown(
    form: list[str], secrets: Secrets, tmp_path: Path
) -> None:
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=30, hours=1)
    logins = LoginServer({"alice": f"{MARK}-alice"})
    guard = Guard(ours.server("127.0.0.1", not_after=end), logins)
    words = [
        *("-X", "security.protocol=sasl_ssl", "-X", "sasl.mechanism=SCRAM-SHA-256"),
        *("-X", "sasl.username=alice", "-X", f"ssl.ca.location={ours.write(tmp_path)}", *form),
    ]
    env = {"RDMETA_SASL_PASSWORD": f"{MARK}-alice"}
    with Brokers(2, guard=guard) as brokers:
        words = ["config", "--check", "-b", brokers[1].address, *words]
        good = commands.run(*words, env=env)
        logins.users["alice"] = "another"
        refused = commands.run(*words, env=env)
        wrong_ca = commands.run(*words, "-X", f"ssl.ca.location={Authority().write(tmp_path)}")
    assert good.code == 0
    assert "30" in good.out
    assert refused.code == 3
    assert " at sasl: the broker refuses the SCRAM-SHA-256 login" in refused.err
    assert "sasl.password" in refused.err
    assert wrong_ca.code in (2, 3)
    if form == ["--json"]:
        servers = commands.checked_json(good.out)["servers"]
        assert [(each["tls"], each["days"]) for each in servers] == [("TLSv1.3", 30)] * 2
        assert all(each["sasl_ms"] > 0 for each in servers)
        (server,) = commands.checked_json(refused.out)["servers"]
        assert (server["result"], server["sasl_ms"], server["days"]) == ("sasl", None, 30)
    for done in (good, refused, wrong_ca):
        secrets.check(done.out + done.err)


def test_several_clusters_are_checked_side_by_side(brokers: Brokers, tmp_path: Path) -> None:
    places = {"here": brokers[1].address, "gone": "127.0.0.1:1", "wrong": "x:1\nno.such = 1"}
    env = commands.clusters(tmp_path, **places)
    done = commands.run("config", "--check", "-c", "all", "--json", env=env)
    found = commands.checked_json(done.out)
    assert done.code == 3
    assert [line.split(": ")[1] for line in done.err.splitlines()] == ["wrong", "gone"]
    assert [(each["cluster"], each["result"]) for each in found["servers"]] == [
        ("here", "ok"),
        ("here", "ok"),
        ("gone", "tcp"),
    ]
    assert [each["error"] is None for each in found["clusters"]] == [True, True, False]
    alone = commands.run("config", "--check", "-c", "wrong", env=env)
    assert (alone.code, alone.out) == (2, "")


def test_the_time_out_counts_for_each_server(brokers: Brokers) -> None:
    brokers[2].fault = Fault(silent=True)
    done = checked(brokers.bootstrap, "--timeout", "0.3", "--json")
    assert done.code == 1
    results = [each["result"] for each in commands.checked_json(done.out)["servers"]]
    assert results == ["ok", "versions"]
