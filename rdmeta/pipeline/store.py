"""A folder of files, on this machine or in an object store, and how a file comes into it whole.

On this machine `rdmeta._atomic` says how. For an object store a writer makes a file on the local
disk and uploads it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import posixpath
import stat
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from rdmeta._atomic import AtomicFile
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.storage import FLAGS, OPTIONS, current, hidden, kind_of, split, using

_LATE = datetime(9999, 1, 1, tzinfo=timezone.utc)
_CHUNK = 8 << 20
ASKING = "rdmeta asks"
"""The name of threads for whose answer, of a store or of Spark, the exit does not wait."""
_KNOWN = ("file", "s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")


def is_uri(where: str) -> bool:
    """Returns whether this names a folder by a URI, such as s3://bucket/folder."""
    return kind_of(where) is not None


def is_text(path: str) -> bool:
    """Returns whether a path is UTF-8; Python has the other bytes of a path as surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(path: str) -> str:
    """Returns a path with a mark for each byte that is not UTF-8; no file may have that name."""
    return os.fsencode(path).decode(errors="replace")


def sha256_of(stream: Any, size: float = math.inf) -> str:
    """Returns the SHA-256 of the next bytes of a pyarrow stream, in hexadecimal; by default all."""
    digest = hashlib.sha256()
    while (chunk := stream.read_buffer(min(_CHUNK, size))).size:
        digest.update(chunk)
        size -= chunk.size
    return digest.hexdigest()


class StoredFile(NamedTuple):
    """A file of a store: its path in it with "/", its size in bytes and its time in ns."""

    name: str
    size: int
    mtime_ns: int


class Store:
    """A folder, by its path or by a URI of `pyarrow.fs`. It need not exist.

    `stored` are the names under which some files really lie, by those that callers use. `where` is
    without credentials; those of the URI count beside those of rdmeta.pipeline.storage.

    Raises PipelineError for a path that is empty or not UTF-8, and for a URI that pyarrow does not
    know.
    """

    def __init__(
        self, where: str | os.PathLike[str], stored: Mapping[str, str] | None = None
    ) -> None:
        self.where, found = split(os.fspath(where))
        self._given = {**current().of(self.where), **found}
        self._stored = {} if stored is None else stored
        if not self.where:
            raise PipelineError("the name of a folder is empty")
        if not is_text(self.where):
            raise PipelineError(f"{as_text(self.where)}: its path is not UTF-8: rename it")
        self._store: Any = None
        self._root = self.where
        if is_uri(self.where):
            self._store, self._root = _opened_store(self.where, self._given)
            if isinstance(self._store, fs.LocalFileSystem):
                self._store = None
        self._root = self._root.rstrip("/") or "/"

    def __reduce__(self) -> tuple[type[Store], tuple[str, dict[str, str]]]:
        """Leaves credentials out: who unpickles it gives them."""
        return Store, (self.where, dict(self._stored))

    def stored(self, name: str) -> str:
        """Returns the name under which a file lies."""
        return self._stored.get(name, name)

    @property
    def is_local(self) -> bool:
        """Whether the folder is one of this machine's file system."""
        return self._store is None

    def path(self, name: str = "") -> str:
        """Returns the path of a file of the store, as the file system has it."""
        path = f"{self._root}/{self.stored(name)}" if name else self._root
        # An object store has no folders, so it takes ".." for a name.
        return path if self._store is None or ".." not in name else posixpath.normpath(path)

    def shown(self, name: str) -> str:
        """Returns what a user calls that file: its path, or its URI."""
        folder = self.where if self.is_local else self.where.partition("?")[0]
        return f"{folder.rstrip('/')}/{self.stored(name)}"

    def hidden(self, text: str) -> str:
        """Returns a text of a library without credentials."""
        return hidden(text, self._given)

    @property
    def options(self) -> Mapping[str, str]:
        """The options of rdmeta.pipeline.storage, credentials among them."""
        return self._given

    def below(self, folder: str) -> Store:
        """Returns a folder of this one as a store."""
        where, mark, query = (
            self.where.partition("?") if not self.is_local else (self.where, "", "")
        )
        return Store(f"{where.rstrip('/')}/{folder}{mark}{query}")

    def exists(self) -> bool:
        """Returns whether the folder is there; an object store has it if a file lies in it."""
        if self._store is None:
            return os.path.isdir(self._root)
        return bool(self._info(self._root).type == fs.FileType.Directory)

    def has(self, name: str) -> bool:
        """Returns whether a file is there."""
        if self._store is None:
            return os.path.isfile(self.path(name))
        return bool(self._info(self.path(name)).type == fs.FileType.File)

    def about(self, name: str) -> StoredFile | None:
        """Returns what is known of a file, None if it is not there."""
        if self._store is None:
            there = _about(self.path(name))
            return None if there is None else StoredFile(name, there.st_size, there.st_mtime_ns)
        info = self._info(self.path(name))
        if info.type != fs.FileType.File:
            return None
        return StoredFile(name, info.size, info.mtime_ns or 0)

    def files(self, below: str = "") -> Iterator[StoredFile]:
        """Yields all files below a folder of the store; leftovers of writers are among them.

        Links are followed; a folder is entered once. Raises OSError if a folder cannot be read. A
        folder that is not there has no files.
        """
        top = self.path(below)
        if self._store is None:
            yield from self._local_files(top)
            return
        for info in self._infos(top):
            if info.type == fs.FileType.File:
                name = info.path[len(self._root) :].lstrip("/")
                yield StoredFile(name, info.size, info.mtime_ns or 0)

    def read(self, name: str) -> bytes | None:
        """Returns a file's bytes, None if the file is not there; raises OSError."""
        try:
            if self._store is None:
                return Path(self.path(name)).read_bytes()
            with self._store.open_input_stream(self.path(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def opened(self, name: str) -> Any:
        """Opens a file for reading at any position, as pyarrow needs it; raises OSError."""
        if self._store is None:
            return pa.OSFile(self.path(name), "rb")
        return self._store.open_input_file(self.path(name))

    def sha256(self, name: str, size: float = math.inf) -> str:
        """Returns the SHA-256 of a file that is there, or of so many of its first bytes.

        It is in hexadecimal. Raises OSError.
        """
        with self.opened(name) as stream:
            return sha256_of(stream, size)

    def is_failing(self, name: str, error: Exception) -> bool:
        """Returns whether an error of reading a Parquet file is one of the disk or of the store.

        pyarrow reports damage as an OSError, too, and what fails in a store without a number. So
        such a file is read again: damage shows in its bytes alone.
        """
        if not isinstance(error, OSError) or self._store is None or error.errno is not None:
            return isinstance(error, OSError) and error.errno is not None
        try:
            content = self.read(name)
        except OSError:
            return True
        try:
            pq.ParquetFile(pa.BufferReader(content or b"")).read()
        except (pa.ArrowException, OSError):
            return False
        return True

    def draft(self, name: str) -> AtomicFile:
        """Returns a new file that takes the name `name` when its writer commits it."""
        if not self.is_local:
            return Upload(self, name)
        final = self.path(name)
        folder = os.path.dirname(final)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
        return AtomicFile(final, self.shown(name))

    def put(self, name: str, content: bytes) -> None:
        """Writes a whole file with this content; raises OSError, and then the old one stays."""
        with self.draft(name) as draft:
            draft.path.write_bytes(content)
            draft.commit()

    def remove(self, name: str) -> None:
        """Removes a file if it is there; raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            if self._store is None:
                os.unlink(self.path(name))
            else:
                self._store.delete_file(self.path(name))

    def _local_files(self, top: str) -> Iterator[StoredFile]:
        entered: set[tuple[int, int]] = set()
        walk = os.walk(top, onerror=_raise_unless_missing, followlinks=True)
        for folder, folders, names in walk:
            about = _about(folder)
            if about is None or (about.st_dev, about.st_ino) in entered:
                folders.clear()
                continue
            entered.add((about.st_dev, about.st_ino))
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                found = _about(path)
                # A pipe would keep its reader waiting.
                if found is None or not stat.S_ISREG(found.st_mode):
                    continue
                # A name that is no text cannot be shown; it is no file of ours.
                inside = as_text(os.path.relpath(path, self._root))
                yield StoredFile(inside, found.st_size, found.st_mtime_ns)

    def _infos(self, top: str) -> list[Any]:
        selector = fs.FileSelector(top, recursive=True, allow_not_found=True)
        return sorted(self._store.get_file_info(selector), key=lambda info: str(info.path))

    def _info(self, path: str) -> Any:
        return self._store.get_file_info([path])[0]

    def _upload(self, file: Path, name: str) -> int:
        """Uploads a file in one call, so that no reader sees a part of it; returns its time in ns.

        Raises OSError.
        """
        size = file.stat().st_size
        stream = self._store.open_output_stream(self.path(name))
        if size:
            with pa.memory_map(str(file)) as mapped:
                stream.write(mapped.read_buffer())
        stream.close()
        there = self._info(self.path(name))
        if there.size != size:
            raise OSError(f"{self.shown(name)}: {there.size} of {size} bytes have arrived")
        return there.mtime_ns or 0


def contacted(where: str | os.PathLike[str], timeout: float) -> Store:
    """Returns a store; asks an object store for it, so that one without an answer ends a run soon.

    A signal, such as that of Ctrl-C, ends the wait: pyarrow's own calls pass over signals.
    Raises PipelineError after `timeout` seconds and for what a store's library raises, such as
    for credentials; ValueError for what is no such number; and OSError.
    """
    if not isinstance(timeout, (int, float)) or not 0 < timeout < 1e9:
        raise ValueError(
            f"timeout must be a number of seconds above 0 and below 1e9, not {timeout!r}"
        )
    if not is_uri(os.fspath(where)):
        return Store(where)
    storage, named = current().without(os.fspath(where))
    done: SimpleQueue[Store | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            with using(storage):  # a thread begins without
                store = Store(named)
            if not store.is_local:
                store._info(store.path())
            done.put(store)
        except Exception as error:
            done.put(error)

    Thread(target=ask, name=ASKING, daemon=True).start()
    try:
        found = done.get(timeout=timeout)
    except Empty:
        raise PipelineError(
            f"{named}: the store did not answer within {timeout:g} s: check the network"
            " and its credentials, or give it longer with --timeout"
        ) from None
    if isinstance(found, Store):
        return found
    if isinstance(found, (OSError, PipelineError)):
        raise found
    reason = hidden(str(found).strip().partition("\n")[0], storage.of(named))
    raise PipelineError(f"{named}: the store cannot be asked: {reason}") from found


def is_asking() -> bool:
    """Returns whether a store or Spark still owes an answer: the exit would wait for it."""
    return any(thread.name == ASKING for thread in enumerate_threads())


def _opened_store(where: str, given: Mapping[str, str]) -> tuple[Any, str]:
    """Returns the file system of a URI and the path in it; raises PipelineError."""
    scheme, kind = where.partition(":")[0].lower(), kind_of(where)
    if scheme not in _KNOWN:
        raise PipelineError(
            f"{where}: the scheme {scheme!r} is unknown; known are {', '.join(_KNOWN)}."
            " A local folder of that name is ./NAME, and dbfs:/Volumes/x is the path /Volumes/x"
        )
    if kind in ("s3", "gs") and not where[len(scheme) + 3 :].strip("/"):
        raise PipelineError(f"{where}: it names no bucket; write {scheme}://BUCKET/PATH")
    # pyarrow does not know the names that Hadoop has for s3.
    uri = ("s3" if kind == "s3" else scheme) + where[len(scheme) :]
    if kind == "gs" and "retry_limit_seconds=" not in uri:  # by default 15 minutes
        uri += f"{'&' if '?' in uri else '?'}retry_limit_seconds=30"
    try:
        store, root = _given_store(uri, given) if given else fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, ValueError, TypeError, OSError) as error:
        reason = hidden(str(error), given)
        if kind == "hdfs":
            reason += (
                f"; {scheme} needs Java (set JAVA_HOME) and Hadoop's client"
                " (set HADOOP_HOME, and CLASSPATH to the output of hadoop classpath --glob)"
            )
        raise PipelineError(f"{where}: {reason}") from error
    return store, root


def _given_store(uri: str, given: Mapping[str, str]) -> tuple[Any, str]:
    """Returns the file system of a URI with options, and the path in it; raises as pyarrow."""
    parts = urlsplit(uri)
    values: dict[str, Any] = {OPTIONS[name].arrow: value for name, value in given.items()}
    query: dict[str, Any] = {n: FLAGS.get(v, v) for n, v in parse_qsl(parts.query)}
    user, _, host = parts.netloc.rpartition("@")
    path = unquote(parts.path).strip("/")
    if kind_of(uri) == "s3":
        if "://" in values.get("endpoint_override", ""):
            values["scheme"], _, values["endpoint_override"] = values[
                "endpoint_override"
            ].partition("://")
        values = {**query, **values}
        if not values.keys() & {"region", "endpoint_override"}:
            values["region"] = fs.resolve_s3_region(host)
        return fs.S3FileSystem(**values), f"{host}/{path}"
    if kind_of(uri) == "gs":
        limit = timedelta(seconds=float(query.pop("retry_limit_seconds")))
        # The token itself says when it ends.
        values |= {"credential_token_expiration": _LATE, "retry_time_limit": limit}
        return fs.GcsFileSystem(**query, **values), f"{host}/{path}"
    if kind_of(uri) == "abfs":
        account, dot, _ = host.partition(".")
        if not dot or not user:
            raise ValueError("with options it is abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/…")
        return fs.AzureFileSystem(account, **query, **values), f"{user}/{path}"
    joined = urlencode({**query, **values})
    return fs.FileSystem.from_uri(urlunsplit(parts._replace(query=joined)))  # type: ignore[no-any-return]


def _about(path: str) -> os.stat_result | None:
    """Returns what is at a path; None for a link to nothing, and for what has just gone away."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


class Upload(AtomicFile):
    """A file that comes into an object store in one call, from the local disk.

    An exception between two calls would close the stream, and leave a cut object.
    """

    def __init__(self, store: Store, name: str) -> None:
        super().__init__(name, store.shown(name))
        self._store, self._target = store, name
        descriptor, path = tempfile.mkstemp(prefix="rdmeta-", suffix=".tmp")
        os.close(descriptor)
        self.path = Path(path)
        self._mtime_ns = 0

    def sync(self) -> None:
        """Does nothing: the store keeps what has arrived."""

    def name_it(self) -> None:
        """Uploads the file, and removes it here."""
        with self.naming():
            self._mtime_ns = self._store._upload(self.path, self._target)
            self.path.unlink()

    def mtime_ns(self) -> int:
        """Returns the time that the store gave to the file."""
        return self._mtime_ns

    def sync_folder(self) -> None:
        """Does nothing: a store has no folders."""
