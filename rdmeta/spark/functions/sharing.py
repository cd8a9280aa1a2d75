"""Sends an image to the executors of a session, and finds the one that a plan remembers.

Spark copies a file to each executor once, before the next task there. Its name has a number that
grows: functions of columns take the newest, and a plan that routes rows names one. The copy of an
older one stays until the session ends: a plan that names it may run again.

The number is also a time in nanoseconds, a little after the moment at which Spark knows the file.
So all tasks of a stream's batch, which know when the batch began, choose the same one.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import threading
import time
from os import PathLike, fsdecode
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rdmeta.cache import Attached, Image, MetadataCache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from rdmeta.spark.functions.worker_state import NoStateError, file_name, number_of

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
# A session of Connect does not see the server's files, so its configuration has the number.
_KEY = "spark.rdmeta.shared."
# Spark knows a file that much later at most; if not, the file is sent once more.
_MARGIN_NS = 2_000_000_000


class Shared(NamedTuple):
    """The state that functions read: a name of share(), and a path at which hosts may publish."""

    name: str = "default"
    published: str | None = None


_lock = threading.Lock()
# Spark reads the files when an executor asks for them, so they stay until this process ends.
_folders: list[str] = []


def share(
    spark: SparkSession,
    image: Image | MetadataCache | Attached | str | PathLike[str],
    *,
    name: str = "default",
    published: str | PathLike[str] | None = None,
) -> Shared:
    """Sends an image to the executors of a session, Classic or Connect; returns what it is called.

        F.share(spark, client.cache)                        # or an Image, or the path of one
        F.share(spark, cache, published="/run/kafka.rdmeta")

    Executors copy the file once; their Python workers map it, and share its memory. Share a newer
    image under the same name at any time: jobs that begin later read it, and a job that runs may
    read either. repartition_by_leader() reads one image only, the newest when it is called.
    Several clusters need several names. Facts do not get stale in an image. A state that has not
    changed since is not sent again.

    With `published`, functions whose `state=` is the result read the state of a worker's host at
    that path (cache.publish(path), or `rdmeta publish`), if there is one, instead of the image.
    Functions without `state=` read the newest image of the name "default".

    Raises ValueError for a name of other characters than letters, digits and `_`, and the errors
    of Image.open() and Image.save(). TypeError for anything that is no image.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"name must be 1 to 64 letters, digits or underscores, not {name!r}")
    found = _image_of(image)
    with _lock:
        if not _folders:
            _folders.append(tempfile.mkdtemp(prefix="rdmeta-shared-"))
            atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
        last = _file(name, _newest(spark, name))
        if not _is_unchanged(found, last):
            _send_new(spark, found, name)
            if _is_connect(spark):
                last.unlink(missing_ok=True)  # the server has it
    return Shared(name, None if published is None else fsdecode(published))


def chosen(state: Shared | None) -> Shared:
    """Returns what a function without `state=` reads. TypeError for anything but a Shared."""
    if state is None:
        return Shared()
    if not isinstance(state, Shared):
        raise TypeError(f"state must be what share() returns, not {type(state).__name__}")
    return state


def pinned(spark: SparkSession, state: Shared | None) -> tuple[str, int]:
    """Returns the name and the number of the newest image of a session.

    Raises ValueError for a published state, which changes while a plan runs, and NoStateError if
    nothing is shared under the name.
    """
    name, published = chosen(state)
    if published is not None:
        raise ValueError(
            f"a plan that routes rows reads one image, and {published} changes: pass a state"
            " without published=, such as share(spark, rdmeta.attach(path))"
        )
    number = _newest(spark, name)
    if not number:
        raise NoStateError(
            f"this session has no image {name!r}: call rdmeta.spark.functions.share() before"
        )
    return name, number


def _newest(spark: SparkSession, name: str) -> int:
    """Returns the number of the newest image that a session has, 0 without one."""
    if _is_connect(spark):
        return int(spark.conf.get(_KEY + name, "0") or 0)
    from pyspark import SparkFiles

    files = os.listdir(SparkFiles.getRootDirectory())
    return max((number_of(name, file) for file in files), default=0)


def _is_unchanged(image: Image, last: Path) -> bool:
    """Returns whether the last image that was sent has the same state; False without one."""
    return last.exists() and not len(Image.open(last).diff(image))


def _send_new(spark: SparkSession, image: Image, name: str) -> None:
    """Sends an image under a number that is greater than the newest one."""
    saved = Path(_folders[0], "image")
    image.save(saved)
    margin, number = _MARGIN_NS, 0
    while number <= _now_ns(spark):
        number = max(_newest(spark, name) + 1, _now_ns(spark) + margin)
        while (file := _file(name, number)).exists():  # of another session
            number += 1
        _send(spark, saved, file)
        margin *= 2
    saved.unlink()
    if _is_connect(spark):
        spark.conf.set(_KEY + name, str(number))


def _file(name: str, number: int) -> Path:
    """Returns where this process keeps an image that it has sent."""
    return Path(_folders[0], file_name(name, number))


def _send(spark: SparkSession, saved: Path, file: Path) -> None:
    os.link(saved, file)
    if _is_connect(spark):
        spark.addArtifact(str(file), file=True)
    else:
        spark.sparkContext.addFile(str(file))


def _now_ns(spark: SparkSession) -> int:
    """Returns the time of the clock that gives batches of a stream their times."""
    if _is_connect(spark):
        row = spark.sql("SELECT unix_micros(current_timestamp()) AS now").head()
        return int(row["now"]) * 1000 if row is not None else 0
    return time.time_ns()


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _image_of(image: object) -> Image:
    if isinstance(image, Image):
        return image
    if isinstance(image, (MetadataCache, Attached)):
        return image.image()
    if isinstance(image, (str, PathLike)):
        return Image.open(image)
    raise TypeError(
        "image must be an Image, a MetadataCache, an Attached or a path, not"
        f" {type(image).__name__}"
    )
