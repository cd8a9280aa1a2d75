"""Error codes and their exceptions."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from rdmeta import _core, errors
from rdmeta.errors import ERRORS, LOCAL_ERRORS, Error, error_name, from_code

CLASSES = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Error)
]


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_kafkas_codes_have_the_same_name_in_c_and_in_python(code: int) -> None:
    if code == -1:
        # C has one name for -1, and that is "no leader", which a lookup returns.
        assert _core.NO_LEADER == -1
    else:
        assert _core.code_name(code) == error_name(code)


@pytest.mark.parametrize("code", sorted(LOCAL_ERRORS))
def test_local_codes_have_the_same_name_in_c_and_in_python(code: int) -> None:
    assert _core.code_name(code).removeprefix("RDMETA_").removeprefix("ERR_") == error_name(code)


@pytest.mark.parametrize(
    "name", ["NOT_CACHED", "WAITING", "STALE", "UNKNOWN_TOPIC", "NO_PARTITION", "DENIED", "INVALID"]
)
def test_a_lookups_codes_are_exported_with_the_values_of_c(name: str) -> None:
    assert error_name(getattr(_core, name)) == name


@pytest.mark.parametrize("code", [code for code in sorted(ERRORS) if code != 0])
def test_every_kafka_code_becomes_an_exception_that_carries_it(code: int) -> None:
    error = from_code(code, "orders")
    assert error.code == code
    assert error.retriable is ERRORS[code][1]
    assert str(error) == f"{ERRORS[code][0]}: orders"


@pytest.mark.parametrize("code", sorted(LOCAL_ERRORS))
def test_every_local_code_becomes_its_own_exception(code: int) -> None:
    name, kind = LOCAL_ERRORS[code]
    error = from_code(code, "orders")
    assert type(error) is kind
    assert error.code != code
    assert str(error) == f"{name}: orders"


def test_an_error_that_no_broker_sent_has_no_code() -> None:
    codes = {code: from_code(code).code for code in LOCAL_ERRORS}
    sent_by_brokers = {"UNKNOWN_TOPIC": 3, "DENIED": 29, "INVALID": 17}
    assert codes == {code: sent_by_brokers.get(error_name(code)) for code in LOCAL_ERRORS}
    assert errors.RequestTimedOutError("no answer").code is None


@pytest.mark.parametrize(
    "kind",
    [
        errors.NoSuchPartitionError,
        errors.NotCachedError,
        errors.RequestTimedOutError,
        errors.StaleError,
        errors.TransportError,
    ],
)
def test_an_error_that_may_pass_is_retriable(kind: type[Error]) -> None:
    error = kind("orders")
    assert (error.code, error.retriable) == (None, True)


@pytest.mark.parametrize("code", [33, 34, 58])
def test_a_refused_login_is_an_authentication_error_that_does_not_pass(code: int) -> None:
    error = from_code(code, "no")
    assert type(error) is errors.AuthenticationError
    assert (error.code, error.retriable) == (code, False)


def test_an_error_of_tls_is_one_of_transport_and_passes_only_if_it_says_so() -> None:
    error = errors.TlsError("unknown CA")
    assert isinstance(error, errors.TransportError)
    assert (error.code, error.retriable) == (None, False)
    assert errors.TlsError("reset", retriable=True).retriable


def test_a_code_that_the_table_lacks_is_not_retriable() -> None:
    error = from_code(32_000)
    assert (type(error), error.code, error.retriable) == (Error, 32_000, False)
    assert str(error) == "ERROR_32000"


def test_code_zero_is_no_error() -> None:
    with pytest.raises(ValueError, match="not an error"):
        from_code(0)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_exception_can_be_sent_to_another_process(kind: type[Error]) -> None:
    error = kind("orders", 3, True)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.code, again.retriable) == ("orders", 3, True)


def test_errors_with_an_equivalent_in_python_are_subclasses_of_it() -> None:
    assert isinstance(from_code(-123), ValueError)
    assert isinstance(from_code(-120), MemoryError)
    assert isinstance(errors.MissingExtraError.of("to_arrow()", "arrow"), ImportError)


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    error = errors.MissingExtraError.of("A cluster", "kafka", "cffi")
    assert "pip install -e '.[kafka,cffi]'" in str(error)


def test_the_command_of_a_checkout_works_in_any_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert errors.install_advice("cli") == f"pip install -e '{Path(__file__).parents[1]}[cli]'"


@pytest.mark.parametrize("extra", ["arrow", "pipeline", "spark"])
def test_an_installed_rdmeta_names_itself(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "__file__", "/nowhere/site-packages/rdmeta/errors.py")
    assert errors.install_advice(extra) == f"pip install 'rdmeta[{extra}]'"


def test_every_extra_that_an_error_names_exists() -> None:
    tree = Path(__file__).parents[1]
    known = re.findall(r"^(\w+) = \[", (tree / "pyproject.toml").read_text(), re.MULTILINE)
    named = [
        extra
        for file in (tree / "rdmeta").rglob("*.py")
        for extras in re.findall(r"MissingExtraError\.of\(\"[^\"]*\", ([^)]*)\)", file.read_text())
        for extra in re.findall(r"\"(\w+)\"", extras)
    ]
    assert len(named) > 10
    assert set(named) <= set(known)


def test_all_names_every_exception() -> None:
    assert {kind.__name__ for kind in CLASSES} <= set(errors.__all__)
