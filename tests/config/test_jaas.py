"""The value of sasl.jaas.config is read as Kafka reads it, and no error shows a part of it."""

from __future__ import annotations

import random

import pytest

from rdmeta.config.jaas import read_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("", {}),
        ('username="alice" password="a b"', {"username": "alice", "password": "a b"}),
        ("username='alice' password='say \"hi\"'", {"username": "alice", "password": 'say "hi"'}),
        (r'password="a\"b\\c\'d"', {"password": "a\"b\\c'd"}),
        (r'password="\t\101\60\7z\q"', {"password": "\tA0\x07zq"}),
        (r'password="\1019\0"', {"password": "A9\0"}),
        ("username=alice password=a-b_c$d.e", {"username": "alice", "password": "a-b_c$d.e"}),
        ("password=7up", {"password": "7up"}),
        ('password="// no /* comment */"', {"password": "// no /* comment */"}),
        ('a="1" // user="x"\n b="2" /* c="3"\n */ d="4"', {"a": "1", "b": "2", "d": "4"}),
        ('\n  username\n=\n"alice"', {"username": "alice"}),
        ('password="ü=;{}"', {"password": "ü=;{}"}),
        ('password=""', {"password": ""}),
        ('a="1" a="2"', {"a": "2"}),
    ],
)
def test_options_may_have_quotes_escapes_and_comments(options: str, found: dict[str, str]) -> None:
    assert read_jaas(f"{PLAIN} required {options};") == ("PlainLoginModule", found)


@pytest.mark.parametrize("flag", ["required", "REQUIRED", "requisite", "Sufficient", "optional"])
def test_a_login_module_has_one_of_four_flags(flag: str) -> None:
    assert read_jaas(f"PlainLoginModule {flag};") == ("PlainLoginModule", {})


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "names no login module"),
        ("  // nothing\n", "names no login module"),
        ("= required;", "names no login module"),
        ("Plain;", "has no flag"),
        ('Plain username="s3cr3t";', "has no flag"),
        ('Plain required password="s3cr3t"', "does not end with a semicolon"),
        ('Plain required password="s3cr3t', "a quote is not closed"),
        ('Plain required password="s3c\nr3t";', "a quote is not closed"),
        ('Plain required password="s3cr3t"x";', "a quote is not closed"),
        ("Plain required password=s3cr3t!;", "character 31 is outside quotes"),
        ("Plain required password=s3cr3t other;", 'option 2 is not NAME="VALUE"'),
        ("Plain required password=;", 'option 1 is not NAME="VALUE"'),
        ("Plain required =s3cr3t;", 'option 1 is not NAME="VALUE"'),
        ('Plain required a "s3cr3t" b;', 'option 1 is not NAME="VALUE"'),
        ("Plain required; Scram required;", "more than one login module"),
        ('KafkaClient { Plain required a="s3cr3t"; };', "a file of several logins"),
    ],
)
def test_text_in_another_form_is_an_error_with_the_cause(text: str, cause: str) -> None:
    with pytest.raises(ValueError, match="^[: ]") as caught:
        read_jaas(text)
    assert cause in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_any_text_is_read_or_refused_without_a_part_of_it() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    pieces = [
        PLAIN,
        "required",
        "password",
        "=",
        "s3cr3t",
        '"',
        "'",
        "\\",
        ";",
        " ",
        "{",
        "/*",
        "!",
    ]
    for _ in range(5000):
        text = " ".join(chance.choices(pieces, k=chance.randrange(12)))
        refusal = ":"
        try:
            read_jaas(text)
        except ValueError as error:
            refusal = str(error)
        assert "s3cr3t" not in refusal
        assert refusal.startswith((":", " "))
