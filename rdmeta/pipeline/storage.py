"""Credentials of object stores: options `storage.*`, which no plan, page, error or log shows.

    keys = {"access_key": ..., "secret_key": ...}
    rdmeta.pipeline.plan(["s3://in/history"], "s3://out/tables", storage=keys)

A store is a path or a URI, and its credentials travel beside it. `using` gives them to each `Store`
that is opened inside, in a process of this machine or in a task on an executor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from rdmeta.config.secret import MASK
from rdmeta.errors import ConfigError
from rdmeta.pipeline.errors import PipelineError

PREFIX = "storage."
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
# Names that Hadoop has for a scheme of pyarrow, and those for one kind of store.
_KINDS = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "viewfs": "hdfs"}
# Values of options that are flags.
FLAGS = {"true": True, "false": False}
# A part of a secret that is this short would hide too much of a text.
_SHORTEST = 4


class StorageOption(NamedTuple):
    """An option: the kind of stores that take it, and its names in pyarrow, delta-rs, pyiceberg.

    delta-rs has no name for some.
    """

    kind: str
    arrow: str
    delta: str | None
    iceberg: str
    is_secret: bool = True


OPTIONS: dict[str, StorageOption] = {
    "access_key": StorageOption("s3", "access_key", "aws_access_key_id", "s3.access-key-id"),
    "secret_key": StorageOption(
        "s3", "secret_key", "aws_secret_access_key", "s3.secret-access-key"
    ),
    "session_token": StorageOption("s3", "session_token", "aws_session_token", "s3.session-token"),
    "region": StorageOption("s3", "region", "aws_region", "s3.region", False),
    "endpoint": StorageOption("s3", "endpoint_override", "aws_endpoint_url", "s3.endpoint", False),
    "access_token": StorageOption("gs", "access_token", None, "gcs.oauth2.token"),
    "account_key": StorageOption(
        "abfs", "account_key", "azure_storage_account_key", "adls.account-key"
    ),
    "sas_token": StorageOption("abfs", "sas_token", "azure_storage_sas_token", "adls.sas-token"),
    "tenant_id": StorageOption("abfs", "tenant_id", "azure_tenant_id", "adls.tenant-id", False),
    "client_id": StorageOption("abfs", "client_id", "azure_client_id", "adls.client-id", False),
    "client_secret": StorageOption(
        "abfs", "client_secret", "azure_client_secret", "adls.client-secret"
    ),
    "user": StorageOption("hdfs", "user", None, "hdfs.user", False),
    "kerberos_ticket": StorageOption("hdfs", "kerb_ticket", None, "hdfs.kerberos_ticket", False),
}


def kind_of(where: str) -> str | None:
    """Returns the kind of store that a URI names, such as s3 for s3a://; None for a path."""
    found = _URI.match(where)
    return None if found is None else _KINDS.get(found[1].lower(), found[1].lower())


def secret_options() -> tuple[str, ...]:
    """Returns the options that are credentials, by the names that a data source has for them."""
    return tuple(f"{PREFIX}{name}" for name, option in OPTIONS.items() if option.is_secret)


@dataclass(frozen=True)
class Storage:
    """Options by name, and by URI those that the URI itself had; no text of this shows a value."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    places: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, given: Mapping[str, str] | None) -> Storage:
        """Returns checked options; raises ConfigError, which shows no value."""
        for name, value in (given or {}).items():
            if name not in OPTIONS:
                near = get_close_matches(name, OPTIONS, 1, 0.6)
                advice = f"did you mean {PREFIX}{near[0]}?" if near else ""
                raise ConfigError(
                    f"unknown option {PREFIX}{name}: {advice or 'expected ' + ', '.join(OPTIONS)}"
                )
            if not isinstance(value, str) or not value.strip():
                raise ConfigError(f"option {PREFIX}{name}: expected a text that is not empty")
        return cls(dict(given or {}))

    def without(self, where: str) -> tuple[Storage, str]:
        """Returns a URI without its credentials, and the options with these."""
        clean, found = split(where)
        return (replace(self, places={**self.places, clean: found}) if found else self), clean

    def of(self, where: str) -> dict[str, str]:
        """Returns the options of a folder: those of its kind of store, and those of its URI."""
        kind = kind_of(where)
        found = {n: value for n, value in self.options.items() if OPTIONS[n].kind == kind}
        return {**found, **self.places.get(where, {})}


_NONE = Storage()
_current: ContextVar[Storage] = ContextVar("storage", default=_NONE)


def current() -> Storage:
    """Returns the credentials that count here."""
    return _current.get()


@contextmanager
def using(storage: Storage) -> Iterator[None]:
    """Lets these credentials count in the block."""
    before = _current.set(storage)
    try:
        yield
    finally:
        _current.reset(before)


def each_using(storage: Storage, rows: Iterator[Any]) -> Iterator[Any]:
    """Yields what an iterator yields; its own code, and no other, has these credentials."""
    while True:
        with using(storage):
            try:
                row = next(rows)
            except StopIteration:
                return
        yield row


def split(where: str) -> tuple[str, dict[str, str]]:
    """Returns a URI without its credentials, and these as options; a path stays as it is.

    Raises PipelineError for a password where no store takes one; it does not show it.
    """
    kind = kind_of(where)
    if kind is None:
        return where, {}
    parts = urlsplit(where)
    user, _, host = parts.netloc.rpartition("@")
    name, colon, password = user.partition(":")
    found = {}
    if kind == "s3" and user:
        found = {"access_key": unquote(name), "secret_key": unquote(password)}
        parts = parts._replace(netloc=host)
    elif kind == "abfs" and colon:  # before the colon is the container
        found = {"account_key": unquote(password)}
        parts = parts._replace(netloc=f"{name}@{host}" if name else host)
    elif colon:
        raise PipelineError(
            f"{parts.scheme}://{host}{parts.path}: its URI has a password, which no store of that"
            " kind takes: docs/pipeline.md says which credentials count"
        )
    if kind == "abfs" and parts.query:
        query = dict(parse_qsl(parts.query))
        if "sig" in query:
            found["sas_token"], query = parts.query, {}
        for option in ("tenant_id", "client_id", "client_secret"):
            if option in query:
                found[option] = query.pop(option)
        parts = parts._replace(query=urlencode(query)) if found else parts
    return (urlunsplit(parts) if found else where), {n: v for n, v in found.items() if v}


def hidden(text: str, options: Mapping[str, str]) -> str:
    """Returns a text without the credentials of these options, such as the error of a library."""
    for name, value in options.items():
        if OPTIONS[name].is_secret and len(value) >= _SHORTEST:
            text = text.replace(value, MASK)
    return text
