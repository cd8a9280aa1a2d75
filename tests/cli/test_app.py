"""How a run of the command begins and ends: help, usage errors, exit codes, signals, pipes."""

from __future__ import annotations

import commands
import pytest

from rdmeta import __version__
from rdmeta.cli.app import COMMANDS

HEAVY = {"asyncio", "confluent_kafka", "logging", "pandas", "pyarrow", "pyspark", "rich", "ssl"}
MODULES = """
import sys
from rdmeta.cli import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def modules_of(*arguments: str) -> set[str]:
    """Returns the modules that a run of the command imports."""
    done = commands.run(*arguments, program=MODULES)
    assert done.code == 0, done.err
    return set(done.err.split())


def test_the_help_lists_each_command_and_imports_none_of_them() -> None:
    done = commands.run("--help")
    assert done.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in done.out
    loaded = modules_of("--help")
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.removeprefix("rdmeta.cli.") in COMMANDS}


def test_the_version_is_printed_without_any_package() -> None:
    assert commands.run("--version") == (0, f"rdmeta {__version__}\n", "")
    assert not modules_of("--version") & {*HEAVY, "click"}


def test_each_command_has_help_that_ends_with_two_examples() -> None:
    for name in COMMANDS:
        assert commands.run(name, "--help").code == 0
        assert [words[0] for words in commands.examples(name)] == [name, name]


def test_without_the_extra_the_command_says_what_to_install() -> None:
    program = "import sys; sys.modules['click'] = None\n" + commands.PROGRAM
    done = commands.run("list", program=program)
    advice = "rdmeta: the command needs the extra cli: pip install 'rdmeta[cli]'\n"
    assert done == (2, "", advice)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lsit"], "there is no command 'lsit'; did you mean list? (see rdmeta --help)"),
        (["list", "--jsn"], "there is no option --jsn; did you mean --json?"),
        (["list", "--timeout", "soon"], "'soon' is not a valid float"),
        (["list", "--timeout", "0"], "--timeout needs a number of seconds above 0"),
        (["list", "--timeout", "nan"], "--timeout needs a number of seconds above 0"),
        (["list", "-X", "secret"], "-X needs key=value, such as -X security.protocol=ssl"),
        (["list", "--json", "--csv"], "--json and --csv exclude each other"),
    ],
)
def test_a_usage_error_is_one_line_and_ends_with_2(words: list[str], said: str) -> None:
    code, out, err = commands.run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("rdmeta: ")
    assert said in err


def test_the_command_without_words_shows_its_help() -> None:
    code, out, err = commands.run()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: rdmeta")
