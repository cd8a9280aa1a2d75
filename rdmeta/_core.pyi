import re
from array import array
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from os import PathLike
from typing import Any, Literal, NoReturn, Protocol, TypeVar, final, overload
from uuid import UUID
from weakref import WeakValueDictionary

from typing_extensions import Buffer, Self, disjoint_base

from rdmeta._publish import Publisher
from rdmeta._waits import LoopWaiters
from rdmeta.model import (
    All,
    Applied,
    Broker,
    Change,
    Changes,
    Partition,
    Request,
    Topic,
    TopicPartition,
)

_D = TypeVar("_D")
_B = TypeVar("_B", bound=Buffer)
_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Topics = Iterable[str] | Iterable[bytes | UUID]

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class Names:
    def __new__(cls, topics: _Names) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def address(self) -> int: ...

_Names = Iterable[str] | Names | _ArrowArray | _ArrowStream
_Numbers = Iterable[int] | Buffer | _ArrowArray | _ArrowStream

NO_LEADER: int
NOT_CACHED: int
WAITING: int
STALE: int
UNKNOWN_TOPIC: int
NO_PARTITION: int
DENIED: int
INVALID: int
METADATA_MIN_VERSION: int
METADATA_MAX_VERSION: int
ABI_VERSION: int
_C_API: object

def code_name(code: int) -> str: ...
def encode_metadata_request(
    version: int,
    topics: All | _Topics = ...,
    *,
    allow_auto_create: bool = False,
    topic_authorized_operations: bool = False,
    cluster_authorized_operations: bool = False,
) -> bytes: ...
def decode_metadata_response(
    body: Buffer, version: int, *, tolerate_trailing: bool = False
) -> dict[str, Any]: ...

class _Clock(Protocol):
    def monotonic(self) -> float: ...
    def time(self) -> float: ...

def _leaders(reader: int, topics: Any, partitions: Any, out: Any, mono_us: int, /) -> Any: ...

@final
class Watch:
    def __new__(cls, cache: MetadataCache, fd: int) -> Self: ...
    def close(self) -> None: ...

@disjoint_base
class Readers: ...

@disjoint_base
class ArrowTable:
    def __reduce__(self) -> NoReturn: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class ImageTable(ArrowTable): ...

@final
class ChangeTable(ArrowTable):
    def __len__(self) -> int: ...
    def read(self) -> tuple[Change, ...]: ...

@disjoint_base
class Reading(Readers):
    def __bool__(self) -> Literal[True]: ...
    @property
    def version(self) -> int: ...
    @overload
    def leader(self, topic: str, partition: int, /) -> int: ...
    @overload
    def leader(self, topic: str, partition: int, default: _D, /) -> int | _D: ...
    @overload
    def last_leader(self, topic: str, partition: int, /) -> int: ...
    @overload
    def last_leader(self, topic: str, partition: int, default: _D, /) -> int | _D: ...
    def state(self, topic: str, partition: int | None = None, /) -> int: ...
    @overload
    def partition(self, topic: str, partition: int, *, allow_stale: bool = False) -> Partition: ...
    @overload
    def partition(
        self, topic: str, partition: int, default: _D, *, allow_stale: bool = False
    ) -> Partition | _D: ...
    @overload
    def topic(self, topic: str, *, allow_stale: bool = False) -> Topic: ...
    @overload
    def topic(self, topic: str, default: _D, *, allow_stale: bool = False) -> Topic | _D: ...
    @overload
    def topic_by_id(self, topic_id: str | bytes | UUID, *, allow_stale: bool = False) -> Topic: ...
    @overload
    def topic_by_id(
        self, topic_id: str | bytes | UUID, default: _D, *, allow_stale: bool = False
    ) -> Topic | _D: ...
    def __contains__(self, topic: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def names(
        self,
        *,
        prefix: str = "",
        internal: bool | None = None,
        allow_stale: bool = False,
        state: int | None = None,
    ) -> list[str]: ...
    def topics(
        self,
        *,
        prefix: str = "",
        pattern: str | re.Pattern[str] | None = None,
        internal: bool | None = None,
        allow_stale: bool = False,
    ) -> list[Topic]: ...
    def to_arrow(
        self,
        table: Literal["brokers", "topics", "partitions", "replicas"],
        *,
        allow_stale: bool = False,
    ) -> ArrowTable: ...
    def partitions_on(
        self, broker: int, role: Literal["leader", "replica"] = "leader"
    ) -> list[TopicPartition]: ...
    @overload
    def available(self, topic: str, *, allow_stale: bool = False) -> tuple[int, ...]: ...
    @overload
    def available(
        self, topic: str, default: _D, *, allow_stale: bool = False
    ) -> tuple[int, ...] | _D: ...
    @overload
    def leaders(
        self,
        topics: _Names,
        partitions: _Numbers,
        out: None = None,
        *,
        allow_stale: bool = False,
    ) -> array[int]: ...
    @overload
    def leaders(
        self,
        topics: _Names,
        partitions: _Numbers,
        out: _B,
        *,
        allow_stale: bool = False,
    ) -> _B: ...
    @property
    def brokers(self) -> tuple[Broker, ...]: ...
    @overload
    def broker(self, id: int) -> Broker: ...
    @overload
    def broker(self, id: int, default: _D) -> Broker | _D: ...
    @property
    def controller(self) -> int | None: ...
    @property
    def cluster_id(self) -> str | None: ...
    @overload
    def age(self, topic: str) -> float: ...
    @overload
    def age(self, topic: None = None) -> float | None: ...
    def source(self, topic: str) -> int | None: ...

@disjoint_base
class Image(Reading):
    def __new__(cls, given: object = None) -> Self: ...
    def __reduce__(self) -> NoReturn: ...
    @staticmethod
    def open(path: _Path, *, copy: bool = False) -> Image: ...
    def save(self, path: _Path, *, sync: bool = False) -> None: ...
    def verify(self) -> None: ...
    def diff(self, other: Image, /) -> Changes: ...
    @property
    def taken(self) -> datetime: ...
    @property
    def session(self) -> str: ...
    def stats(self) -> dict[str, Any]: ...

@disjoint_base
class Attached(Reading):
    def __new__(
        cls,
        path: _Path,
        look: float = 0.02,
        copy: bool = False,
        clock: _Clock | Callable[[], float] | None = None,
    ) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def path(self) -> str: ...
    @property
    def taken(self) -> datetime: ...
    @property
    def session(self) -> str: ...
    def image(self) -> Image: ...

@disjoint_base
class CacheState(Reading):
    def __new__(
        cls,
        *,
        max_age: float | None = None,
        negative_ttl: float | None = None,
        denied_ttl: float | None = None,
        hint_ttl: float | None = None,
        absent_grace: float | None = None,
        ring_bytes: int | None = None,
        seed: int | None = None,
        clock: _Clock | Callable[[], float] | None = None,
    ) -> Self: ...
    def image(self) -> Image: ...
    @property
    def _loops(self) -> WeakValueDictionary[AbstractEventLoop, LoopWaiters]: ...

class CacheWriter(CacheState):
    def apply(
        self,
        body: Buffer,
        api_version: int,
        asked: All | _Topics | Request | None = None,
        broker: int | None = None,
        *,
        sent_version: int | None = None,
        tolerate_trailing: bool = False,
        rebootstrapped: bool = False,
        candidates: int = 0,
    ) -> Applied: ...
    def apply_failure(self, asked: All | _Topics | Request | None = None) -> None: ...
    def apply_leader_hint(
        self,
        topic: str | bytes | UUID,
        partition: int,
        leader: int,
        leader_epoch: int,
        node: Broker | tuple[str, int] | None = None,
        *,
        topic_id: str | bytes | UUID | None = None,
    ) -> Applied: ...
    def hint(
        self,
        topics: _Names,
        ttl: float | None = None,
        replace: bool = False,
        force: bool = False,
    ) -> list[str]: ...
    def purge_hints(self, names: _Names | None = None) -> int: ...
    def purge(self) -> None: ...
    def sweep(self) -> float | None: ...
    def wait_change(
        self, since: int, timeout: float | None = None, topics: Iterable[str] | None = None
    ) -> int | None: ...
    async def wait_change_async(
        self, since: int, timeout: float | None = None, topics: Iterable[str] | None = None
    ) -> int | None: ...
    @overload
    def wait_for_topic(
        self, topic: str, partition: None = None, timeout: float | None = 60.0
    ) -> Topic: ...
    @overload
    def wait_for_topic(
        self, topic: str, partition: int, timeout: float | None = 60.0
    ) -> Partition: ...
    @overload
    async def wait_for_topic_async(
        self, topic: str, partition: None = None, timeout: float | None = 60.0
    ) -> Topic: ...
    @overload
    async def wait_for_topic_async(
        self, topic: str, partition: int, timeout: float | None = 60.0
    ) -> Partition: ...
    def publish(self, path: _Path, interval: float = 0.02) -> Publisher: ...
    def capsule(self) -> object: ...
    def _answer(self, topic: str, /) -> int | None: ...
    def _watch(self, fd: int, /) -> Watch: ...

class MetadataCache(CacheWriter):
    @classmethod
    def load(
        cls,
        path: _Path,
        *,
        max_age: float | None = None,
        negative_ttl: float | None = None,
        denied_ttl: float | None = None,
        hint_ttl: float | None = None,
        absent_grace: float | None = None,
        ring_bytes: int | None = None,
        seed: int | None = None,
        clock: _Clock | Callable[[], float] | None = None,
    ) -> Self: ...
    def __reduce__(self) -> NoReturn: ...
    def resolve(self, topic: str, /) -> TopicHandle: ...
    @property
    def session(self) -> str: ...
    def stats(self) -> dict[str, Any]: ...
    def changes(self, since: int = 0) -> Changes: ...

@final
class TopicHandle:
    def __new__(cls, cache: MetadataCache, topic: str, /) -> Self: ...
    def __bool__(self) -> Literal[True]: ...
    def __reduce__(self) -> NoReturn: ...
    @overload
    def leader(self, partition: int, /) -> int: ...
    @overload
    def leader(self, partition: int, default: _D, /) -> int | _D: ...
    @overload
    def last_leader(self, partition: int, /) -> int: ...
    @overload
    def last_leader(self, partition: int, default: _D, /) -> int | _D: ...
    def state(self, partition: int | None = None, /) -> int: ...
    @overload
    def partition_for(self, key: Buffer | None, /) -> int: ...
    @overload
    def partition_for(self, key: Buffer | None, default: _D, /) -> int | _D: ...
    def __len__(self) -> int: ...
    @property
    def partitions(self) -> int: ...
    @property
    def topic(self) -> str: ...
