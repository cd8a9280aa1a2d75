"""Kafka cluster metadata for Python: a cache in C, filled by brokers, with a history of changes.

    with rdmeta.Client({"bootstrap.servers": "localhost:9092"}) as client:
        client.leader("orders", 3, timeout=10)

Client and AsyncClient keep their cache true. Without a client, fetch() fills a cache once.

This module imports no package of an extra. A module that needs an extra names it in its error.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rdmeta import errors
from rdmeta._core import (
    METADATA_MAX_VERSION,
    METADATA_MIN_VERSION,
    Fold,
    decode_metadata_response,
    encode_metadata_request,
    encode_metadata_response,
    partitions_for,
)
from rdmeta._version import __version__
from rdmeta.cache import (
    DENIED,
    INVALID,
    NO_LEADER,
    NO_PARTITION,
    NOT_CACHED,
    STALE,
    UNKNOWN_TOPIC,
    WAITING,
    Attached,
    Image,
    MetadataCache,
    Publisher,
    Reading,
    TopicHandle,
    attach,
)
from rdmeta.errors import (
    ArgumentError,
    AuthenticationError,
    ConfigError,
    Error,
    ForkedError,
    InvalidTopicError,
    LeaderNotAvailableError,
    MalformedError,
    MissingExtraError,
    NoBrokersError,
    NoSuchPartitionError,
    NotCachedError,
    OutOfMemoryError,
    RequestTimedOutError,
    SaslError,
    StaleError,
    TlsError,
    TopicAuthorizationError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
    WrongClusterError,
)
from rdmeta.model import (
    ALL,
    Advice,
    Applied,
    Broker,
    Change,
    Changes,
    Due,
    DueReason,
    Health,
    Partition,
    Request,
    Topic,
    TopicPartition,
    operation_names,
)

if TYPE_CHECKING:
    from rdmeta import compat, config, health, kraft, metrics
    from rdmeta import history as history
    from rdmeta import pipeline as pipeline
    from rdmeta import report as report
    from rdmeta.client.actions import Node, Problem, Updated
    from rdmeta.client.aio import AsyncClient
    from rdmeta.client.blocking import Client
    from rdmeta.embedded import EmbeddedCluster
    from rdmeta.kraft import KraftLog
    from rdmeta.net.check import CheckedServer, check
    from rdmeta.net.fetch import fetch

__all__ = [
    "ALL",
    "DENIED",
    "INVALID",
    "METADATA_MAX_VERSION",
    "METADATA_MIN_VERSION",
    "NOT_CACHED",
    "NO_LEADER",
    "NO_PARTITION",
    "STALE",
    "UNKNOWN_TOPIC",
    "WAITING",
    "Advice",
    "Applied",
    "ArgumentError",
    "AsyncClient",
    "Attached",
    "AuthenticationError",
    "Broker",
    "Change",
    "Changes",
    "CheckedServer",
    "Client",
    "ConfigError",
    "Due",
    "DueReason",
    "EmbeddedCluster",
    "Error",
    "Fold",
    "ForkedError",
    "Health",
    "Image",
    "InvalidTopicError",
    "KraftLog",
    "LeaderNotAvailableError",
    "MalformedError",
    "MetadataCache",
    "MissingExtraError",
    "NoBrokersError",
    "NoSuchPartitionError",
    "Node",
    "NotCachedError",
    "OutOfMemoryError",
    "Partition",
    "Problem",
    "Publisher",
    "Reading",
    "Request",
    "RequestTimedOutError",
    "SaslError",
    "StaleError",
    "TlsError",
    "Topic",
    "TopicAuthorizationError",
    "TopicHandle",
    "TopicPartition",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
    "Updated",
    "WrongClusterError",
    "__version__",
    "attach",
    "check",
    "compat",
    "config",
    "decode_metadata_response",
    "encode_metadata_request",
    "encode_metadata_response",
    "errors",
    "fetch",
    "get_include",
    "get_library",
    "health",
    "kraft",
    "metrics",
    "operation_names",
    "partitions_for",
]

# These names are imported on first use: their modules load more slowly than the cache itself.
# history and pipeline need an extra, so that __all__, which `import *` reads, leaves them out.
_LATER = {
    "AsyncClient": "rdmeta.client.aio",
    "Client": "rdmeta.client.blocking",
    "Node": "rdmeta.client.actions",
    "Problem": "rdmeta.client.actions",
    "Updated": "rdmeta.client.actions",
    "compat": "rdmeta.compat",
    "config": "rdmeta.config",
    "EmbeddedCluster": "rdmeta.embedded",
    "CheckedServer": "rdmeta.net.check",
    "check": "rdmeta.net.check",
    "fetch": "rdmeta.net.fetch",
    "health": "rdmeta.health",
    "history": "rdmeta.history",
    "kraft": "rdmeta.kraft",
    "KraftLog": "rdmeta.kraft",
    "metrics": "rdmeta.metrics",
    "pipeline": "rdmeta.pipeline",
    "report": "rdmeta.report",
    "spark": "rdmeta.spark",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_LATER[name])
    is_module = module.__name__ == f"{__name__}.{name}"
    found = globals()[name] = module if is_module else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


_HERE = os.path.dirname(os.path.abspath(__file__))
_TREE = os.path.dirname(_HERE)


def get_include() -> str:
    """Returns the directory of rdmeta.h and rdmeta_api.h, in the wheel or in the source tree."""
    shipped = os.path.join(_HERE, "include")
    return shipped if os.path.isdir(shipped) else os.path.join(_TREE, "csrc", "include")


def get_library() -> str:
    """Returns the directory of librdmeta, static and shared, for programs without Python.

    Python extensions link nothing: they include rdmeta_api.h. Raises Error in a source tree where
    `make librdmeta` has not been run.
    """
    shipped = os.path.join(_HERE, "lib")
    found = shipped if os.path.isdir(shipped) else os.path.join(_TREE, "build", "lib")
    if not os.path.exists(os.path.join(found, "librdmeta.a")):
        raise Error("librdmeta is not built in this source tree: run make librdmeta")
    return found
