"""Checks the value of an option, by the option's kind.

Each check returns what the configuration uses, or raises ValueError. The error's text goes after
the option's name. It shows no value of the kinds that have secrets, nor of a path, into which
a user may have written a key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from rdmeta.config.option_table import LONGEST_PEM, LONGEST_TEXT, MECHANISMS, Option, allowed
from rdmeta.config.secret import Secret

_FLAGS: dict[str | int, bool] = {
    **dict.fromkeys(("true", "t", "1", 1), True),
    **dict.fromkeys(("false", "f", "0", 0), False),
}
# Text such as "010" is refused: it is 8 for librdkafka, and 10 for Java.
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,19})")
_PATTERN = re.compile(r"(?:[^,]|,,)+")
_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")
_LONGEST_SHOWN = 60
_PEM = "-----BEGIN "
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----\s*", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/=]+")
# A user name or a password before the host would be in errors of the network.
_URL = re.compile(r"https?://[^\s/?#@]+(?:[/?#]\S*)?", re.IGNORECASE)
_PAIR_NAME = re.compile(r"[A-Za-z]+")
_PAIR_VALUE = re.compile(r"[\x20-\x7e\t\r\n]*")
_OUR_VERSIONS = ("TLSv1.2", "TLSv1.3")
_OLD_VERSIONS = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")


def shown(value: object) -> str:
    """Returns a value as an error may show it: short, and only of simple types."""
    if not isinstance(value, (str, int, float)) and value is not None:
        return f"of type {type(value).__name__}"
    if isinstance(value, int) and value.bit_length() > 4 * _LONGEST_SHOWN:
        return f"an integer of {value.bit_length()} bits"  # repr() may refuse it
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _wrong(option: Option, value: object) -> ValueError:
    return ValueError(f" = {shown(value)}: expected {allowed(option)}{option.hint}")


def _servers(option: Option, value: object) -> str:
    """Returns the text; whether it is readable depends on the protocol, too."""
    if not isinstance(value, str):
        raise _wrong(option, value)
    return value


def _text(option: Option, value: object) -> str:
    if not isinstance(value, (str, int)):
        raise _wrong(option, value)
    try:
        text = str(value)
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f" = {shown(value)}: not UTF-8") from None
    except ValueError:  # an integer with more digits than str() writes
        raise _wrong(option, value) from None
    if size > LONGEST_TEXT:
        raise _wrong(option, value)
    return text


def _integer(option: Option, value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    else:
        raise _wrong(option, value)
    if number not in option.never and not option.lowest <= number <= option.highest:
        raise _wrong(option, value)
    return number


def _flag(option: Option, value: object) -> bool:
    text = value.strip().lower() if isinstance(value, str) else value
    found = _FLAGS.get(text) if isinstance(text, (str, int)) else None
    if found is None:
        raise _wrong(option, value)
    return found


def _choice(option: Option, value: object) -> str:
    found = value.strip().lower() if isinstance(value, str) else ""
    if found not in option.choices:
        raise _wrong(option, value)
    return found


def _patterns(option: Option, value: object) -> tuple[re.Pattern[str], ...]:
    if not isinstance(value, str):
        raise _wrong(option, value)
    return tuple(_pattern(part.replace(",,", ",")) for part in _PATTERN.findall(value))


def _pattern(text: str) -> re.Pattern[str]:
    if posix := _POSIX_CLASS.search(text):  # Python gives it another meaning, without an error
        raise ValueError(f": {shown(text)} has {posix[0]}, which Python's expressions lack")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f": {shown(text)} is no regular expression: {error}") from None


# ---- security -----------------------------------------------------------------------------------


def _hidden(option: Option, value: object) -> ValueError:
    """Returns an error that shows nothing of a value but its type."""
    kind = "" if isinstance(value, str) else f" of type {type(value).__name__}"
    return ValueError(f"{kind}: expected {allowed(option)}{option.hint}")


def _hidden_text(option: Option, value: object) -> str:
    """Returns an integer or text in UTF-8 as text."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 256:
        value = str(value)
    if not isinstance(value, str):
        raise _hidden(option, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(": not UTF-8") from None
    return value


def _path(option: Option, value: object) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise _hidden(option, value)
    if _PEM in value:
        other = option.key.replace(".location", ".pem")
        hint = "" if other == option.key or "crl" in other else f"; {other} takes such text"
        raise ValueError(f": it is text in PEM, not a path{hint}")
    if "\0" in value:
        raise ValueError(": a path has no NUL")
    return value


def _pem(option: Option, value: object) -> str:
    """Returns text in PEM with the line breaks that OpenSSL needs."""
    text = _hidden_text(option, value)
    if not text.strip():
        return ""
    if len(text) > LONGEST_PEM:
        raise ValueError(f": longer than {LONGEST_PEM} bytes")
    if _PEM not in text:
        path = option.key.replace(".pem", ".location")
        hint = "" if path == option.key else f"; {path} takes the path of a file"
        raise ValueError(f": it is not text in PEM, which has a line -----BEGIN ...{hint}")
    # An environment variable or a properties file may have lost the line breaks.
    text = text.replace("\\r", "").replace("\\n", "\n")
    if not _BLOCK.search(text):
        raise ValueError(": the text in PEM is cut off: a line -----END ... is missing")
    return _BLOCK.sub(_block, text)


def _block(match: re.Match[str]) -> str:
    """Returns a block of PEM in lines of 64; one with headers stays as it is."""
    label, text = match[1], "".join(match[2].split())
    if not _BASE64.fullmatch(text):
        return f"{match[0].rstrip()}\n"
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


def _certificates(option: Option, value: object) -> str:
    text = _pem(option, value)
    if text and "CERTIFICATE-----" not in text:
        raise ValueError(": the text in PEM has no certificate")
    return text


def _private_key(option: Option, value: object) -> Secret | str:
    if callable(value):
        return Secret(value, option.key)
    text = _pem(option, value)
    if text and "PRIVATE KEY-----" not in text:
        raise ValueError(": the text in PEM has no private key")
    return Secret(text, option.key) if text else ""


def _secret(option: Option, value: object) -> Secret:
    if callable(value):
        return Secret(value, option.key)
    return Secret(_line(option, value), option.key)


def _name(option: Option, value: object) -> Secret | str:
    return Secret(value, option.key) if callable(value) else _line(option, value)


def _line(option: Option, value: object) -> str:
    """Returns text that may be a secret; refuses the mistakes that a broker cannot name."""
    text = _hidden_text(option, value)
    if not text:
        raise ValueError(" is empty")
    if text[-1] in "\r\n":
        raise ValueError(" ends with a line break: strip it")
    if "\0" in text:
        raise ValueError(" has a NUL character")
    if len(text.encode()) > LONGEST_TEXT:
        raise _hidden(option, text)
    return text


def _mechanism(option: Option, value: object) -> str:
    found = value.strip().upper() if isinstance(value, str) else ""
    if found in MECHANISMS:
        return found
    expected = f"expected {allowed(option)}"
    if found == "GSSAPI":
        raise ValueError(f" = 'GSSAPI': GSSAPI (Kerberos) is not supported; {expected}")
    if found == "AWS_MSK_IAM":
        raise ValueError(
            " = 'AWS_MSK_IAM': only Amazon's library for Java speaks it; set OAUTHBEARER and"
            " oauth_cb, as examples/msk_iam.py does"
        )
    raise _wrong(option, value)


def _callable(option: Option, value: object) -> object:
    if not callable(value):
        raise _hidden(option, value)
    return value


def _url(option: Option, value: object) -> str:
    text = _hidden_text(option, value).strip()
    if text and not _URL.fullmatch(text):
        raise _hidden(option, text)
    return text


def _pairs(option: Option, value: object) -> tuple[tuple[str, str], ...]:
    text = _hidden_text(option, value)
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    for name, equals, after in pairs:
        if not equals or not _PAIR_NAME.fullmatch(name) or not _PAIR_VALUE.fullmatch(after):
            raise ValueError(f": expected {allowed(option)}; a name has only letters (RFC 7628)")
        if name == "auth":
            raise ValueError(": no extension may have the name auth (RFC 7628)")
    names = [name for name, _, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(": an extension is there twice")
    return tuple((name, after) for name, _, after in pairs)


def _versions(option: Option, value: object) -> tuple[str, ...]:
    """Returns the versions that rdmeta speaks; older ones may be beside them, as in Java."""
    text = value if isinstance(value, str) else ""
    named = [part.strip() for part in text.split(",") if part.strip()]
    found = tuple(each for each in _OUR_VERSIONS if each in named)
    if not found or set(named) - {*_OUR_VERSIONS, *_OLD_VERSIONS}:
        raise _wrong(option, value)
    return found


KINDS: dict[str, Callable[[Option, object], object]] = {
    "servers": _servers,
    "text": _text,
    "integer": _integer,
    "flag": _flag,
    "choice": _choice,
    "patterns": _patterns,
    "path": _path,
    "certificates": _certificates,
    "private key": _private_key,
    "secret": _secret,
    "name": _name,
    "mechanism": _mechanism,
    "callable": _callable,
    "url": _url,
    "pairs": _pairs,
    "versions": _versions,
}
"""The check of each kind."""
