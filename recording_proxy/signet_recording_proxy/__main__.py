"""`python -m signet_recording_proxy`: records between connectors and a daemon.

    python -m signet_recording_proxy --upstream http://127.0.0.1:3850 --out trace.jsonl

When it listens, it prints one line, `{"url": "http://127.0.0.1:PORT", "out": FILE}`; give that URL
to the connector in place of the daemon's. It ends on SIGTERM or SIGINT, and with `--control` also
when stdin ends. Exit status: 0 ended as asked, 2 the command line cannot be used (or, with
`--require-upstream`, nobody answers there), 4 the recorder itself failed.

Control channel (`--control`): JSON objects, one a line, on stdin; each is answered by one line on
stdout, in order. `{"ok": false, "error": …, "remedy": …}` refuses a command.

    {"op": "mark", "name": "step", "data": {…}}        -> {"ok": true, "seq": n}
    {"op": "trace", "out": FILE, "header": {"target": …, "declared": {…}}}
        begins a new file, with numbers from 1 and time zero; exchanges in flight end in the old one; with
        "model": FILE marks also go there, and so do the requests of a played host to its model
    {"op": "asked", "path": …, "body": {…}, "answer": {…}}
        a request of a played host to its model, and the answer
    {"op": "fault", "fault": {"kind": …, …}, "match": {"method": …, "path": PATTERN}, "count": n}
        -> {"ok": true, "id": k}; match and count are optional; also marked in the trace
    {"op": "fault_off", "id": k}                       -> {"ok": true, "off": [k, …], "unmet": [k, …]}; null: all;
                                                          unmet: those that affected no request
    {"op": "idle", "timeout_s": 5}                     -> when no exchange is in flight, or ok false
    {"op": "upstream", "url": URL}                     -> {"ok": true, "daemon_version": …}
    {"op": "counts"}                                   -> {"ok": true, "written": n, "in_flight": n, …}
    {"op": "exit"}

Where several faults match, the one that was switched on first acts. PATTERN is one of `fnmatch`,
against the path without its query. Faults, with their parameters in brackets:
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import ipaddress
import logging
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

from signet_conformance import __version__
from signet_conformance.errors import KitError, SignetConformanceError, UsageError, printable
from signet_conformance.trace import Declared, Header
from signet_conformance.trace.fault_kinds import fault_page
from signet_conformance.trace.recordings import MODEL
from signet_recording_proxy.body import DEFAULT_LIMIT
from signet_recording_proxy.redaction.redactor import Redactor, canaries_in
from signet_recording_proxy.trace_file import TraceFile, demand_creatable
from signet_recording_proxy.upstream import Upstream, ask

__doc__ = f"{__doc__}\n{fault_page()}\n"

_COLLECTION_THRESHOLD = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the recorder until it is ended; return the exit status."""
    options = _parser().parse_args(arguments)
    # Log lines of libraries may quote traffic.
    logging.disable(logging.CRITICAL)
    try:
        upstream = Upstream(options.upstream)
        with asyncio.Runner(loop_factory=None if find_spec("uvloop") is None else _faster_loop) as runner:
            return runner.run(_record(options, upstream))
    except SignetConformanceError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return failure.exit_status
    except KeyboardInterrupt:
        return 0


def _faster_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m signet_recording_proxy",
        description="Record the traffic between connectors and a Signet daemon.",
        epilog="The control channel is described by: python -m pydoc signet_recording_proxy.__main__",
    )
    add = parser.add_argument
    add("--upstream", required=True, metavar="URL", help="the daemon, such as http://127.0.0.1:3850")
    add("--out", required=True, metavar="FILE", help="the trace to write; it must not exist")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    add("--port", type=int, default=0, help="where to listen (default: a free port)")
    add("--allow-non-loopback", action="store_true", help="let other machines connect to --host")
    add("--require-upstream", action="store_true", help="exit with 2 when no daemon answers at --upstream")
    add("--control", action="store_true", help="take commands on stdin, answer on stdout")
    add("--unwatched", action="store_true", help="let the caller delete recordings that are not needed")
    add("--target", metavar="NAME", help="name of the connector, for the header")
    add("--connector-release", metavar="RELEASE", help="release of the connector, for the header")
    add("--host-program", metavar="NAME", help="the program that the connector runs in, for the header")
    add("--host-release", metavar="RELEASE", help="release of that program, for the header")
    add("--agent", action="append", default=[], metavar="ID", help="an agent id the connector acts as")
    add("--harness", metavar="NAME", help="the harness the connector names")
    add("--bound", action="append", default=[], metavar="NAME=SECONDS", help="a declared bound, such as start=15")
    add("--capability", action="append", metavar="OPERATION", help="an operation the connector declares")
    add("--prompt-chars", type=int, metavar="N", help="after how many characters the connector cuts a prompt")
    add("--bypass", choices=("connector", "application"), help="who applies the user's bypass")
    add("--side", choices=(MODEL,), help="what is upstream, if it is not a daemon")
    add("--token-declared", action="store_true", help="the connector was given a token")
    add("--canary-env", action="append", default=[], metavar="NAME", help="redact the value of this variable anywhere")
    add("--body-limit", type=int, default=DEFAULT_LIMIT, metavar="BYTES", help="cut larger bodies (default: 8 MiB)")
    return parser


def _declared(options: argparse.Namespace) -> Declared:
    bounds: dict[str, object] = {}
    for bound in options.bound:
        name, _, seconds = bound.partition("=")
        try:
            bounds[name] = float(seconds)
        except ValueError:
            raise UsageError(
                f"{printable(bound)} is not a bound", where="--bound", remedy="write it as --bound start=15"
            ) from None
    return Declared.from_json(
        {
            "agents": options.agent,
            "harness": options.harness,
            "bounds_s": bounds,
            "capabilities": options.capability,
            "token": options.token_declared,
            "prompt_chars": options.prompt_chars,
            "bypass": options.bypass,
        },
        "the command line",
    )


def _check_host(options: argparse.Namespace) -> None:
    try:
        loopback = options.host == "localhost" or ipaddress.ip_address(options.host).is_loopback
    except ValueError:
        loopback = False
    if not loopback and not options.allow_non_loopback:
        raise UsageError(
            f"{printable(options.host)} is reachable from other machines, which could speak to the daemon through it",
            where="--host",
            remedy="leave --host out, or add --allow-non-loopback when that is wanted",
        )
    if not 0 <= options.port <= 65535:
        raise UsageError(f"{options.port} is not a port", where="--port", remedy="give 0 to 65535; 0 is a free one")
    if options.body_limit < 0:
        raise UsageError("a size cannot be negative", where="--body-limit", remedy="give a number of bytes")


async def _record(options: argparse.Namespace, upstream: Upstream) -> int:
    _check_host(options)
    redactor = Redactor(canaries_in(os.environ, options.canary_env))
    declared = _declared(options)
    demand_creatable(options.out)
    probe = asyncio.create_task(ask(upstream))
    await asyncio.sleep(0)  # sends the request before the heavy imports, so that the daemon answers meanwhile
    from signet_recording_proxy.control import Control, write_line
    from signet_recording_proxy.engine.client_connection import ClientConnection
    from signet_recording_proxy.engine.connection_limits import ConnectionLimits, raise_limit
    from signet_recording_proxy.listener import Listener, reserve
    from signet_recording_proxy.recorder import Recorder

    daemon = await probe
    if not daemon.answered:
        _tell_upstream_is_down(upstream, required=options.require_upstream)
    elif daemon.odd and options.require_upstream:
        raise UsageError(
            f"is no Signet daemon: it answers GET /health {daemon.odd}",
            where=upstream.url,
            remedy="give the daemon's address (http://127.0.0.1:3850, unless configured otherwise);"
            " --upstream-may-be-down records whatever answers",
        )
    header = Header(
        None,
        options.target,
        upstream.url,
        daemon.version,
        declared,
        options.side,
        recorder=os.urandom(8).hex(),
        kit=__version__,
        connector_release=options.connector_release,
        host=options.host_program,
        host_release=options.host_release,
    )
    reserved = reserve(options.host, options.port)
    recorder = Recorder(TraceFile(options.out, redactor.header(header)), redactor, options.body_limit)
    if not options.unwatched:
        recorder.watch()
    listener = Listener(upstream, recorder, reserved, rewrite_any_host=options.allow_non_loopback)
    raise_limit()
    await listener.serve(partial(ClientConnection, listener, ConnectionLimits()))
    ended = _watch_signals()
    _reduce_garbage_collection()
    write_line({"url": listener.url, "out": options.out})

    waiting: list[asyncio.Future[Any]] = [ended, recorder.failure]
    if options.control:
        waiting.append(asyncio.create_task(Control(recorder, listener, header).serve()))
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    listener.close()
    recorder.abandon("the recorder ended")
    await recorder.wait_for_lines()
    if recorder.failure.done():
        raise recorder.failure.result()
    for task in waiting[2:]:
        if task.done():
            task.result()
    return KitError.exit_status if recorder.internal_errors else 0


def _reduce_garbage_collection() -> None:
    """Collect garbage rarely, and never among the loaded modules: exchanges leave no reference cycles."""
    gc.freeze()
    gc.set_threshold(_COLLECTION_THRESHOLD, 20, 50)


def _watch_signals() -> asyncio.Future[Any]:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    return loop.create_task(ended.wait())


def _tell_upstream_is_down(upstream: Upstream, *, required: bool) -> None:
    remedy = "start the daemon, or give its address with --upstream"
    if required:
        raise UsageError("no daemon answers GET /health", where=upstream.url, remedy=remedy)
    print(f"warning: {upstream.url}: no daemon answers GET /health yet\ntry: {remedy}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
