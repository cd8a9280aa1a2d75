"""The file of clusters, and clusters that are asked side by side."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import commands
import pytest

from rdmeta.cli.messages import BadInputError, Messages
from rdmeta.cli.shared_options import Target, clusters_file, named_clusters, side_by_side
from rdmeta.errors import TransportError


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "clusters.ini"
    monkeypatch.setenv("RDMETA_CLUSTERS", str(made))
    return made


def named(names: str) -> list[tuple[str, dict[str, str]]]:
    return named_clusters(names, Messages())


def test_the_file_is_in_the_home_directory_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RDMETA_CLUSTERS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert clusters_file() == tmp_path / ".config/rdmeta/clusters.ini"


def test_sections_have_the_clients_keys_and_values_are_taken_as_they_are(file: Path) -> None:
    file.write_text(
        "; a comment\n[a.b]\n# another\nbootstrap.servers = x:1,y:2\n"
        "sasl.password = 50%(x)s = ;#%\nsasl.username:\n"
    )
    with pytest.raises(BadInputError, match="line 6: expected key = value"):
        named("a.b")
    file.write_text("[a.b]\nsasl.password = 50%(x)s = ;#%\nClient.ID = Äpfel\n[B]\n", "utf-8")
    assert named("all") == [
        ("a.b", {"sasl.password": "50%(x)s = ;#%", "Client.ID": "Äpfel"}),
        ("B", {}),
    ]
    assert [name for name, _ in named("B, a.b,B")] == ["B", "a.b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"sasl.password = hidden\n", "line 1: a section such as [prod] must come first"),
        (b"[a]\nhidden\n", "line 2: expected key = value"),
        (b"[a]\nk = hidden\nk = hidden\n", "line 3: [a] has k twice"),
        (b"[a]\n[b]\n[a]\n", "line 3: there are two sections [a]"),
        (b"[a]\nk = hidden \xff\n", "it is not UTF-8"),
        (b"[" + b"a" * (1 << 20) + b"]\n", "a file of clusters has at most 1048576 characters"),
        (b"", "there is no cluster in it: add a section such as [prod]"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_the_line(file: Path, text: bytes, said: str) -> None:
    file.write_bytes(text)
    with pytest.raises(BadInputError) as raised:
        named("all")
    assert str(raised.value) == f"{file}: {said}"


def test_a_name_that_no_other_one_is_near_gets_all_of_them(file: Path) -> None:
    file.write_text("[production]\n[testing]\n")
    with pytest.raises(BadInputError, match="no cluster 'x'; it has production, testing"):
        named("x")


def test_other_users_should_not_be_able_to_read_secrets(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("[a]\nsasl.password = x\n[b]\nclient.id = y\n")
    file.chmod(0o644)
    named("b")
    assert capsys.readouterr().err == ""
    named("a")
    assert capsys.readouterr().err == (
        f"rdmeta: {file} has secrets, and other users can read it: chmod 600 {file}\n"
    )
    file.chmod(0o600)
    named("all")
    assert capsys.readouterr().err == ""


TARGETS = [Target(str(number), {}) for number in range(40)]


def test_results_come_in_order_each_with_its_target_or_its_error() -> None:
    def work(target: Target) -> int:
        number = int(target.name or "")
        time.sleep(0.01 * (number % 3))
        if number == 5:
            raise TransportError("gone")
        return number

    found = list(side_by_side(TARGETS, work))
    assert [target for target, _ in found] == TARGETS
    assert [value for _, value in found if isinstance(value, int)] == [
        number for number in range(40) if number != 5
    ]
    assert isinstance(found[5][1], TransportError)


def test_16_clusters_are_asked_at_once_and_no_more() -> None:
    running, most, lock = 0, 0, threading.Lock()
    barrier = threading.Barrier(16, timeout=30)

    def work(target: Target) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        if int(target.name or "") < 16:
            barrier.wait()
        with lock:
            running -= 1

    assert not [value for _, value in side_by_side(TARGETS, work) if value is not None]
    assert most == 16


def test_a_lone_cluster_is_asked_in_the_same_thread() -> None:
    ((_, thread),) = side_by_side(TARGETS[:1], lambda _: threading.current_thread())
    assert thread is threading.current_thread()


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["quorum"],
        ["config", "--check"],
        ["watch", "--for", "5"],
        ["record", "-o", "history", "--for", "2"],
    ],
)
@pytest.mark.parametrize("names", ["closed,wrong", "wrong,closed"])
def test_the_highest_exit_code_counts_and_each_failure_is_a_line(
    words: list[str], names: str, tmp_path: Path
) -> None:
    env = commands.clusters(tmp_path, closed="127.0.0.1:1", wrong="127.0.0.1:1\nno.option = 1")
    done = commands.run(*words, "-c", names, "--timeout", "0.5", env=env, cwd=tmp_path)
    lines = sorted(done.err.splitlines())
    assert (done.code, len(lines)) == (3, 2), done.err
    assert lines[0].startswith("rdmeta: closed: ")
    assert "cannot connect: Connection refused" in lines[0]
    assert lines[1] == "rdmeta: wrong: unknown option 'no.option'"
