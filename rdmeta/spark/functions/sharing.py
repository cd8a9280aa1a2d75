"""Sends an image to the executors of a session.

Spark copies a file to each executor once, before the next task there. Its name has a number that
grows, and workers take the newest. The copy of an older one stays until the session ends: a job
that still runs may read it.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import time
from os import PathLike, fsdecode
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rdmeta.cache import Attached, Image, MetadataCache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Shared", "chosen", "share"]

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_PREFIX = "rdmeta"


class Shared(NamedTuple):
    """The state that functions read: a name of share(), and a path at which hosts may publish."""

    name: str = "default"
    published: str | None = None


_last: dict[str, Shared] = {}
_numbers = [0]
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
    read either. Several clusters need several names. Facts do not get stale in an image.

    With `published`, a worker whose host has a state at that path (cache.publish(path), or
    `rdmeta publish`) reads that state instead of the image. Functions without `state=` use the
    last call here for the name "default".

    Raises ValueError for a name of other characters than letters, digits and `_`, and the errors
    of Image.open() and Image.save(). TypeError for anything that is no image.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"name must be 1 to 64 letters, digits or underscores, not {name!r}")
    if not _folders:
        _folders.append(tempfile.mkdtemp(prefix="rdmeta-shared-"))
        atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
    _numbers[0] = max(_numbers[0] + 1, time.time_ns())
    file = Path(_folders[0]) / file_name(name, _numbers[0])
    _image_of(image).save(file)
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        spark.addArtifact(str(file), file=True)
        file.unlink()  # the server has it
    else:
        spark.sparkContext.addFile(str(file))
    shared = Shared(name, None if published is None else fsdecode(published))
    _last[name] = shared
    return shared


def file_name(name: str, number: int) -> str:
    """Returns the name of a file on an executor; names sort as their numbers do."""
    return f"{_PREFIX}-{name}-{number:020d}.image"


def chosen(state: Shared | None) -> Shared:
    """Returns what a function without `state=` reads. TypeError for anything but a Shared."""
    if state is None:
        return _last.get("default", Shared())
    if not isinstance(state, Shared):
        raise TypeError(f"state must be what share() returns, not {type(state).__name__}")
    return state


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
