"""One cluster's history as `rdmeta record` writes it: a sticky client and a recorder.

The recorder observes the cache after answers about all topics, and only then: see Recorder. When a
file cannot be written, the recorder keeps its rows, and the next answer brings the next attempt.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from rdmeta.cli.following import asking_every, wait_for_first
from rdmeta.cli.messages import FINE, NO_ANSWER
from rdmeta.cli.min_isr_asker import Asker
from rdmeta.cli.shared_options import Target
from rdmeta.cli.status import Status
from rdmeta.cli.wake import Wake
from rdmeta.client.actions import Updated
from rdmeta.client.blocking import Client
from rdmeta.errors import MissingExtraError
from rdmeta.model import ALL

try:
    from rdmeta.history import HistoryError, Recorder
    from rdmeta.history.pace import LEAST_GAP_S
except MissingExtraError as error:
    raise MissingExtraError.of("rdmeta record", "arrow") from error

_KEPT = "; the rows stay in memory, and each answer brings another attempt"
_UNNAMED = (
    "the brokers do not name their cluster, as Metadata v0 and v1 cannot: add a section with a name"
    " to the clusters file, and choose it with -c"
)

OnFile = Callable[["ClusterRecording", Path], object]


class ClusterRecording:
    """Records one cluster from one broker, and from another one when that fails.

    `every` is the time between two answers, `flush_every` that between two files, in seconds.
    `tell` is called with each new file, in the thread of the client's listeners. `max_gap` is the
    longest time between two observations of a recording. `code` is the exit code for this cluster,
    `broker` the id of the one that answers, None if it is not known.
    """

    def __init__(
        self,
        target: Target,
        directory: str,
        every: float,
        flush_every: float,
        status: Status,
        tell: OnFile,
    ) -> None:
        self.name = target.name
        self.code = NO_ANSWER
        self.observations = 0
        self.rows = 0
        self.broker: int | None = None
        self.max_gap = max(3 * every, LEAST_GAP_S)
        # What the brokers reported, for the metrics.
        self.min_isr: Mapping[str, int] = {}
        conf = asking_every(target.conf, every, self.max_gap)
        self.client = Client(conf, topics=ALL, sticky=True)
        self._recorder = Recorder(
            self.client.cache,
            directory,
            cluster_id=target.name,
            name=target.name,
            flush_every=flush_every,
            max_gap=self.max_gap,
            clock=self._answered_at,
            monotonic=lambda: time.monotonic() - self._age,
        )
        self._asker = Asker(target.conf, self.client.cache, self._take_min_isr, self._say)
        self._directory = directory
        self._status = status
        self._tell = tell
        self._lock = threading.Lock()
        self._looked = Wake()
        self._reported = 0
        self._complaint: str | None = None
        # How long ago the answer came that is being observed, in seconds.
        self._age = 0.0
        self.client.on_update(self._updated)

    @property
    def file_count(self) -> int:
        """The number of files so far."""
        return len(self._recorder.files)

    @property
    def age(self) -> float | None:
        """The seconds since the last answer about all topics, None before the first."""
        return self.client.cache.age()

    def begin(self, timeout: float) -> None:
        """Returns after the first observation; raises the errors of wait_for_first()."""
        wait_for_first(self.client, self._looked, timeout)

    def close(self) -> None:
        """Ends the recording: the rest of the rows goes to the disk; OSError if it cannot."""
        self.client.close()
        self._asker.close()
        with self._lock:
            try:
                self._recorder.close()
            except HistoryError as error:
                self._refuse(error)
            self._tell_files()

    def unwritten(self, error: OSError) -> str:
        """Returns the words for a file that could not be written."""
        return f"{self._directory}: a file cannot be written: {error.strerror or error}"

    def _answered_at(self) -> datetime:
        """Returns when the last answer about all topics came: until then, the state was true.

        A slow disk can delay an observation. It states the time of the answer, and not its own.
        """
        return datetime.now(timezone.utc) - timedelta(seconds=self._age)

    def _updated(self, answers: tuple[Updated, ...]) -> None:
        """Observes the cache if one of the answers was about all topics."""
        full = [each for each in answers if each.request.topics is ALL]
        if not full:
            return
        self._note_broker(full[-1].node.id)
        with self._lock:
            try:
                self._age = self.client.cache.age() or 0.0
                self.rows += self._recorder.observe()
                self.observations += 1
                self._catch_up()
                self.code = FINE
            except OSError as error:
                self.code = FINE  # the cluster has answered, and its rows are kept
                self._complain(self.unwritten(error), _KEPT)
            except HistoryError as error:
                self._refuse(error)
            self._tell_files()
        self._asker.wake(self._recorder.version)
        self._looked.set()

    def _take_min_isr(self, values: Mapping[str, int | None], answer: str) -> None:
        with self._lock:
            self._age = 0.0
            self._recorder.configs(values, answer)
        known = {name: value for name, value in values.items() if value is not None}
        self.min_isr = {n: v for n, v in self.min_isr.items() if n not in values} | known

    def _say(self, line: str) -> None:
        self._status.note(line, self.name)

    def _note_broker(self, broker: int) -> None:
        if broker < 0:  # a bootstrap server whose id is not known
            return
        if self.broker not in (None, broker):
            self._status.note(f"broker {broker} answers now, after broker {self.broker}", self.name)
        self.broker = broker

    def _complain(self, reason: str, advice: str = "") -> None:
        """Says once for each reason why nothing is written."""
        if reason != self._complaint:
            self._complaint = reason
            self._status.fault(reason + advice, self.name)

    def _refuse(self, error: HistoryError) -> None:
        """Takes a state that cannot be recorded."""
        self.code = NO_ANSWER
        self._complain(_UNNAMED if self.client.cache.cluster_id is None else str(error))

    def _catch_up(self) -> None:
        """Writes what waits in memory once a file can be written again; raises OSError."""
        if self._complaint is not None:
            self._recorder.flush()
            self._complaint = None
            self._status.note("recording goes on", self.name)

    def _tell_files(self) -> None:
        files = self._recorder.files
        for path in files[self._reported :]:
            self._tell(self, path)
        self._reported = len(files)
