"""Which cluster a command asks, and with what settings: later sources win."""

from __future__ import annotations

import os
from pathlib import Path

import click
import commands
import pytest
from click.testing import CliRunner

import rdmeta
from rdmeta.cli.messages import BadInputError, Messages
from rdmeta.cli.shared_options import Where, new_file, seconds_option


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes settings of the machine that runs the tests."""
    for name in ("RDMETA_BOOTSTRAP", "RDMETA_CLUSTERS", "RDMETA_SASL_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def where(
    bootstrap: str | None = None,
    file: Path | None = None,
    settings: tuple[tuple[str, str], ...] = (),
    clusters: str | None = None,
) -> Where:
    return Where(bootstrap, None if file is None else str(file), settings, clusters, 1, Messages())


def test_each_source_wins_over_the_ones_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "bootstrap.servers"
    file = tmp_path / "client.properties"
    monkeypatch.setenv("RDMETA_BOOTSTRAP", "environment")
    assert where().target().conf == {key: "environment"}
    file.write_text("bootstrap.servers=file\nclient.id=one\n")
    assert where(file=file).target().conf == {key: "file", "client.id": "one"}
    assert where("option", file).target().conf[key] == "option"
    settings = ((key, "setting"), ("client.id", "two"), ("client.id", "three"))
    assert where("option", file, settings).target().conf == {key: "setting", "client.id": "three"}


def test_the_environment_sets_every_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDMETA_SASL_PASSWORD", "secret")
    monkeypatch.setenv("RDMETA_SASL_JAAS_CONFIG", "java's")
    monkeypatch.setenv("RDMETA_TOPIC_METADATA_REFRESH_INTERVAL_MS", "5")
    monkeypatch.setenv("RDMETA_METADATA_BROKER_LIST", "servers")
    monkeypatch.setenv("RDMETA_NO_OPTION", "ignored")
    assert where().target().conf == {
        "sasl.password": "secret",
        "sasl.jaas.config": "java's",
        "topic.metadata.refresh.interval.ms": "5",
        "metadata.broker.list": "servers",
    }


def test_no_option_lets_a_command_create_a_topic(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("allow.auto.create.topics=true\n")
    with rdmeta.EmbeddedCluster(1) as cluster:
        connect = ("-b", cluster.bootstrap, "-F", str(file), "-t", "NOPE")
        assert commands.run("list", *connect).code == 1
        assert commands.run("wait", *connect, "--gone").code == 0
        assert commands.run("watch", *connect, "--for", "0.5").code == 0
        cache = rdmeta.MetadataCache()
        rdmeta.fetch(cache, bootstrap=cluster.bootstrap)
        assert "NOPE" not in cache.names()


def test_another_name_of_an_option_is_the_same_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RDMETA_BOOTSTRAP", "environment")
    file = tmp_path / "client.properties"
    file.write_text("metadata.broker.list=file\n")
    assert where(file=file).target().conf == {"metadata.broker.list": "file"}
    assert where("option", file).target().conf == {"bootstrap.servers": "option"}


def test_one_source_that_gives_two_names_of_an_option_keeps_both(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("metadata.broker.list=one\nbootstrap.servers=other\n")
    assert len(where(file=file).target().conf) == 2


def test_sections_of_the_clusters_file_are_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "clusters.ini"
    file.write_text("[a]\nbootstrap.servers = a:1\nclient.id = x\n[b]\nbootstrap.servers = b:1\n")
    monkeypatch.setenv("RDMETA_CLUSTERS", str(file))
    monkeypatch.setenv("RDMETA_BOOTSTRAP", "environment")
    a, b = where(clusters="a,b", settings=(("client.id", "y"),)).targets()
    assert a == ("a", {"bootstrap.servers": "a:1", "client.id": "y"})
    assert b == ("b", {"bootstrap.servers": "b:1", "client.id": "y"})
    assert where(clusters="b").target() == ("b", {"bootstrap.servers": "b:1"})
    with pytest.raises(BadInputError, match="-c takes one name here"):
        where(clusters="all").target()


@pytest.mark.parametrize("key", ["bootstrap.servers", "metadata.broker.list"])
def test_servers_beside_a_name_of_a_cluster_are_refused(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the rows of each cluster would come from one and the same."""
    file, properties = tmp_path / "clusters.ini", tmp_path / "client.properties"
    file.write_text("[a]\nbootstrap.servers = a:1\n[b]\nbootstrap.servers = b:1\n")
    properties.write_text(f"{key}=c:1\n")
    monkeypatch.setenv("RDMETA_CLUSTERS", str(file))
    for given, said in (
        (where("c:1", clusters="all"), "-b and -c both"),
        (where(file=properties, clusters="all"), "bootstrap.servers of .*properties and -c both"),
        (where(settings=((key, "c:1"),), clusters="a"), "bootstrap.servers of -X and -c both"),
    ):
        with pytest.raises(BadInputError, match=said):
            given.targets()


def test_a_secret_in_the_environment_is_for_the_secured_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "clusters.ini"
    file.write_text(
        "[lab]\nbootstrap.servers=a\n\n[prod]\nbootstrap.servers=b\nsecurity.protocol=sasl_ssl\n"
    )
    monkeypatch.setenv("RDMETA_CLUSTERS", str(file))
    monkeypatch.setenv("RDMETA_SASL_PASSWORD", "secret")
    lab, prod = where(clusters="all").targets()
    assert lab.conf == {"bootstrap.servers": "a"}
    assert prod.conf["sasl.password"] == "secret"
    lab, _ = where(clusters="all", settings=(("security.protocol", "sasl_ssl"),)).targets()
    assert lab.conf["sasl.password"] == "secret"


def test_a_section_without_servers_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment's servers are not those of a cluster with a name."""
    file = tmp_path / "clusters.ini"
    file.write_text("[a]\nclient.id = x\n[b]\nbootstrap.servers = 127.0.0.1:1\n")
    for variable in ("RDMETA_BOOTSTRAP", "RDMETA_METADATA_BROKER_LIST"):
        monkeypatch.setenv(variable, "environment")
        monkeypatch.setenv("RDMETA_CLUSTERS", str(file))
        assert where(clusters="a").target() == ("a", {"client.id": "x"})
        monkeypatch.delenv(variable)
    done = commands.run("list", "-c", "all", env={"RDMETA_CLUSTERS": str(file)})
    missing, closed = done.err.splitlines()
    assert done.code == 3
    assert missing.startswith("rdmeta: a: bootstrap.servers is missing: expected host:port")
    assert closed.startswith("rdmeta: b: 127.0.0.1:1: cannot connect")


@pytest.mark.parametrize("words", [["list", "--parquet"], ["image", "save"], ["publish"]])
def test_a_new_file_replaces_no_pipe_or_device(words: list[str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for name in ("pipe", "link"):
        done = commands.run(*words, name, "-b", "127.0.0.1:1", cwd=tmp_path)
        said = f"rdmeta: {name}: it is not a regular file, and a new file would replace it\n"
        assert done == (2, "", said)
    assert pipe.is_fifo()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_new_file_is_not_standard_output_that_is_a_pipe() -> None:
    done = commands.run_process("image", "save", "/dev/stdout", "-b", "127.0.0.1:1")
    said = "rdmeta: /dev/stdout: it is not a regular file, and a new file would replace it\n"
    assert done == (2, "", said)


def test_a_new_file_is_written_where_a_link_leads(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    assert new_file(str(link)) == str(file.resolve())
    assert new_file(str(file)) == str(file)
    file.write_text("earlier")
    assert new_file(str(file)) == str(file)
    with pytest.raises(IsADirectoryError) as raised:
        new_file(str(tmp_path))
    assert raised.value.filename == str(tmp_path)


def test_an_option_in_seconds_shows_its_default_if_it_has_one() -> None:
    @click.command
    @seconds_option("--long", default=3.5, help="Long.")
    @seconds_option("--short", help="Short.")
    def command(long: float, short: float | None) -> None:
        click.echo(f"{long} {short}")

    text = CliRunner().invoke(command, ["--help"]).output
    assert "--long SECONDS   Long.  [default: 3.5]\n" in text
    assert "--short SECONDS  Short.\n" in text
    assert CliRunner().invoke(command, []).output == "3.5 None\n"
    assert CliRunner().invoke(command, ["--long", "0"]).exit_code == 2
