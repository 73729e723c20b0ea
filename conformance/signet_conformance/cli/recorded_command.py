"""A command that is recorded from its start to its end, between a daemon and a recorder of its own, and judged then."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from signet_conformance.children.foreground import Ended, run_in_foreground
from signet_conformance.children.processes import ChildEndedError, LineProcess
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.cli import check
from signet_conformance.cli.commands import INTERRUPTED, PROGRAM
from signet_conformance.cli.recorder_process import (
    ANSWER_S,
    START_S,
    exchanges_of,
    pass_on_stderr,
    recorder,
    status_of_ended,
    watching,
)
from signet_conformance.errors import KitError, NothingTestedError, UsageError, counted, printable
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.running.daemon import DaemonUnderTest, demand_consent, is_embedded
from signet_conformance.running.plan import EMBEDDED
from signet_conformance.running.request import check_daemon

_IDLE_S = 20.0
"""How long the last exchanges may take once the command has ended."""


def record_command(
    words: Sequence[str],
    daemon: str | None,
    out: str | None,
    options: Sequence[str],
    told: Mapping[str, str],
    *,
    checks: bool,
    watch: bool = False,
) -> int:
    """Run a command with a recorder in front of a daemon; the exit status is that of judging, or the command's own.

    `options` are words for the recorder, `told` are variables of the command's environment. Raises NothingTestedError
    when daemon or command cannot be started.
    """
    choice = EMBEDDED if daemon is None else daemon
    check_daemon(choice, "--daemon")
    # What the command does to the daemon is its own affair: it is told, and not asked for.
    demand_consent(choice, lambda told: print(told, file=sys.stderr), allowed=True, option="")
    if out is not None and os.path.lexists(out):
        raise UsageError("exists already", where=out, remedy="choose another name: nothing is replaced")
    with ExitStack() as stack:
        home = stack.enter_context(temporary_folder("signet-record-"))
        under_test = DaemonUnderTest(choice, home)
        stack.callback(under_test.close)
        under_test.start()
        trace = out or str(Path(tempfile.mkdtemp(prefix="signet-recording-"), "recording.jsonl"))
        child = stack.enter_context(recorder([f"--upstream={under_test.url}", f"--out={trace}", *options]))
        stack.enter_context(watching(trace, watch))
        try:
            of_daemon = {"SIGNET_PATH": str(home)} if is_embedded(choice) else {}
            ended = _run(child, words, trace, {**of_daemon, **told})
        except ChildEndedError:
            return status_of_ended(child)
        except NothingTestedError:
            if out is None:
                shutil.rmtree(Path(trace).parent, ignore_errors=True)
            raise
        finally:
            pass_on_stderr(child)
    if ended.status:
        print(f"{printable(words[0], 200)} ended with status {ended.status}", file=sys.stderr)
    if ended.stopped:
        return INTERRUPTED
    if not checks:
        print(f"check it: {shell_command([PROGRAM, 'check', trace])}", file=sys.stderr)
        return ended.status
    status = check.command.main([trace], prog_name=f"{PROGRAM} check", standalone_mode=False)
    if status == NothingTestedError.exit_status:
        print("try: let the command call the address in SIGNET_DAEMON_URL", file=sys.stderr)
    return status if isinstance(status, int) else KitError.exit_status


def _run(child: LineProcess, words: Sequence[str], trace: str, env: Mapping[str, str]) -> Ended:
    url = str(child.receive(START_S)["url"])
    pass_on_stderr(child)
    agent = f", SIGNET_AGENT_ID={printable(env['SIGNET_AGENT_ID'], 300)}" if "SIGNET_AGENT_ID" in env else ""
    print(f"recording into {printable(trace, 1000)}, SIGNET_DAEMON_URL={printable(url, 300)}{agent}", file=sys.stderr)
    sys.stderr.flush()
    ended = run_in_foreground(words, {**os.environ, **env, "SIGNET_DAEMON_URL": url})
    with suppress(KitError):
        # What the command left under way is recorded when it ends, and as cut off when it does not.
        child.ask({"op": "idle", "timeout_s": _IDLE_S}, _IDLE_S + ANSWER_S)
    print(f"{counted(exchanges_of(child), 'exchange')} in {printable(Path(trace).absolute(), 1000)}", file=sys.stderr)
    child.ask({"op": "exit"}, ANSWER_S)
    return ended
