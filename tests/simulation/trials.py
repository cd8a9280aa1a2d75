"""Small experiments: in a healthy, quiet cluster one thing happens, and the cache must follow.

Faults at random seldom isolate one rule of the policy. A trial does: what it changes can become
known to the client in one way only. Each is a generator of waits, in seconds. After it the world
checks that the cache equals the truth, in the topics of `world.only` if it is set. The bound is
that of invariant 8, plus the seconds that the trial returns. None means: the trial is impossible
here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from cluster import Server
from scene import NAMES

from rdmeta.config.address import Address

if TYPE_CHECKING:
    from world import World

Trial: TypeAlias = Generator[float, None, "float | None"]
# The time for which a denial is remembered at most.
DENIED_TTL = 10.0
# The longest time between two requests at the slow pace.
SLOW = 12.0


def suspect(world: World) -> Trial:
    """A leader dies, its connection breaks, and all brokers name it until its session ends."""
    victim = _leader_with_a_link(world)
    others = [s for s in world.cluster.servers.values() if s is not victim and s.versions[0] <= 13]
    if victim is None or not others:
        return None
    world.only = {
        name
        for name, topic in world.cluster.truth.topics.items()
        if any(p.leader == victim.id for p in topic.partitions)
    }
    links = [link for link in world.network.open_links() if link.server is victim]
    was_suspect = any(world.invariants.failed_within(link.node, 60.0) for link in links)
    world.faults.kill_server(victim, silent=False)
    yield world.scene.session + 0.001
    world.cluster.catch_up()
    if not any(link.closed == "broken" for link in links):
        return None  # the client closed it in that moment, and knows nothing
    # "suspected again within 30 s, it goes on where its schedule was", which may be the slow pace
    return SLOW if was_suspect else 0.0


def complaint(world: World) -> Trial:
    """A leader moves, the application sees it, and every broker learns it later."""
    moved = _elect_unseen(world)
    if moved is None:
        return None
    name, index, _ = moved
    world.app.complain(name, index, 6)
    yield 3.0 * world.random.random()
    world.cluster.catch_up()
    return 0.0


def distracted(world: World) -> Trial:
    """A leader moves; before the brokers learn it, they report another change of the topic."""
    if not _change(world):
        return None
    known = len(world.cluster.log) - 1
    moved = _elect_unseen(world)
    if moved is None:
        return None
    for server in world.cluster.servers.values():
        server.state = known
    name, index, epoch = moved
    if world.random.random() < 0.5:
        world.app.complain(name, index, 6)
    else:
        world.app.epoch_of(name, index, epoch)
    yield 1.0 + 3.0 * world.random.random()
    world.cluster.catch_up()
    return 0.0


def newer_epoch(world: World) -> Trial:
    """A leader moves, and the application sees the new epoch before any broker says it."""
    moved = _elect_unseen(world)
    if moved is None:
        return None
    name, index, epoch = moved
    found = world.cache.partition(name, index, None)
    if found is not None and found.leader_epoch is not None:
        world.app.epoch_of(name, index, epoch)
        yield 3.0 * world.random.random()
    else:  # then no epoch is newer
        world.app.complain(name, index, 6)
    world.cluster.catch_up()
    return 0.0


def refreshed(world: World) -> Trial:
    """A topic changes, and the application asks for a refresh."""
    if not _change(world):
        return None
    world.cluster.catch_up()
    world.app.refresh_of(None, False, None)
    yield 0.0
    return 0.0


def broken(world: World) -> Trial:
    """A topic changes, and every connection breaks."""
    if not _change(world) or not any(link.ready for link in world.network.open_links()):
        return None
    world.cluster.catch_up()
    for link in world.network.open_links():
        world.network.break_link(link)
    yield 0.0
    return 0.0


def periodic(world: World) -> Trial:
    """A topic changes, and only the next periodic refresh can bring the change."""
    interval = world.scene.config.refresh_interval
    if interval is None or interval > 10 or not _change(world):
        return None
    world.cluster.catch_up()
    yield 0.0
    return 1.2 * interval


def overtaken(world: World) -> Trial:
    """A topic is needed while a refresh without it is out."""
    taken = {*world.app.wanted(), *world.app.needed, *world.cache.names(allow_stale=True)}
    names = [name for name in NAMES if name not in taken]
    if not names or not world.app.needed:
        return None
    name = world.random.choice(names)
    world.cluster.create(name)
    world.cluster.finish_creation(name)
    world.cluster.catch_up()
    world.app.refresh_of(None, False, None)
    for _ in range(300):
        if world.invariants.in_flight:
            break
        yield 0.01
    yield world.scene.round_trip * world.random.random()
    world.app.need(name)
    return 0.0


def created(world: World) -> Trial:
    """A topic is waited for, and created then."""
    names = [n for n in NAMES if n not in world.cluster.truth.topics]
    if not names or not world.can_be_asked():
        return None
    world.app.wait_for(names[0], None, 60.0)
    yield 3.0 * world.random.random()
    world.cluster.create(names[0])
    world.cluster.finish_creation(names[0])
    world.cluster.catch_up()
    return 0.0


def denied(world: World) -> Trial:
    """A needed topic is denied for a while."""
    names = [n for n in world.app.needed if n in world.cluster.truth.topics]
    if not names:
        return None
    world.cluster.deny(names[0], True)
    world.cluster.catch_up()
    world.app.refresh_of(None, False, None)
    yield 1.0
    world.cluster.deny(names[0], False)
    world.cluster.catch_up()
    return DENIED_TTL


def hinted(world: World) -> Trial:
    """A leader moves; the application hands in the leader from a Produce response."""
    moved = _elect_unseen(world)
    if moved is None:
        return None
    name, index, epoch = moved
    world.cluster.catch_up()
    p = world.cluster.truth.topics[name].partitions[index]
    took = world.app.hint_of(name, index, p.leader, epoch)
    yield 0.0
    return 0.0 if took else None


def outage(world: World) -> Trial:
    """No server can be reached for some seconds, and a topic changes meanwhile."""
    if not world.network.open_links() or not _change(world):
        return None
    servers = list(world.cluster.servers.values())
    for server in servers:
        server.network = "reset"
        world.network.stop(server, silent=False)
    yield 5.0 * world.random.random() + 2 * world.scene.round_trip
    world.cluster.catch_up()
    for server in servers:
        server.network = "up"
    return 0.0


def moved(world: World) -> Trial:
    """Every server starts again at a new address; the old ones refuse connections."""
    if not world.scene.config.rebootstrap or not world.network.open_links():
        return None
    world.network.nobody = "refused"
    for server in world.cluster.servers.values():
        world.network.stop(server, silent=False)
        world.faults.moved += 1
        world.cluster.move(server.id, Address(f"moved-{world.faults.moved}", 9092))
    world.cluster.catch_up()
    world.point_bootstrap()
    yield 0.0
    return world.scene.config.reconnect_backoff_max


def usurped(world: World) -> Trial:
    """Every server moves, and another cluster has the old addresses."""
    config = world.scene.config
    if not config.rebootstrap or config.rebootstrap_trigger > 60 or world.faults.usurped:
        return None
    if not world.network.open_links() or world.cache.cluster_id != world.cluster.cluster_id:
        return None
    world.faults.usurp()
    world.cluster.catch_up()
    yield 0.0
    return config.rebootstrap_trigger + config.reconnect_backoff_max


def throttled(world: World) -> Trial:
    """Every server throttles the client, and a topic changes."""
    if not _change(world):
        return None
    world.cluster.catch_up()
    for server in world.cluster.servers.values():
        server.throttle_ms = 2000
    world.app.refresh_of(None, False, None)
    yield 2.0 * world.random.random()
    world.app.refresh_of(None, False, None)
    yield 0.5
    for server in world.cluster.servers.values():
        server.throttle_ms = 0
    return 3.0


def frozen(world: World) -> Trial:
    """The server in use freezes for a while, and a topic changes."""
    links = [link for link in world.network.open_links() if link.ready and link.server]
    if len(world.cluster.servers) < 2 or not links or any(link.node.id < 0 for link in links):
        return None
    if world.cluster.recreated and len(world.cluster.servers) < 3:
        return None  # a rewind takes the answers of two brokers
    if not _change(world):
        return None
    world.cluster.catch_up()
    server = world.random.choice(links).server
    assert server is not None
    server.frozen = True
    world.app.refresh_of(None, False, None)
    yield 0.0
    return 0.0


def laggard(world: World) -> Trial:
    """A leader moves, and the server in use has not heard of it for a long time."""
    links = [link for link in world.network.open_links() if link.ready and link.server]
    if len(world.cluster.servers) < 2 or not links:
        return None
    if any(server.versions[1] < 9 for server in world.cluster.servers.values()):
        return None  # their epochs do not count
    old = {server.id: server.state for server in world.cluster.servers.values()}
    moved = _elect_unseen(world)
    if moved is None:
        return None
    server = world.random.choice(links).server
    assert server is not None
    world.cluster.catch_up()
    name, index, epoch = moved
    p = world.cluster.truth.topics[name].partitions[index]
    took = world.app.hint_of(name, index, p.leader, epoch)
    server.state = old[server.id]
    yield 0.0
    return 0.0 if took else None


def gone(world: World) -> Trial:
    """A topic and a broker are removed for good; past max age nothing is kept of them."""
    max_age, truth = world.scene.config.max_age, world.cluster.truth
    server = list(world.cluster.servers.values())[-1]
    names = [n for n in world.app.wanted() if n in truth.topics and not world.app.waited(n)]
    if max_age is None or len(world.cluster.servers) < 2 or not names:
        return None
    if world.scene.config.refresh_interval is None:
        return None  # what is gone is forgotten when an answer comes
    world.app.forget_topics(names[:1])
    server.alive, server.network = False, "reset"
    world.network.stop(server, silent=False)
    world.cluster.fence(server.id)
    world.cluster.delete(names[0])
    world.cluster.catch_up()
    world.app.refresh_of(None, False, None)
    yield 1.3 * max_age + 100.0
    if names[0] not in world.cluster.truth.topics:  # unless a request has created it
        world.invariants.nothing_is_kept_of_what_is_gone(names[0], server)
    world.app.refresh_of(None, False, None)
    return 0.0


TRIALS: tuple[Callable[[World], Trial], ...] = (
    suspect, suspect, complaint, distracted, newer_epoch, refreshed, broken, periodic, overtaken,
    created, denied, hinted, outage, moved, usurped, throttled, frozen, laggard, gone,
)  # fmt: skip


def _leader_with_a_link(world: World) -> Server | None:
    """Returns a server with a ready link that leads a wanted partition which can move."""
    truth = world.cluster.truth
    for link in world.network.open_links():
        if not link.ready or link.server is None or link.server.cluster is not world.cluster:
            continue
        for name in world.app.wanted():
            topic = truth.topics.get(name)
            for p in topic.partitions if topic and name not in truth.denied else ():
                if p.leader == link.server.id == link.node.id and len(p.isr or ()) > 1:
                    return link.server
    return None


def _elect_unseen(world: World) -> tuple[str, int, int] | None:
    """Moves a leader of a wanted topic; no server hears of it yet."""
    truth = world.cluster.truth
    for name in world.app.wanted():
        topic = truth.topics.get(name)
        for p in topic.partitions if topic and name not in truth.denied else ():
            if world.cluster.elect_unseen(name, p.id):
                world.say("elected", name, p.id, p.epoch + 1)
                world.only = {name}
                return name, p.id, p.epoch + 1
    return None


def _change(world: World) -> bool:
    """Changes the ISR of a wanted topic so that no producer would notice; no server hears of it."""
    truth = world.cluster.truth
    for name in world.app.wanted():
        topic = truth.topics.get(name)
        if topic is None or name in truth.denied:
            continue
        for p in topic.partitions:
            if p.leader in p.replicas and len(p.isr or ()) > 1:
                partitions = [
                    replace(each, isr=(each.leader,)) if each is p else each
                    for each in topic.partitions
                ]
                world.cluster.unseen(replace(topic, partitions=partitions))
                world.say("isr shrinks", name, p.id)
                return True
    return False
