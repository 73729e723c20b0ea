"""Recordings that still grow, judged again each time they have, and drawn as one page."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.cli.inputs import trace_files
from signet_conformance.cli.recordings import read_recording
from signet_conformance.engine import Judged, judge
from signet_conformance.errors import SignetConformanceError, printable
from signet_conformance.finding import Verdict
from signet_conformance.outcome.conclusion import Judging, Terms
from signet_conformance.reports.ending import Ending
from signet_conformance.reports.html.report import HtmlReport

_POLL_S = 0.25
_REST = 3
"""What has grown is judged again after this many times as long as the last judging took."""
_BREACHES = (Verdict.ERROR, Verdict.FAIL, Verdict.WARN)


class Seen(Struct, frozen=True):
    """One state of the recordings. `version` counts them from 1, `new` are findings that were not there before."""

    version: int
    page: str
    exchanges: int
    new: Sequence[str]


class Growing:
    """Looks at recordings for as long as it is open, in a thread of its own. A context manager.

    `names` are files, folders and globs, as for `check`; what is not there yet may still come. `tell` hears of each
    new state, and of what cannot be read, once.
    """

    def __init__(self, names: Sequence[str], terms: Terms, tell: Callable[[Seen | str], None]) -> None:
        self._names = names
        self._terms = terms
        self._tell = tell
        self._judged: dict[str, tuple[tuple[int, int], Judged]] = {}
        self._told: set[object] = set()
        self._complained: set[str] = set()
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="signet watch", daemon=True)
        self.seen = Seen(0, self._drawn(0, ()), 0, ())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join()

    @property
    def ended(self) -> bool:
        """Whether nobody looks any more."""
        return self._ended.is_set()

    def after(self, version: int, timeout_s: float) -> Seen:
        """The state once it is a later one than this, or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self.seen.version > version or self.ended, timeout_s)
            return self.seen

    def _look(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            if self._judge_anew():
                self._publish()
            self._ended.wait(max(_POLL_S, _REST * (time.monotonic() - began)))
        # What came last is not to be missed.
        if self._judge_anew():
            self._publish()

    def _judge_anew(self) -> bool:
        """Judge what has grown; whether anything has."""
        given = trace_files(self._names)
        changed = False
        for failure in given.complaints:
            self._complain(f"{failure.where}: {failure.message}" if failure.where else failure.message)
        for gone in [file for file in self._judged if file not in given.files]:
            del self._judged[gone]
            changed = True
        for file in given.files:
            try:
                status = os.stat(file)  # noqa: PTH116 - thousands of files, four times a second
                known = (status.st_mtime_ns, status.st_size)
                if not status.st_size or self._judged.get(file, (None,))[0] == known:
                    continue
                trace = replace(self._terms.declared.applied_to(read_recording(file)), growing=True)
                self._judged[file] = known, judge(trace, self._terms.only, self._terms.contract)
                changed = True
            except OSError:
                continue  # it is not there yet, or no more
            except SignetConformanceError as failure:
                failure.where = failure.where or file
                self._complain(f"{printable(failure.where, 400)}: {failure.message}")
        return changed

    def _publish(self) -> None:
        judged = [judged for _, judged in self._judged.values()]
        version = self.seen.version + 1
        new = list(self._new(judged))
        seen = Seen(version, self._drawn(version, judged), sum(len(each.trace.exchanges) for each in judged), new)
        with self._changed:
            self.seen = seen
            self._changed.notify_all()
        self._tell(seen)

    def _new(self, judged: Sequence[Judged]) -> Sequence[str]:
        """The findings that nobody was told of, a line each."""
        lines = []
        for each in judged:
            for name, judgement in each.judgements.items():
                for finding in judgement.findings if judgement.verdict in _BREACHES else ():
                    known = (each.trace.path, name, finding.exchanges, finding.pointer)
                    if known not in self._told:
                        self._told.add(known)
                        at = f" #{finding.exchanges[0]}" if finding.exchanges else ""
                        lines.append(f"{finding.verdict} {name}{at}: {printable(finding.message, 300)}")
        return lines

    def _complain(self, text: str) -> None:
        if text not in self._complained:
            self._complained.add(text)
            self._tell(text)

    def _drawn(self, version: int, judged: Sequence[Judged]) -> str:
        judging = Judging(self._terms, measured=True, whole=True)
        stream = io.StringIO()
        report = HtmlReport(stream, live=version)
        for each in judged:
            judging.add(each)
            report.add(each, {})
        report.close(Ending.of(judging.conclude()))
        return stream.getvalue()
