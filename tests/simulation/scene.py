"""The circumstances of one seed: configuration, cluster, network, and which faults it has.

A seed switches on only some kinds of faults and calls. A run with few kinds goes deeper into each
of them than a run with all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from rdmeta.config import Config
from rdmeta.model import ALL, All

NAMES = ("orders", "orders-eu", "payments", "__offsets", "later")
INVALID = "no/topic"
BLACK = "black-1"
ROUND_TRIPS = (0.0004, 0.002, 0.02, 0.06)


@dataclass(frozen=True)
class Scene:
    """The choices of a seed before anything happens. Times are in seconds.

    `topics` is the policy's argument. `round_trip` is the longest of a healthy link. `pace` is the
    mean time between faults, `eager` between calls of the application. `late` is the longest time
    by which the driver is late.
    """

    config: Config
    topics: All | tuple[str, ...] | str | None
    sticky: bool
    brokers: int
    versions: tuple[tuple[int, int], ...]
    existing: tuple[str, ...]
    round_trip: float
    lag: float
    session: float
    faults: frozenset[str]
    calls: frozenset[str]
    pace: float
    eager: float
    late: float
    rounds: int
    length: float
    closes_early: bool


def config_of(random: Random) -> Config:
    """Returns a configuration; a third of them have a short refresh interval."""
    choose = random.choice
    interval = choose((2.0, 6.0, 300.0, 300.0, 300.0, None))
    max_age = None if random.random() < 0.1 else 3.0 * (interval or 300.0)
    if random.random() < 0.1:
        max_age, interval = 9.0, 3.0
    return Config(
        bootstrap_servers="boot-1:9092,boot-2:9092",
        refresh_interval=interval,
        fast_interval=choose((0.1, 0.1, 0.05, 0.2)),
        max_age=max_age,
        retry_backoff=choose((0.1, 0.1, 0.05)),
        retry_backoff_max=choose((1.0, 1.0, 0.5, 2.0)),
        reconnect_backoff=choose((0.1, 0.05)),
        reconnect_backoff_max=choose((10.0, 1.0, 1.0, 2.0)),
        setup_timeout=choose((30.0, 5.0, 2.0)),
        socket_timeout=choose((60.0, 10.0, 5.0)),
        propagation_max=choose((30.0, 5.0)),
        max_idle=choose((0.0, 0.0, 0.0, 0.0, 12.0)),
        rebootstrap=random.random() < 0.95,
        rebootstrap_trigger=choose((300.0, 60.0, 15.0)),
        allow_auto_create=random.random() < 0.1,
        blacklist=(re.compile("^black"),) if random.random() < 0.3 else (),
    )


def versions_of(random: Random, brokers: int) -> tuple[tuple[int, int], ...]:
    """Returns each broker's range of Metadata versions: mostly all, at times old or mixed."""
    kind = random.random()
    if kind < 0.6:
        return ((0, 13),) * brokers
    if kind < 0.75:
        return ((0, random.randint(4, 13)),) * brokers
    return tuple((0, random.randint(0, 13)) for _ in range(brokers))


def comparable(
    random: Random, versions: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """Returns versions with which brokers can agree that a topic was created again.

    Brokers before v4 cannot be asked for names. Those from v10 on tell an old id where those before
    tell lower epochs: as docs/internals/policies.md says, these have their own count.
    """
    lowest, highest = random.choice(((4, 9), (10, 13)))
    return tuple((low, min(max(high, lowest), highest)) for low, high in versions)


def scene_of(random: Random, faults: tuple[str, ...], calls: tuple[str, ...]) -> Scene:
    """Returns the scene of a seed."""
    config = config_of(random)
    brokers = random.choice((1, 2, 3, 3, 3, 4))
    few, many = random.randint(0, 4), random.random() < 0.1
    chosen = faults if many else random.sample(faults, min(few, len(faults)))
    if not config.rebootstrap:  # then a cluster that moved is lost for good
        chosen = [kind for kind in chosen if kind not in ("move", "usurp")]
    said = random.sample(calls, random.randint(2, len(calls)))
    versions = versions_of(random, brokers)
    if "recreate" in chosen or "delete" in chosen:
        versions = comparable(random, versions)
    return Scene(
        config=config,
        topics=random.choice((None, None, None, None, ALL, "^orders", ("payments", "^orders"))),
        sticky=random.random() < 0.15,
        brokers=brokers,
        versions=versions,
        existing=tuple(random.sample(NAMES[:4], random.randint(1, 4))),
        round_trip=random.choice(ROUND_TRIPS),
        lag=random.choice((0.01, 0.01, 0.3, 3.0)),
        session=random.choice((1.0, 3.0, 9.0)),
        faults=frozenset(chosen),
        calls=frozenset(said),
        pace=random.choice((0.3, 1.0, 3.0, 8.0)),
        eager=random.choice((0.2, 0.5, 2.0)),
        late=random.choice((0.0, 0.0, 0.002, 0.02)),
        rounds=random.choice((1, 1, 2)),
        length=random.choice((3.0, 8.0, 20.0, 40.0)),
        closes_early=random.random() < 0.1,
    )
