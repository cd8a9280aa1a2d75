"""Writes docs/reference/options.md, the page of the client's options, from the table of options.

    python tools/options_page.py          # updates the page
    python tools/options_page.py --check  # writes nothing; exits with 1 if the page is behind

The table is rdmeta/config/option_table.py.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from runpy import run_path
from typing import Any

from generated import ROOT, bring_up_to_date

TABLE = ROOT / "rdmeta/config/option_table.py"
PAGE = ROOT / "docs/reference/options.md"

HEAD = """\
# Options of the client

`tools/options_page.py` writes this page from `rdmeta/config/option_table.py`. The client checks
each configuration against the same table.

A configuration is a mapping, as for confluent-kafka:
`rdmeta.Client({"bootstrap.servers": "kafka-1:9092", "retry.backoff.ms": 50})`. Values may be text
or native: `"50"` or `50`, `"true"` or `True`. Names, ranges and defaults are librdkafka's; an
option of another origin says so. So a configuration made for confluent-kafka works.

`rdmeta.config.load(path)` reads a properties file: lines `key=value` in UTF-8, with the comments,
escapes and continued lines of Java's files. The last value of a key counts.

A wrong configuration raises one `rdmeta.ConfigError` before anything connects. The error lists
every unknown option with the nearest one that exists, every wrong value with the range, and every
contradiction. It shows no secret.

"""

COLUMNS = """\
| option | values | default | importance | what it does |
|---|---|---|---|---|
"""

WAITS = """
`retry.backoff.ms` and `topic.metadata.refresh.fast.interval.ms` cannot be longer than
`retry.backoff.max.ms`, nor `reconnect.backoff.ms` than `reconnect.backoff.max.ms`. If only one of
two such options is set, the default of the other adapts to it.

## Options that metadata does not need

The client accepts these, ignores their values, and names them in one log line. Each may have the
prefix `topic.`. The client calls none of the callbacks among them: `Client.on_error()` and
`Client.on_change()` take functions, and log lines go to the loggers below `rdmeta`.

"""

SECURITY = """
## TLS and SASL

`security.protocol` and `sasl.mechanism` say which of the options with `ssl.`, `sasl.` and `https.`
have an effect. The others are accepted, and named in one log line. Options of TLS or SASL without
`security.protocol` are an error.

A secret may be text, or a callable without arguments that returns the text. The client calls it
again for each connection, in a thread of its own, so a password that was changed is used without a
restart. A secret from the environment or a file is the application's to read:

    import os
    from pathlib import Path

    client = rdmeta.Client(
        {
            "bootstrap.servers": "kafka-1:9093",
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": os.environ["KAFKA_USER"],
            "sasl.password": lambda: Path("/run/secrets/kafka").read_text().strip(),
        }
    )

No repr, log line or error shows a secret. A configuration with a secret cannot be pickled.

## Keys of Java's clients

A properties file of a Java client works, too. Its keys that librdkafka lacks mean:

| key | what the client makes of it |
|---|---|
"""

REFUSED = """
## Options that are refused

The client cannot serve these. Where they would have an effect, the error says why, and what to use.

| option | why |
|---|---|
"""


def row(option: Any, allowed: Any) -> str:
    key = f"`{option.key}`" + (f", `{option.alias}`" if option.alias else "")
    default = option.default_doc or shown_default(option)
    origin = "" if option.origin == "librdkafka" else f" It is an option of {option.origin}."
    return (
        f"| {key} | {allowed(option)} | {default} | {option.importance} | {option.doc}{origin} |\n"
    )


def shown_default(option: Any) -> str:
    if option.default in ("", ()):
        return ""
    if isinstance(option.default, bool):
        return f"`{str(option.default).lower()}`"
    return f"`{option.default}`"


def listed(keys: Any) -> str:
    text = ", ".join(f"`{key}`" for key in sorted(keys))
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def grouped(reasons: dict[str, str]) -> str:
    """Returns a row for each text, with all of its keys."""
    keys: dict[str, list[str]] = {}
    for key, text in reasons.items():
        keys.setdefault(text, []).append(key)
    return "".join(
        f"| {', '.join(f'`{key}`' for key in sorted(of))} | {text} |\n" for text, of in keys.items()
    )


def page(table: dict[str, Any]) -> str:
    """Returns the text of the page."""
    rows = "".join(row(option, table["allowed"]) for option in table["OPTIONS"])
    java = grouped({key: each.doc for key, each in table["JAVA_KEYS"].items()})
    refused = grouped({key: each.reason for key, each in table["REFUSED"].items()})
    not_needed = listed(table["NOT_NEEDED"])
    return "".join([HEAD, COLUMNS, rows, WAITS, not_needed, SECURITY, java, REFUSED, refused])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing")
    check = parser.parse_args().check
    return bring_up_to_date({PAGE: page(run_path(str(TABLE)))}, check)


if __name__ == "__main__":
    sys.exit(main())
