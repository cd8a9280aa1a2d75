"""A secret gives its value to its caller only."""

from __future__ import annotations

import copy
import pickle
import traceback
from functools import partial
from typing import Any

import pytest

from rdmeta.config.secret import Secret
from rdmeta.errors import ConfigError

VALUE = "s3cr3t-marked"


def test_the_text_of_a_secret_is_revealed_and_no_repr_has_it() -> None:
    secret = Secret(VALUE, "sasl.password")
    assert secret.reveal() == VALUE
    for text in (repr(secret), str(secret), f"{secret}", f"{secret!r}"):
        assert text == "Secret(sasl.password)"
    assert not hasattr(secret, "__dict__")


def test_a_callable_is_asked_at_each_reveal() -> None:
    answers = iter(["first", "second"])
    secret = Secret(lambda: next(answers), "sasl.password")
    assert [secret.reveal(), secret.reveal()] == ["first", "second"]


def test_a_callable_that_fails_gives_an_error_that_may_pass_and_has_no_secret() -> None:
    def fail() -> str:
        raise LookupError(VALUE)

    with pytest.raises(ConfigError) as caught:
        Secret(fail, "sasl.password").reveal()
    line = fail.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        f"sasl.password: its callable raised LookupError in fail (test_secret.py:{line});"
        " its text may have a secret and is not shown"
    )
    assert caught.value.retriable
    assert VALUE not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_a_callable_without_a_place_in_python_is_named_by_its_exception_alone() -> None:
    with pytest.raises(ConfigError, match="its callable raised ZeroDivisionError; its text"):
        Secret(partial(divmod, 1, 0), "sasl.password").reveal()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "sasl.password: its callable returned NoneType; expected str"),
        (VALUE.encode(), "sasl.password: its callable returned bytes; expected str"),
        ("", "sasl.password: its callable returned empty text"),
        (
            f"{VALUE}\n",
            "sasl.password: its callable returned text that ends with a line break: strip it",
        ),
        (
            f"{VALUE}\udcff",
            "sasl.password: its callable returned no legal Unicode text: it has bytes that are"
            " not UTF-8",
        ),
    ],
)
def test_a_callable_that_returns_no_usable_text_is_an_error(answer: Any, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Secret(lambda: answer, "sasl.password").reveal()
    assert str(caught.value) == text
    assert not caught.value.retriable


def test_a_callable_may_return_a_key_in_pem_which_ends_with_a_line_break() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    assert Secret(lambda: pem, "ssl.key.pem").reveal() == pem


def test_an_interrupt_passes_through_a_callable() -> None:
    def interrupt() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Secret(interrupt, "sasl.password").reveal()


def test_secrets_are_equal_by_key_and_value_and_hash_alike() -> None:
    one, same = Secret(VALUE, "a"), Secret(VALUE, "a")
    assert one == same
    assert hash(one) == hash(same)
    assert one != Secret("other", "a")
    assert one != Secret(VALUE, "b")
    assert one != VALUE


def test_a_secret_is_not_pickled_and_a_copy_is_the_secret_itself() -> None:
    secret = Secret(VALUE, "sasl.password")
    with pytest.raises(TypeError, match="a secret cannot be pickled: sasl.password"):
        pickle.dumps(secret)
    assert copy.copy(secret) is copy.deepcopy(secret) is secret
