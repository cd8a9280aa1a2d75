"""The policy: what it decides, with the real cache, a fake clock and canned answers."""

from __future__ import annotations

import random

import frames
from frames import B, P, T

from rdmeta import MetadataCache
from rdmeta.address import Address
from rdmeta.client.actions import Close, Connect, Finish, Send
from rdmeta.client.policy import Policy
from rdmeta.config import Config


def test_the_client_asks_for_needed_topics_when_it_starts() -> None:
    now = [0.0]
    cache = MetadataCache(clock=lambda: now[0])
    policy = Policy(cache, Config(), [Address("a", 1)], random.Random(1), topics=["orders"])
    (connect,) = policy.poll(0.0).actions
    assert isinstance(connect, Connect)
    policy.on_connected(connect.link, 0.0, (0, 12))
    (send,) = policy.poll(0.0).actions
    assert isinstance(send, Send)
    waiter = policy.wait_for_topic(0.0, "orders", 0, 5.0)
    body = frames.response(12, [T("orders", [P(0, 1, 1)])], [B(1, "a", 1)])
    policy.on_response(send.number, 0.0, 12, body)
    poll = policy.poll(0.0)
    assert [a for a in poll.actions if isinstance(a, Finish)] == [
        Finish(waiter, None, cache.version)
    ]
    assert poll.at > 0.0
    policy.close(0.0)
    assert [type(a) for a in policy.poll(0.0).actions] == [Close]
