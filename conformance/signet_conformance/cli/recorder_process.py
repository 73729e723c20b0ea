"""The recorder as `record` starts it: with the options of its command line, and a control channel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from signet_conformance.children.processes import LineProcess
from signet_conformance.errors import KitError, UsageError

START_S = 60.0
ANSWER_S = 10.0


def recorder(words: Sequence[str]) -> LineProcess:
    """The recorder with these options, started, with a control channel."""
    # -P keeps a folder that happens to be called like the recorder from being run in its place.
    return LineProcess("the recorder", [sys.executable, "-P", "-m", "signet_recording_proxy", "--control", *words])


def status_of_ended(child: LineProcess) -> int:
    """The exit status of a recorder that ended by itself, which has said why."""
    child.close()
    status = child.returncode
    return status if status in (UsageError.exit_status, KitError.exit_status) else KitError.exit_status


def exchanges_of(child: LineProcess) -> int:
    """How many exchanges were recorded."""
    written = child.ask({"op": "counts"}, ANSWER_S).get("written", 0)
    return written if isinstance(written, int) else 0


def pass_on_stderr(child: LineProcess) -> None:
    """Show what the recorder complained of."""
    while child.stderr:
        print(child.stderr.popleft(), file=sys.stderr)


def watching(recording: str, wanted: bool) -> AbstractContextManager[None]:
    """What shows a recording as a page while it is made, if that is wanted."""
    if not wanted:
        return nullcontext()
    # Imported when it is wanted: it brings the page and a server.
    from signet_conformance.cli.watch import watched
    from signet_conformance.outcome.conclusion import Terms

    return watched([recording], Terms())
