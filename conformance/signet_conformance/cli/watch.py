"""`signet-conformance watch`: recordings as a page that grows while they do.

Examples:
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl --watch
  signet-conformance watch run.jsonl
  signet-conformance watch report/ --port 8765

The page is served only on 127.0.0.1, and its address contains a token: everyone with
the address can read the recording. If a file does not exist yet, watch waits for it.

Exit status: 0, whatever was found; 2 wrong usage.
"""

from __future__ import annotations

import hmac
import io
import json
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from glob import has_magic
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs

import click
from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.children.foreground import interrupted_by
from signet_conformance.cli.commands import epilog_of
from signet_conformance.cli.recordings import read_recording, trace_files
from signet_conformance.cli.shared_options import declared_options, parse_declarations, target_option
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.errors import SignetConformanceError, os_errors, printable
from signet_conformance.finding import BREACHES
from signet_conformance.outcome.conclusion import Judging, Terms
from signet_conformance.reports.ending import RunEnding
from signet_conformance.reports.html.report import HtmlReport

_TURN_S = 0.5


@click.command(
    "watch",
    help="Show recordings that still grow as a page in a browser, with findings as they happen; Ctrl-C ends it.",
    epilog=epilog_of(__doc__),
)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to serve it (default: a free port).")
@click.option("--contract", metavar="VERSION", help="Judge by this contract version.")
@target_option
@declared_options
def command(*, traces: tuple[str, ...], port: int, contract: str | None, target: str | None, **declared: Any) -> int:
    """Serve the page until Ctrl-C, SIGTERM or SIGHUP."""
    terms = Terms(contract=contract, declared=parse_declarations(target, **declared))
    with interrupted_by(signal.SIGTERM, signal.SIGHUP), watched(traces, terms, port):
        for name in traces:
            if not has_magic(name) and not _is_there(name):
                _say(f"{printable(name, 400)} does not exist yet: waiting for it")
        _say("Ctrl-C ends it")
        try:
            # In short waits: an interrupt that comes right before a wait is noticed only at its end.
            while True:
                time.sleep(_TURN_S)
        except KeyboardInterrupt:
            _say("")
    return 0


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:
        return True  # reported with the unreadable files


@contextmanager
def watched(names: Sequence[str], terms: Terms, port: int = 0) -> Iterator[None]:
    """Serve the recordings as a page within this context; write its address and new findings to stderr."""
    watcher = RecordingWatcher(names, terms, _tell)
    with served(watcher, port) as address:
        # The address comes first: programs wait for this line.
        _say(f"watch it: {address}")
        with watcher:
            yield


def _tell(news: PageState | str) -> None:
    lines = [f"note: {printable(news, 600)}"] if isinstance(news, str) else news.new
    for line in lines:
        _say(line)


def _say(line: str) -> None:
    # In one call: the watching thread writes lines, too.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


_POLL_S = 0.25
_REST = 3
"""A recording that has grown is judged again after this many times the duration of the last judging."""


class PageState(Struct, frozen=True):
    """One state of the recordings. `version` counts them from 1, `new` are findings that were not there before."""

    version: int
    page: str
    exchanges: int
    new: Sequence[str]


class RecordingWatcher:
    """Judges recordings again whenever they grow, in a thread of its own. A context manager.

    `names` are files, folders and globs, as for `check`; they need not exist yet. `tell` is called with each new state,
    and once with each recording that cannot be read.
    """

    def __init__(self, names: Sequence[str], terms: Terms, tell: Callable[[PageState | str], None]) -> None:
        self._names = names
        self._terms = terms
        self._tell = tell
        self._judged: dict[str, tuple[tuple[int, int], JudgedTrace]] = {}
        self._known_findings: set[object] = set()
        self._known_complaints: set[str] = set()
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="signet watch", daemon=True)
        self.seen = PageState(0, self._draw(0, ()), 0, ())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join()

    @property
    def has_ended(self) -> bool:
        """Whether watching has ended."""
        return self._ended.is_set()

    def after(self, version: int, timeout_s: float) -> PageState:
        """Wait for a state newer than `version`, for `timeout_s` at most; return the newest state."""
        with self._changed:
            self._changed.wait_for(lambda: self.seen.version > version or self.has_ended, timeout_s)
            return self.seen

    def _watch(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            if self._judge_anew():
                self._publish()
            self._ended.wait(max(_POLL_S, _REST * (time.monotonic() - began)))
        # The recordings may have grown since.
        if self._judge_anew():
            self._publish()

    def _judge_anew(self) -> bool:
        """Judge the recordings that have grown; return whether any had."""
        recordings = trace_files(self._names)
        changed = False
        for failure in recordings.complaints:
            self._complain(failure.headline)
        for gone in [file for file in self._judged if file not in recordings.files]:
            del self._judged[gone]
            changed = True
        for file in recordings.files:
            try:
                status = os.stat(file)  # noqa: PTH116 - thousands of files, four times a second
                known = (status.st_mtime_ns, status.st_size)
                if not status.st_size or self._judged.get(file, (None,))[0] == known:
                    continue
                trace = replace(self._terms.declared.applied_to(read_recording(file)), growing=True)
                self._judged[file] = known, judge(trace, self._terms.only, self._terms.contract)
                changed = True
            except OSError:
                continue  # it does not exist yet, or no longer
            except SignetConformanceError as failure:
                failure.where = failure.where or printable(file, 400)
                self._complain(failure.headline)
        return changed

    def _publish(self) -> None:
        judged = [judged for _, judged in self._judged.values()]
        version = self.seen.version + 1
        new = list(self._new(judged))
        seen = PageState(version, self._draw(version, judged), sum(len(each.trace.exchanges) for each in judged), new)
        with self._changed:
            self.seen = seen
            self._changed.notify_all()
        self._tell(seen)

    def _new(self, judged: Sequence[JudgedTrace]) -> Sequence[str]:
        """Return the findings that were not written yet, one line each."""
        lines = []
        for each in judged:
            for name, judgement in each.judgements.items():
                for finding in judgement.findings if judgement.verdict in BREACHES else ():
                    known = (each.trace.path, name, finding.exchanges, finding.pointer)
                    if known not in self._known_findings:
                        self._known_findings.add(known)
                        at = f" #{finding.exchanges[0]}" if finding.exchanges else ""
                        lines.append(f"{finding.verdict} {name}{at}: {printable(finding.message, 300)}")
        return lines

    def _complain(self, text: str) -> None:
        if text not in self._known_complaints:
            self._known_complaints.add(text)
            self._tell(text)

    def _draw(self, version: int, judged: Sequence[JudgedTrace]) -> str:
        judging = Judging(self._terms, measured=True, whole=True)
        stream = io.StringIO()
        report = HtmlReport(stream, live=version)
        for each in judged:
            judging.add(each)
            report.add(each, {})
        report.close(RunEnding(judging.conclude()))
        return stream.getvalue()


_WAIT_S = 20.0
"""How long the server waits for a newer state before it answers that nothing changed."""


@contextmanager
def served(watcher: RecordingWatcher, port: int = 0) -> Iterator[str]:
    """Serve the watcher's page within this context; yield its address, which contains a token.

    Raises UsageError if the port cannot be used.
    """
    remedy = "choose another port, or none for a free one"
    with os_errors(f"nothing can listen at 127.0.0.1:{port}", where="--port", remedy=remedy):
        server = _Server(("127.0.0.1", port), _Handler)
    server.watcher, server.token = watcher, secrets.token_urlsafe(16)
    thread = threading.Thread(target=server.serve_forever, name="signet page", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{server.token}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    watcher: RecordingWatcher
    token: str

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that left; print the traceback of any other failure."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answer GET. A request without the page's token gets a 404, as if there were no page."""

    server: _Server
    server_version = "signet-conformance"
    sys_version = ""
    timeout = 60.0

    def do_GET(self) -> None:
        """Answer with the page, or with the newest state after the one that the browser knows."""
        path, _, query = self.path.partition("?")
        token, _, name = path.removeprefix("/").partition("/")
        if not self._is_own() or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"")
        elif name == "":
            self._answer(HTTPStatus.OK, "text/html", self.server.watcher.seen.page.encode())
        elif name == "version":
            after = parse_qs(query).get("after", ["0"])[0]
            watcher = self.server.watcher
            seen = watcher.after(int(after) if after.isdecimal() and len(after) < 16 else 0, _WAIT_S)
            news = {"version": seen.version, "exchanges": seen.exchanges, "new": seen.new, "ended": watcher.has_ended}
            self._answer(HTTPStatus.OK, "application/json", json.dumps(news).encode())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"")

    def _is_own(self) -> bool:
        """Whether the request's Host is this server, and no page of another origin sent it."""
        port = self.server.server_port
        own = [f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
        origins = self.headers.get_all("Origin", [])
        return (
            self.headers.get("Host", "").lower() in own
            and all(origin.lower() in [f"http://{host}" for host in own] for origin in origins)
            and self.headers.get("Sec-Fetch-Site", "none").lower() in ("none", "same-origin")
        )

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Keep quiet: addresses hold the token."""
