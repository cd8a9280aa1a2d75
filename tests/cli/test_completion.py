"""Completion for bash, zsh and fish: commands, options, and names of topics and clusters."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import commands
import pytest
from broker import Brokers, Fault
from waiting import PROMPT

import rdmeta
from rdmeta.cli import record
from rdmeta.cli.app import COMMANDS

HEAVY = {"asyncio", "confluent_kafka", "pandas", "pyarrow", "rich"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[rdmeta.EmbeddedCluster]:
    with rdmeta.EmbeddedCluster(brokers=1) as made:
        for name in ("orders", "orders.dead", "clicks"):
            made.create_topic(name)
        yield made


def question(shell: str, line: str, env: Mapping[str, str] = {}) -> dict[str, str]:
    """Returns the environment by which a shell's function asks.

    The cursor is at | in the line, without | at its end.
    """
    before, _, after = line.partition("|")
    words, rest = before.split(" "), after.split()
    asking = {
        "bash": {"COMP_LINE": before + after, "COMP_POINT": str(len(before))},
        "zsh": {"COMP_WORDS": "\n".join([*words, *rest]), "COMP_CWORD": str(len(words) - 1)},
        "fish": {"COMP_WORDS": before, "COMP_CWORD": words[-1]},
    }
    return {"_RDMETA_COMPLETE": f"{shell}_complete", **asking[shell], **env}


def asked(shell: str, line: str, env: Mapping[str, str] = {}) -> commands.Done:
    return commands.run(env=question(shell, line, env))


def found(shell: str, line: str, **env: str) -> list[str]:
    """Returns the values that a shell is offered, each of the type plain."""
    done = asked(shell, line, env)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    if shell == "zsh":
        assert set(lines[::3]) <= {"plain", ""}
        return [each.replace("\\:", ":") for each in lines[1::3]]
    assert all(each.startswith("plain,") for each in lines if each)
    return [each.removeprefix("plain,").partition("\t")[0] for each in lines if each]


SHELLS = ["bash", "zsh", "fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_options_are_completed(shell: str) -> None:
    assert found(shell, "rdmeta ") == list(COMMANDS)
    assert found(shell, "rdmeta li") == ["list"]
    assert found(shell, "rdmeta list --lea") == ["--leaderless"]
    assert found(shell, "rdmeta list --table br") == ["brokers"]
    assert found(shell, "rdmeta completion z") == ["zsh"]
    assert found(shell, "rdmeta --ver") == ["--version"]


@pytest.mark.parametrize("shell", SHELLS)
def test_topics_come_from_the_cluster_of_the_environment(
    shell: str, cluster: rdmeta.EmbeddedCluster
) -> None:
    env = {"RDMETA_BOOTSTRAP": cluster.bootstrap}
    assert found(shell, "rdmeta list -t or", **env) == ["orders", "orders.dead"]
    assert found(shell, "rdmeta list --urp --topic ", **env) == ["clicks", "orders", "orders.dead"]
    assert found(shell, "rdmeta list -t x", **env) == []


def test_each_command_with_topics_completes_them(cluster: rdmeta.EmbeddedCluster) -> None:
    env = {"RDMETA_BOOTSTRAP": cluster.bootstrap}
    with_topics = [name for name in COMMANDS if "-t" in found("bash", f"rdmeta {name} -")]
    assert {"list", "wait", "watch"} <= set(with_topics)
    for name in with_topics:
        assert found("bash", f"rdmeta {name} -t cl", **env) == ["clicks"]


@pytest.mark.parametrize("shell", SHELLS)
def test_options_on_the_line_name_the_cluster(
    shell: str, cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers = {cluster.bootstrap}\n")
    env = commands.clusters(tmp_path, here=cluster.bootstrap)
    for words in (
        f"-b {cluster.bootstrap}",
        f"--bootstrap={cluster.bootstrap}",
        f"--bootstrap-server={cluster.bootstrap}",
        f"-F {file}",
        f"-X bootstrap.servers={cluster.bootstrap}",
        "-c here",
    ):
        assert found(shell, f"rdmeta list {words} -t cl", **env) == ["clicks"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_options_after_the_cursor_count_too(shell: str, cluster: rdmeta.EmbeddedCluster) -> None:
    assert found(shell, f"rdmeta list -t cl| -b {cluster.bootstrap}") == ["clicks"]
    if shell == "bash":  # zsh does not tell of an empty word between others
        assert found(shell, f"rdmeta list -t | -b {cluster.bootstrap} --urp")[0] == "clicks"


def test_an_equals_sign_may_stand_before_the_name(cluster: rdmeta.EmbeddedCluster) -> None:
    line = f"rdmeta list -b {cluster.bootstrap} --topic=cl"
    assert found("bash", line) == ["clicks"]


@pytest.mark.parametrize("shell", SHELLS)
def test_clusters_are_completed_also_after_a_comma(shell: str, tmp_path: Path) -> None:
    file = tmp_path / "clusters.ini"
    file.write_text("[prod]\nsasl.password = x\n[test]\nbootstrap.servers = x:1\n")
    file.chmod(0o644)
    env = {"RDMETA_CLUSTERS": str(file)}
    assert found(shell, "rdmeta list -c ", **env) == ["all", "prod", "test"]
    assert found(shell, "rdmeta list --cluster pr", **env) == ["prod"]
    assert found(shell, "rdmeta list -c prod,te", **env) == ["prod,test"]


def test_files_are_left_to_the_shell_and_options_stay_as_they_were() -> None:
    option = next(each for each in record.command.params if "-o" in each.opts)
    assert asked("bash", "rdmeta record -o cl").out == "dir,cl\n"
    assert option.type is click.STRING
    assert asked("bash", "rdmeta list -F cl").out == "file,cl\n"
    assert asked("bash", "rdmeta list --image st").out == "file,st\n"


@pytest.mark.parametrize(
    "line",
    [
        "rdmeta list -t or",
        "rdmeta list -b 127.0.0.1:1 -t or",
        "rdmeta list -b a:b:c -t or",
        "rdmeta list -F /missing -t or",
        "rdmeta list -c nope -t or",
        "rdmeta list -X wrong -t or",
        "rdmeta list -b x:1 -X sasl.pasword=y -t or",
        "rdmeta list -b 127.0.0.1:1 -X security.protocol=ssl"
        " -X enable.ssl.certificate.verification=false -t or",
        "rdmeta lsit -t or",
        "rdmeta list 'or",
        "rdmeta list -c ",
    ],
)
def test_a_failure_is_silent(line: str) -> None:
    done = asked("bash", line, {"RDMETA_CLUSTERS": "/missing"})
    assert (done.code, done.err, done.out.strip()) == (0, "", "")


def test_a_shell_that_is_not_known_gets_no_answer() -> None:
    assert commands.run(env={"_RDMETA_COMPLETE": "ksh_complete"}) == (2, "", "")
    assert commands.run(env={"_RDMETA_COMPLETE": "bash_complete"}) == (0, "\n", "")


@pytest.mark.slow
def test_a_silent_cluster_costs_one_second() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        none = time_of("rdmeta list -t or")
        took = time_of(f"rdmeta list -b {address} -t or")
    assert took > 0.8
    assert took - none < PROMPT


@pytest.mark.slow
def test_clusters_that_are_silent_cost_one_second_together(tmp_path: Path) -> None:
    with Brokers(1) as brokers, Brokers(2) as slow:
        brokers.truth.create("orders")
        for broker in slow:
            broker.fault = Fault(silent=True)
        gone = {f"s{broker.id}": broker.address for broker in slow}
        env = commands.clusters(tmp_path, **gone, here=brokers.bootstrap)
        began = time.monotonic()
        assert found("bash", "rdmeta list -c all -t or", **env) == ["orders"]
        assert time.monotonic() - began < PROMPT


def time_of(line: str) -> float:
    """Returns how long a completion without a result takes, in seconds."""
    began = time.monotonic()
    assert found("bash", line) == []
    return time.monotonic() - began


def test_completion_imports_one_command_and_nothing_heavy(cluster: rdmeta.EmbeddedCluster) -> None:
    def loaded(line: str) -> set[str]:
        env = {"RDMETA_BOOTSTRAP": cluster.bootstrap}
        return commands.modules_of(env=question("bash", line, env))

    none = {name for name in loaded("rdmeta ") if name.removeprefix("rdmeta.cli.") in COMMANDS}
    assert none == {"rdmeta.cli.completion"}
    modules = loaded("rdmeta list -t cl")
    assert {name for name in COMMANDS if f"rdmeta.cli.{name}" in modules} == {"completion", "list"}
    assert not modules & HEAVY


# ---- shells -------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Returns a PATH with the command rdmeta."""
    tool = tmp_path / "rdmeta"
    tool.write_text(f"#!{sys.executable}\n{commands.PROGRAM}\n")
    tool.chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.proof
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_a_topic_while_a_user_types(
    path: str, cluster: rdmeta.EmbeddedCluster
) -> None:
    program = "import os; os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])"
    env = {"PATH": path, "PS1": "> ", "INPUTRC": "/dev/null"}
    with commands.Terminal(env=env, program=program, columns=200) as terminal:
        terminal.type('eval "$(rdmeta completion bash)"; echo do""ne\n')
        terminal.wait_for("\ndone")
        terminal.type(f"rdmeta list -b {cluster.bootstrap} -t cl\t--table topics\n")
        terminal.wait_for("-t clicks --table topics")
        terminal.wait_for("\nclicks ")
        terminal.type("rdmeta comp\tba\t\n")
        terminal.wait_for("rdmeta completion bash")
        terminal.type("exit\n")
        terminal.end()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_completes_a_topic_while_a_user_types(
    path: str, cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    setup = "autoload -U compinit; compinit -u -D\n"
    setup += f'PS1="> "; PATH={path}; eval "$(rdmeta completion zsh)"; echo done\n'
    (tmp_path / ".zshrc").write_text(setup)
    program = "import os; os.execvp('zsh', ['zsh', '-i'])"
    with commands.Terminal(
        env={"ZDOTDIR": str(tmp_path)}, program=program, columns=200
    ) as terminal:
        terminal.wait_for("done")
        terminal.type(f"rdmeta list -b {cluster.bootstrap} -t cl\t--table topics\n")
        terminal.wait_for("\nclicks ")
        terminal.type("exit\n")
        terminal.end()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish_completes_topics_clusters_and_commands(
    path: str, cluster: rdmeta.EmbeddedCluster, tmp_path: Path
) -> None:
    clusters = commands.clusters(tmp_path, here="h", there="t")

    def completed(line: str) -> list[str]:
        program = f"rdmeta completion fish | source; complete -C '{line}'"
        env = {"PATH": path, "HOME": str(tmp_path), **clusters}
        done = subprocess.run(
            ["fish", "-c", program], env=commands.surroundings(env), capture_output=True, text=True
        )
        return done.stdout.splitlines()

    assert completed(f"rdmeta list -b {cluster.bootstrap} -t cl") == ["clicks"]
    assert completed("rdmeta list -c here,th") == ["here,there"]
    assert completed("rdmeta comp") == [f"completion\t{COMMANDS['completion']}"]


def test_a_value_for_fish_may_have_commas() -> None:
    assert 'string split --max 1 "," $completion' in commands.run("completion", "fish").out


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell_is_printed(shell: str) -> None:
    done = commands.run("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_RDMETA_COMPLETE={shell}_complete" in done.out
    if (program := shutil.which(shell)) is not None:
        check = [program, "--no-execute" if shell == "fish" else "-n"]
        subprocess.run(check, input=done.out, text=True, check=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_names_that_no_topic_can_have_are_not_offered(shell: str) -> None:
    with Brokers(1) as brokers:
        for name in ("orders", "a\nplain,$(id)", "b\x1b[2J", "c\u202e", "d;id"):
            brokers.truth.create(name)
        assert found(shell, f"rdmeta list -b {brokers.bootstrap} -t ") == ["orders"]
