"""The collector beside prometheus-client's registry, and without prometheus-client."""

from __future__ import annotations

import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from scrape import scraped_text

import rdmeta

CONF = {"bootstrap.servers": "localhost:1"}


def test_a_registration_reads_no_client_and_a_second_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = rdmeta.Client(CONF)
    registry = CollectorRegistry(auto_describe=True)
    with monkeypatch.context() as patched:
        patched.setattr(client, "_stats_anywhere", lambda: pytest.fail("the client was read"))
        registry.register(rdmeta.metrics.collector(client))
        with pytest.raises(ValueError, match="Duplicated timeseries"):
            registry.register(rdmeta.metrics.collector(client))
    assert b"rdmeta_up" in generate_latest(registry)


def test_counters_and_gauges_have_their_types_and_texts() -> None:
    text = scraped_text(rdmeta.Client(CONF))
    assert "# TYPE rdmeta_up gauge\n" in text
    assert "# TYPE rdmeta_changes_total counter\n" in text
    assert "# HELP rdmeta_leaderless_partitions There is no leader\n" in text
    assert "_created" not in text


def test_odd_texts_are_escaped() -> None:
    cache = rdmeta.MetadataCache()
    client = rdmeta.Client({"bootstrap.servers": "localhost:1"}, cache=cache)
    assert scraped_text(client, per_topic=['a"b\nc\\d']).count("\n#") > 10


def test_without_the_packages_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["prometheus_client"] = sys.modules["opentelemetry"] = None
import rdmeta
client = rdmeta.Client({"bootstrap.servers": "localhost:1"})
for call in (lambda: rdmeta.metrics.collector(client),
             lambda: rdmeta.metrics.instruments(client, None)):
    try:
        call()
    except rdmeta.MissingExtraError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"rdmeta.metrics.{name}() needs more packages: pip install -e '.[metrics]'"
        for name in ("collector", "instruments")
    ]


def test_the_module_loads_neither_package_nor_asyncio() -> None:
    program = (
        "import sys, rdmeta; rdmeta.metrics;"
        "print([m for m in ('asyncio', 'prometheus_client', 'opentelemetry') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stdout == "[]\n"
