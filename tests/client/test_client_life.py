"""Client alone: its thread, its end, Ctrl-C, exit, signals, patches."""

from __future__ import annotations

import gc
import random
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import types
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from broker import METADATA, Brokers, Fault
from processes import open_files
from waiting import PROMPT, check_interrupts, until

from rdmeta import Client
from rdmeta.errors import Error

ROOT = Path(__file__).parents[2]


def conf(brokers: Brokers, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": brokers.bootstrap, "reconnect.backoff.ms": 10, **more}


def ours() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("rdmeta-")]


def descriptors() -> list[str]:
    """Returns what the open descriptors are, without the brokers' side of connections."""
    return sorted(each.partition(":")[0] for each in open_files().values())


@contextmanager
def nothing_left(brokers: Brokers) -> Iterator[None]:
    """Checks that the block leaves no thread and no descriptor of a client."""
    gc.collect()  # what tests before this one left may go meanwhile, and counts for nothing
    before = Counter(descriptors())
    yield
    gc.collect()
    until(lambda: sum(each.open for each in brokers) == 0, "the brokers see the end")
    until(lambda: ours() == [], f"no thread is left: {ours()}")
    until(lambda: not Counter(descriptors()) - before, f"{descriptors()} are {before}")


def run(brokers: Brokers, code: str, **more: Any) -> subprocess.Popen[str]:
    """Starts a Python process in which every warning is an error."""
    setup = f"import rdmeta\nservers = {brokers.bootstrap!r}\n"
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", setup + textwrap.dedent(code)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def test_need_wakes_the_thread_at_once(brokers: Brokers) -> None:
    with Client(conf(brokers)) as client:
        client.refresh(())
        took = []
        for n in range(5):
            brokers.truth.create(f"t{n}")
            begun = time.monotonic()
            client.need(f"t{n}")
            until(lambda n=n: f"t{n}" in client.cache)  # type: ignore[misc]
            took.append(time.monotonic() - begun)
        assert min(took) < 0.1


@pytest.mark.slow
def test_a_client_has_one_thread_and_an_idle_one_needs_no_time(brokers: Brokers) -> None:
    with Client(conf(brokers), topics=["orders"]) as client:
        client.refresh()
        assert ours() == ["rdmeta-client"]
        time.sleep(0.3)
        begun = time.process_time()
        time.sleep(1.0)
        assert time.process_time() - begun < 0.01


def test_close_leaves_nothing(brokers: Brokers) -> None:
    with nothing_left(brokers):
        for _ in range(5):
            with Client(conf(brokers), topics=["orders"]) as client:
                client.on_change(print)
                client.on_update(print)
                client.refresh()


def test_threads_may_close_a_client_at_any_moment(brokers: Brokers) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    with nothing_left(brokers):
        for _ in range(30):
            client = Client(conf(brokers), topics=["orders"])
            strange: list[BaseException] = []

            def use(client: Client = client, strange: list[BaseException] = strange) -> None:
                calls = [
                    lambda: client.refresh(timeout=20),
                    lambda: client.need("orders"),
                    lambda: client.leader("orders", 1),
                    lambda: client.stats(),
                    lambda: client.on_change(len),
                    client.close,
                ]
                try:
                    for _ in range(4):
                        time.sleep(rng.choice([0, 0, 0.001, 0.01]))
                        rng.choice(calls)()
                except Error as error:
                    if "closed" not in str(error):
                        strange.append(error)
                except BaseException as error:
                    strange.append(error)

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(rng.random() * 0.02)
            client.close()
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive()
            assert strange == []


def test_close_is_prompt_while_a_broker_is_silent(brokers: Brokers) -> None:
    client = Client(conf(brokers), topics=["orders"])
    client.refresh()
    for broker in brokers:
        broker.freeze()
    client.refresh(wait=False)
    time.sleep(0.05)
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < PROMPT
    for broker in brokers:
        broker.thaw()


def test_close_is_prompt_while_a_name_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    going_on = threading.Event()

    def hang(*args: Any, **more: Any) -> Any:
        going_on.wait(30)
        raise socket.gaierror("never")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    client = Client({"bootstrap.servers": "nowhere.invalid:9092"})
    client.start()
    time.sleep(0.05)
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < PROMPT
    assert "rdmeta-client" not in ours()
    going_on.set()
    until(lambda: ours() == [])


def test_close_waits_a_second_at_most_for_a_listener(brokers: Brokers) -> None:
    entered, going_on = threading.Event(), threading.Event()

    def hang(changes: Any) -> None:
        entered.set()
        going_on.wait(30)

    client = Client(conf(brokers), topics=["orders"])
    client.on_change(hang)
    client.refresh()
    assert entered.wait(20)
    begun = time.monotonic()
    client.close()
    assert 0.9 < time.monotonic() - begun < PROMPT
    going_on.set()
    until(lambda: ours() == [])


def test_a_client_that_is_dropped_ends(brokers: Brokers) -> None:
    def dropped() -> weakref.ref[Client]:
        client = Client(conf(brokers), topics=["orders"])
        client.on_change(lambda changes: client.need("orders"))  # it refers to its client
        client.refresh()
        return weakref.ref(client)

    with nothing_left(brokers):
        gone = dropped()
        # While its listener runs, that has a reference.
        until(lambda: gc.collect() >= 0 and gone() is None)


def test_close_waits_a_second_at_most_for_all_listeners(brokers: Brokers) -> None:
    going_on = threading.Event()
    entered: list[object] = []

    def hang(updates: object) -> None:
        entered.append(updates)
        going_on.wait(30)

    client = Client(conf(brokers))
    for _ in range(10):
        client.on_update(hang)
    client.refresh()
    until(lambda: len(entered) == 10)
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < PROMPT
    going_on.set()
    until(lambda: ours() == [])


def test_a_client_that_is_dropped_frees_its_cache(brokers: Brokers) -> None:
    client = Client(conf(brokers))
    client.refresh()
    driver = weakref.ref(client._driver)
    del client
    until(lambda: ours() == [])
    gc.collect()
    assert driver() is None


def test_a_call_ends_if_the_thread_of_another_call_cannot_be_started(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(conf(brokers))
    entered, going_on = threading.Event(), threading.Event()

    def refused(thread: threading.Thread) -> None:
        entered.set()
        going_on.wait(20)
        raise RuntimeError("can't create new thread at interpreter shutdown")

    class Refused(threading.Thread):
        start = refused

    errors: list[BaseException] = []

    def call() -> None:
        try:
            client.refresh()
        except Exception as error:
            errors.append(error)

    callers = [threading.Thread(target=call, daemon=True) for _ in range(2)]
    monkeypatch.setattr("rdmeta.client.thread.threading.Thread", Refused)
    callers[0].start()
    assert entered.wait(20)
    callers[1].start()
    until(lambda: len(client._thread._mail) > 0)
    going_on.set()
    for caller in callers:
        caller.join(20)
    assert len(errors) == 2
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < PROMPT


def test_ctrl_c_ends_a_wait(brokers: Brokers) -> None:
    with Client(conf(brokers)) as client:
        client.refresh(())
        check_interrupts(lambda: client.wait_for_topic("never", timeout=50))
        for broker in brokers:
            broker.freeze()
        check_interrupts(lambda: client.refresh(timeout=50))
        for broker in brokers:
            broker.thaw()
        assert client.leader("orders", 0) == 1


def test_a_signal_handler_may_use_and_close_a_client(brokers: Brokers) -> None:
    with nothing_left(brokers):
        client = Client(conf(brokers), topics=["orders"])
        client.refresh()
        calls: list[int] = []
        nested: list[int] = []

        def handle(*_: Any) -> None:
            if nested or len(calls) == 200:  # the last call has closed the client
                return
            nested.append(1)
            try:
                use()
            finally:
                nested.clear()

        def use() -> None:
            calls.append(len(calls))
            client.need(f"t{len(calls)}")
            client.leader("orders", 0)
            if len(calls) == 200:
                client.close()

        old = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            with suppress(Error):
                while True:
                    client.need(f"other{len(calls)}")
                    client.stats()
                    client.least_loaded()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        assert len(calls) == 200


def test_the_client_s_own_thread_cannot_wait_for_itself(brokers: Brokers) -> None:
    with Client(conf(brokers)) as client:
        client.refresh(())

        def wait() -> Any:
            try:
                return client.refresh()
            except Error as error:
                return error

        assert "own thread" in str(client._thread.call(wait))


def assert_ends(brokers: Brokers, code: str) -> None:
    """Runs a program that prints "done"; it must end soon."""
    begun = time.monotonic()
    with run(brokers, code) as process:
        out, err = process.communicate(timeout=60)
    # asyncio's debug mode names what takes long, as all does on a busy machine.
    said = [line for line in err.splitlines() if not line.startswith("Executing <")]
    assert (out, said) == ("done\n", [])
    assert time.monotonic() - begun < 20


def test_an_open_client_holds_up_no_exit(brokers: Brokers) -> None:
    code = """
        client = rdmeta.Client({"bootstrap.servers": servers}, topics=["orders"])
        client.on_change(lambda changes: client)
        client.refresh()
        print("done")
    """
    assert_ends(brokers, code)
    until(lambda: sum(each.open for each in brokers) == 0)


def test_a_first_call_while_the_interpreter_ends_is_refused(brokers: Brokers) -> None:
    code = """
        class Late:
            def __init__(self):
                self.me, self.client = self, rdmeta.Client({"bootstrap.servers": servers})
            def __del__(self):
                try:
                    self.client.refresh(timeout=1)
                except rdmeta.Error as error:
                    print(error)
        late = Late()
        """
    process = run(brokers, code)
    try:
        assert "the interpreter ends" in process.communicate(timeout=30)[0]
    finally:
        process.kill()


def test_an_exit_does_not_wait_for_a_name(brokers: Brokers) -> None:
    code = """
        import socket, time
        socket.getaddrinfo = lambda *a, **k: time.sleep(100)
        client = rdmeta.Client({"bootstrap.servers": "nowhere.invalid:9092"})
        client.start()
        time.sleep(0.1)
        print("done")
    """
    assert_ends(brokers, code)


@pytest.mark.slow
def test_ctrl_c_at_any_moment_leaves_a_process_that_ends(brokers: Brokers) -> None:
    code = """
        import faulthandler, threading, time
        faulthandler.dump_traceback_later(20, exit=True)
        client = rdmeta.Client({"bootstrap.servers": servers})
        try:
            print("go", flush=True)
            while True:
                with rdmeta.Client({"bootstrap.servers": servers}, topics=["orders"]) as client:
                    client.on_change(len)
                    client.refresh()
                    try:
                        client.wait_for_topic("never", timeout=0.01)
                    except rdmeta.RequestTimedOutError:
                        pass
        except KeyboardInterrupt:
            client.close()
            client.close()
            end = time.monotonic() + 10
            del client  # Ctrl-C may have dropped another one, which ends by itself
            while left := [t.name for t in threading.enumerate() if t.name == "rdmeta-client"]:
                if time.monotonic() > end:
                    break
                time.sleep(0.01)
            print("interrupted", left, flush=True)
    """
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(6):
        with run(brokers, code) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "go\n"
            time.sleep(0.1 + rng.random() * 0.2)
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=8)
            except subprocess.TimeoutExpired:
                # Python drops an interrupt that comes within a finalizer. A client that hung in
                # close() would end by the second one with a traceback.
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=30)
        assert (out, process.returncode) == ("interrupted []\n", 0), err


def test_import_loads_neither_asyncio_nor_ssl() -> None:
    code = (
        "import sys, rdmeta; print([m for m in ('asyncio', 'ssl', 'logging') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"


def test_a_client_refuses_patched_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    patched: Any = types.ModuleType("gevent.monkey")
    patched.is_module_patched = lambda name: name == "threading"
    monkeypatch.setitem(sys.modules, "gevent.monkey", patched)
    with pytest.raises(Error, match=r"gevent.*attach\(\)"):
        Client({"bootstrap.servers": "localhost:9092"})
    patched.is_module_patched = lambda name: False
    Client({"bootstrap.servers": "localhost:9092"})
    patcher: Any = types.ModuleType("eventlet.patcher")
    patcher.is_monkey_patched = lambda name: name == "socket"
    monkeypatch.setitem(sys.modules, "eventlet.patcher", patcher)
    with pytest.raises(Error, match=r"eventlet"):
        Client({"bootstrap.servers": "localhost:9092"})


def test_a_client_cannot_be_pickled(brokers: Brokers) -> None:
    import copy

    with pytest.raises(TypeError, match="cannot be pickled"):
        copy.copy(Client(conf(brokers)))


def test_a_late_answer_after_close_changes_nothing(brokers: Brokers) -> None:
    client = Client(conf(brokers), topics=["orders"])
    client.refresh()
    version = client.cache.version
    for broker in brokers:
        broker.fault = Fault(delay=0.2)
    brokers.truth.lead("orders", 0, 3)
    n = len(brokers.requests(METADATA))
    client.refresh(wait=False)
    until(lambda: len(brokers.requests(METADATA)) > n)
    client.close()
    time.sleep(0.3)
    assert client.cache.version == version
