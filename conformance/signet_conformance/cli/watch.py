"""`signet-conformance watch`: recordings as a page that grows while they do."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path
from typing import Any

import click

from signet_conformance import targets
from signet_conformance.cli.declared import declared_options, parse_declared
from signet_conformance.cli.live.growing import Growing, Seen
from signet_conformance.cli.live.server import PageServer
from signet_conformance.errors import printable
from signet_conformance.outcome.conclusion import Terms
from signet_conformance.outcome.declared import Declarations
from signet_conformance.trace import Declared

_EPILOG = """\b
Examples:
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl --watch
  signet-conformance watch run.jsonl
  signet-conformance watch report/ --port 8765

\b
The page is served on 127.0.0.1 alone, below a token in its address: whoever has
the address sees what is recorded. A file that is not there yet is waited for.
Exit status: 0, whatever was found; 2 wrong usage.
"""

_TURN_S = 0.5


@click.command(
    "watch",
    help="Show recordings that still grow as a page in a browser, with findings as they happen; Ctrl-C ends it.",
    epilog=_EPILOG,
)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to serve it (default: a free port).")
@click.option("--contract", metavar="VERSION", help="Judge by this contract version.")
@click.option("--target", metavar="NAME", help="Declare what the profile of this target declares.")
@declared_options
def command(*, traces: tuple[str, ...], port: int, contract: str | None, target: str | None, **declared: Any) -> int:
    """Serve the page until Ctrl-C or SIGTERM."""
    profile = Declared() if target is None else targets.load(target).declared_of_recordings
    terms = Terms(contract=contract, declared=Declarations(parse_declared(**declared), profile, target))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with watched(traces, terms, port):
        for name in traces:
            if not has_magic(name) and not _is_there(name):
                _say(f"{printable(name, 400)} is not there yet, and is waited for")
        _say("Ctrl-C ends it")
        try:
            # In turns: an interrupt that comes right before a wait is noticed at its end.
            while True:
                time.sleep(_TURN_S)
        except KeyboardInterrupt:
            _say("")
    return 0


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:
        return True  # it cannot be asked for, which is told with what cannot be read


@contextmanager
def watched(names: Sequence[str], terms: Terms, port: int = 0) -> Iterator[None]:
    """Within it, the recordings are served as a page, whose address and findings are told on stderr."""
    growing = Growing(names, terms, _tell)
    with PageServer(growing, port) as server:
        # First of all: who waits for it would take what is told before for its absence.
        _say(f"watch it: {server.url}")
        with growing:
            yield


def _tell(what: Seen | str) -> None:
    lines = [f"note: {printable(what, 600)}"] if isinstance(what, str) else what.new
    for line in lines:
        _say(line)


def _say(line: str) -> None:
    # At one go: the thread that looks at the recordings speaks too, and would speak between a line and its end.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
