"""Fixtures and settings that tests of several modules share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from clocks import Clock
from costs import watched
from hypothesis import HealthCheck, settings
from hypothesis.strategies import text

from rdmeta import MetadataCache
from rdmeta.embedded import EmbeddedCluster, OlderConfluentError

# Bytecode is kept, also by the processes that tests start: without it each start takes twice as
# long, and each process of pytest-xdist reads the tests for 23 s instead of 6.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell starts what runs in its background with SIGINT ignored; tests press Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# An example has no deadline: the time to make and run it depends on the machine.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")


# Tests that share something, the longest chains first: those of spark share a Java, those of real a
# cluster, those of repo what `make` builds, those of gold a random fleet, those of the demo its
# output, and those of a file a store or folders. One process runs a group.
GROUPS = (
    *("spark/", "real/", "repo/", "pipeline/gold/", "pipeline/test_killed_commits.py"),
    *("pipeline/test_commits_in_a_store.py", "test_demo.py", "pipeline/test_killed.py"),
)


def group_of(nodeid: str) -> str:
    """Returns the group of a test, or else its own name."""
    for group in GROUPS:
        if nodeid.startswith(f"tests/{group}"):
            return group + "3.9.1" * ("[3.9.1" in nodeid)
    return nodeid


def _place_of(item: pytest.Item) -> tuple[int, bool]:
    """Returns where a test comes among others: groups first, and in each, what kills nodes last."""
    group = group_of(item.nodeid).removesuffix("3.9.1")
    place = GROUPS.index(group) if group in GROUPS else len(GROUPS)
    return place, item.get_closest_marker("kills") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Lets one process run all tests of a group; marks of xdist_group need an older pytest."""
    from xdist.scheduler import LoadScopeScheduling

    if config.getvalue("dist") != "loadgroup":
        return None
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts groups first: no long one is left for the end."""
    items.sort(key=_place_of)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Leaves all tests and modules out of the garbage collections, of which tests need many."""
    gc.disable()
    result = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    return result


def pytest_unconfigure() -> None:
    """Lets the end of Python free them all; duckdb prints what is left."""
    gc.unfreeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test marked `spark` where there is no Java."""
    if item.get_closest_marker("spark") is None:
        return
    from rdmeta.spark import NoJavaError, find_java

    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fails a test that leaves the process in another folder."""
    result = yield
    began, found = str(item.config.invocation_params.dir), os.readlink("/proc/self/cwd")
    if found != began:
        os.chdir(began)
        pytest.fail(f"the test left the process in {found}, not in {began}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Skips a test that needs more of an embedded cluster than an older confluent-kafka has.

    Fails one that costs more than its marks allow.
    """
    try:
        return (yield from watched(item))
    except OlderConfluentError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", autouse=True)
def first_text() -> None:
    """Has Hypothesis make its table of Unicode: in a fresh clone that takes two seconds of CPU."""
    text().validate()


@pytest.fixture
def clock() -> Clock:
    """Returns a clock that stands still until a test moves it."""
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> MetadataCache:
    """Returns an empty cache that reads that clock; some modules define their own."""
    return MetadataCache(clock=clock)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """Yields an embedded cluster of three brokers, a new one for each test."""
    with EmbeddedCluster(brokers=3) as embedded:
        yield embedded
