"""The tasks of a run, as plain data that any process can have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rdmeta.pipeline.days import Day, File
from rdmeta.pipeline.errors import BadFileError
from rdmeta.pipeline.inputs import Input
from rdmeta.pipeline.layout import SILVER_VERSION, Parts
from rdmeta.pipeline.storage import Storage
from rdmeta.pipeline.tables import TABLES

# Raise a number when the same input gives other rows or bytes, so that all parts are made again.
VERSIONS = {"silver": SILVER_VERSION, "fold": 7, "history": 1}

_ONCE = ("broker_interval", "controller", "observation")
# The costs of tasks, in rows that a fold takes in the same time.
_OF_FILE = 1_000
_OF_MONTH = 300_000


@dataclass(frozen=True)
class Period:
    """A period's name, such as 2026-11-22 or 2026-11, and its days."""

    name: str
    days: tuple[Day, ...]


@dataclass(frozen=True)
class Task:
    """The periods that one process makes in order, and the part of the topics that it takes.

    `out` is the output folder. `token` is that of the run that holds its lock. `digests` are the
    SHA-256 of the parts of months by name, as the manifest has them. `stored` says where parts lie
    now; it is None in a folder whose files have one name. `storage` has the credentials of stores.
    """

    out: str
    cluster_id: str
    bucket: int
    buckets: int
    periods: tuple[Period, ...]
    reason: str
    token: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    stored: Mapping[str, str] | None = None
    storage: Storage = field(default_factory=Storage, repr=False)

    @property
    def rows(self) -> int:
        """The number of rows of its input files."""
        found = {(f.store, f.name): f.rows for f in self.files()}
        return sum(found.values())

    @property
    def cost(self) -> int:
        """What it takes, in rows."""
        return self.rows + _OF_FILE * len(TABLES) * len(self.periods)

    def files(self) -> Iterator[File]:
        """Yields its input files; one that several days need comes several times."""
        for period in self.periods:
            for day in period.days:
                for stretch in (*day.before, *day.stretches):
                    yield from stretch.files


@dataclass(frozen=True)
class Settings:
    """What a user chooses for gold.

    `min_isr` counts where silver does not know the min ISR; None leaves it unknown. A broker that
    is back in an ISR after at most `flap_seconds` has flapped.
    """

    min_isr: int | None = None
    flap_seconds: int = 600


@dataclass(frozen=True)
class MonthTask:
    """A month of gold of one cluster, such as 2026-11, which one process makes.

    `periods` are the month's periods of silver, `earlier` are those before them, and `later` those
    after them. `digests` are the SHA-256 of the parts of these. `aside` are the days and
    states of inputs that were set aside. `rows` counts the month's intervals of partitions.
    `stored` and `storage` are as in Task.
    """

    out: str
    cluster_id: str
    month: str
    parts: Parts
    earlier: tuple[str, ...]
    periods: tuple[str, ...]
    later: tuple[str, ...]
    digests: Mapping[str, str]
    settings: Settings
    aside: tuple[tuple[str, str], ...]
    rows: int
    reason: str
    token: str = ""
    beside: int = 1
    stored: Mapping[str, str] | None = None
    storage: Storage = field(default_factory=Storage, repr=False)

    @property
    def cost(self) -> int:
        """What it takes, in rows."""
        return self.rows + _OF_MONTH

    def files(self) -> Iterator[File]:
        """Yields no input file: gold is made from silver."""
        yield from ()


@dataclass(frozen=True)
class Copy:
    """An input file, and the name in the output folder that its copy gets."""

    source: Input
    name: str


@dataclass(frozen=True)
class CopyTask:
    """Files of a cluster that one process copies into the output folder."""

    out: str
    copies: tuple[Copy, ...]
    token: str = ""
    storage: Storage = field(default_factory=Storage, repr=False)

    @property
    def cluster_id(self) -> str:
        """The id of the cluster."""
        return self.copies[0].source.cluster_id or ""

    @property
    def rows(self) -> int:
        """The number of rows of its files."""
        return sum(each.source.rows for each in self.copies)

    @property
    def cost(self) -> int:
        """What it takes, in rows."""
        return self.rows + _OF_FILE * len(self.copies)

    def files(self) -> Iterator[Input]:
        """Yields its input files."""
        for each in self.copies:
            yield each.source


@dataclass(frozen=True)
class LookTask:
    """Files of one store, of which one process finds digests and footers for the plan."""

    out: str
    inputs: tuple[Input, ...]
    token: str = ""
    cluster_id: str = ""
    storage: Storage = field(default_factory=Storage, repr=False)

    @property
    def rows(self) -> int:
        """The number of rows that cost as much: nobody knows yet how many there are."""
        return _OF_FILE * len(self.inputs) // 2

    @property
    def cost(self) -> int:
        """What it takes, in rows."""
        return self.rows

    def files(self) -> Iterator[Input]:
        """Yields its input files."""
        yield from self.inputs


@dataclass(frozen=True)
class LogPart:
    """The offsets of a segment, from `begin` to before `end`, that a task replays."""

    file: Input
    begin: int
    end: int


@dataclass(frozen=True)
class LogRecording:
    """A recording that a task makes of a log; `made_from` is what its footer says of that."""

    day: str
    session: str
    made_from: str


@dataclass(frozen=True)
class LogTask:
    """Days of a log that one process writes as recordings, from one restart point on.

    The state at `first` follows from `snapshot`, or from offset 0, and from `parts`. There the
    first recording begins, at `begin_us`; it continues `continues`, or `why_new` says why none. The
    last one ends before the offset `end`, and as `ended_by` says: `until_us` is the midnight of
    that, if it is one. Of the days between, only `todo` are written. `latest_us` is the latest time
    up to the snapshot, `leaders` are those of epochs.
    `has_earlier` says that the log could also be replayed from a restart point before that.
    """

    out: str
    cluster_id: str
    snapshot: Input | None
    latest_us: int | None
    parts: tuple[LogPart, ...]
    first: int
    end: int
    begin_us: int
    continues: str | None
    why_new: str | None
    until_us: int | None
    ended_by: str
    todo: tuple[LogRecording, ...]
    leaders: Mapping[int, int]
    has_earlier: bool
    reason: str
    token: str = ""
    storage: Storage = field(default_factory=Storage, repr=False)

    @property
    def name(self) -> str:
        """The name of its first day."""
        return self.todo[0].day

    @property
    def rows(self) -> int:
        """The number of records that it replays."""
        return sum(part.end - part.begin for part in self.parts)

    @property
    def cost(self) -> int:
        """What it takes, in rows."""
        return self.rows + _OF_FILE * len(self.todo)

    def files(self) -> Iterator[Input]:
        """Yields its input files."""
        if self.snapshot is not None:
            yield self.snapshot
        for part in self.parts:
            yield part.file


AnyTask: TypeAlias = Task | MonthTask | CopyTask | LookTask | LogTask


@dataclass(frozen=True)
class MadeMonth:
    """What a month of gold was made from.

    `digest` is that of all parts of silver, of the settings and of the versions. `read_to` is the
    last period whose intervals were read. Observations were read from the period `seen_from` to
    `seen_to`; None stands for all on that side.
    """

    digest: str
    read_to: str
    seen_from: str | None
    seen_to: str | None


@dataclass(frozen=True)
class MadeFile:
    """A table's part as it lies in the output folder, under the name `stored` if it has two."""

    name: str
    rows: int
    bytes: int
    sha256: str
    stored: str = ""


@dataclass
class Result:
    """The result of a task; `rows` counts change records by what the fold did with them.

    `months` are the months of gold that it has made, by name. `stored` are the names of content of
    unchanged files that lay there and that no table had. `copied` are inputs with their copies,
    and `refused` are inputs that are damaged. `seen` are the inputs of a look, or the recordings
    that were made of a log.
    """

    cluster_id: str
    made: list[MadeFile] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    months: dict[str, MadeMonth] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    copied: list[tuple[Input, Input]] = field(default_factory=list)
    refused: list[Input] = field(default_factory=list)
    seen: list[Input] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """What Spark's page shows of it."""
        written: list[MadeFile | Input] = [*self.made, *(copy for _, copy in self.copied)]
        read = [*self.seen, *(source for source, _ in self.copied)]
        return {
            "rows_read": self.rows.get("read", 0) + sum(each.rows for each in read),
            "rows_written": sum(each.rows for each in written),
            "bytes_written": sum(each.bytes for each in written),
            "files_written": len(written),
        }


Engine: TypeAlias = "Callable[[Sequence[AnyTask]], Iterator[Result | BadFileError]]"


def tables_of(bucket: int) -> tuple[str, ...]:
    """Returns the tables of which a bucket has a part; the first bucket has all of them."""
    return TABLES if bucket == 0 else tuple(t for t in TABLES if t not in _ONCE)
