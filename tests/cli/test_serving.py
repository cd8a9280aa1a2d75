"""--metrics of watch, record and publish serves the metrics of their clients."""

from __future__ import annotations

import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError

import commands
import pytest
from broker import Brokers
from in_process import Running
from listener import free_ports

OFTEN = ("-X", "topic.metadata.refresh.interval.ms=100")


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with Brokers(3) as made:
        made.truth.create("orders", partitions=4)
        yield made


def scraped(port: int, wanted: str) -> str:
    """Returns the text of a scrape once it has `wanted`."""
    end = time.monotonic() + 30
    text = ""
    while wanted not in text:
        assert time.monotonic() < end, text
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except URLError:
            time.sleep(0.05)
    return text


@pytest.mark.proof
@pytest.mark.parametrize(
    "words", [["watch", *OFTEN], ["record", "-o", "{dir}/history"], ["publish", "{dir}/state"]]
)
def test_a_command_that_keeps_running_serves_its_metrics(
    words: list[str], brokers: Brokers, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    filled = [word.replace("{dir}", str(tmp_path)) for word in words]
    extra = ["-b", brokers.bootstrap, "--metrics", str(port)]
    with commands.started(*filled, *extra) as process:
        text = scraped(port, 'rdmeta_cache_partitions{cluster="cluster"} 4.0')
        assert 'rdmeta_up{cluster="cluster"} 1.0' in text
        assert process.ended(signal.SIGTERM).code == -signal.SIGTERM


def test_each_cluster_has_its_series(brokers: Brokers, tmp_path: Path) -> None:
    (port,) = free_ports(1)

    def scrape(running: Running) -> None:
        scraped(port, 'rdmeta_up{cluster="another"} 1.0')
        scraped(port, 'rdmeta_up{cluster="cluster"} 1.0')
        running.interrupt()

    with Brokers(1, "another") as others:
        env = commands.clusters(tmp_path, one=brokers.bootstrap, two=others.bootstrap)
        commands.run("watch", "-c", "all", "--metrics", str(port), env=env, meanwhile=scrape)


def test_a_recorder_serves_its_metrics_while_a_cluster_does_not_answer(
    brokers: Brokers, tmp_path: Path
) -> None:
    (port, closed) = free_ports(2)
    env = commands.clusters(tmp_path, gone=f"127.0.0.1:{closed}", one=brokers.bootstrap)

    def scrape(running: Running) -> None:
        text = scraped(port, 'rdmeta_up{cluster="cluster"} 1.0')
        assert f'rdmeta_up{{cluster="127.0.0.1:{closed}"}} 0.0' in text
        running.interrupt()

    words = ("record", "-c", "all", "-o", str(tmp_path / "history"), "--metrics", str(port))
    commands.run(*words, "--timeout", "600", env=env, meanwhile=scrape)


@pytest.mark.parametrize("words", [["watch"], ["record", "-o", "{dir}"], ["publish", "{dir}/s"]])
def test_a_port_that_is_taken_ends_with_2(
    words: list[str], brokers: Brokers, tmp_path: Path
) -> None:
    filled = [word.replace("{dir}", str(tmp_path)) for word in words]
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = commands.run(*filled, "-b", brokers.bootstrap, "--metrics", port)
    said = f"rdmeta: --metrics {port}: Address already in use\n"
    assert done == (2, "", said)


def test_one_address_serves_the_metrics_alone_and_no_other_path(brokers: Brokers) -> None:
    (port,) = free_ports(1)

    def scrape(running: Running) -> None:
        scraped(port, "rdmeta_up")
        with pytest.raises(HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/nope", timeout=10)
        with pytest.raises((ConnectionRefusedError, TimeoutError)):
            socket.create_connection(("127.0.0.2", port), 10)
        running.interrupt()

    words = ("watch", "-b", brokers.bootstrap, "--metrics", f"127.0.0.1:{port}")
    commands.run(*words, meanwhile=scrape)


@pytest.mark.parametrize("place", ["0", "65536", ":9308", "host:", "::1:9308", "x"])
def test_what_is_no_place_is_refused(place: str) -> None:
    done = commands.run("watch", "-b", "127.0.0.1:1", "--metrics", place)
    assert done.code == 2
    assert "--metrics needs PORT or HOST:PORT" in done.err


def test_what_is_no_name_of_a_host_is_named() -> None:
    done = commands.run("watch", "-b", "127.0.0.1:1", "--metrics", "a..b:9308")
    assert done == (2, "", "rdmeta: --metrics a..b:9308: no name of a host\n")
