r"""`signet-conformance record`: records what a connector and a daemon say, until Ctrl-C or the end of a command.

Examples:
  signet-conformance record --out run.jsonl -- node agent.js
  signet-conformance record --daemon http://127.0.0.1:3850 -- claude -p hello
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl \
      --agent atlas --harness openclaw --bound start=15
  mitmdump -s "$(signet-conformance record --addon)" --set signet_out=run.jsonl \
      --mode reverse:http://127.0.0.1:3850

COMMAND runs with SIGNET_DAEMON_URL set to the recorder's address (and SIGNET_PATH
if the daemon is the embedded one). When it ends, the recording is judged, and
the exit status is that of check. With --no-check it is that of COMMAND.
With --target, SIGNET_AGENT_ID is set to the profile's first agent, unless
--agent or that variable names another. If SIGNET_TOKEN or SIGNET_API_KEY is set,
the connector is expected to send that token.
Without COMMAND, start the connector yourself with SIGNET_DAEMON_URL set to the
printed address; Ctrl-C ends the recording. Secrets are redacted before anything is written.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from signet_conformance import targets
from signet_conformance.children.foreground import interrupted_by
from signet_conformance.children.processes import ChildEndedError, ChildTimeoutError, LineProcess
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.cli.commands import PROGRAM, command_named, epilog_of, refuse_empty
from signet_conformance.cli.shared_options import declared_options, parse_declared
from signet_conformance.errors import EXIT_INTERRUPTED, KitError, NothingTestedError, UsageError, counted, printable
from signet_conformance.outcome.options import merge_declared, words as declared_words
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.trace import Declared

if TYPE_CHECKING:
    from signet_conformance.children.foreground import CommandEnd

_PROGRESS_S = 0.5
_RECORDER_OPTIONS = ("host", "port", "body_limit", "connector_release", "host_program", "host_release")
"""Options that are passed to the recorder unchanged."""
_TOKENS = ("SIGNET_TOKEN", "SIGNET_API_KEY")
"""Where connectors look for a token."""


def _print_addon(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        # Found without an import: it runs in mitmproxy, and this room must not import the recorder.
        spec = find_spec("signet_recording_proxy")
        assert spec is not None  # noqa: S101 - it comes with the kit
        assert spec.origin is not None  # noqa: S101 - a package with a file
        click.echo(Path(spec.origin).with_name("addon.py"))
        context.exit()


@click.command(
    "record",
    help="Record the traffic between a connector and a daemon until COMMAND ends, or until Ctrl-C.",
    epilog=epilog_of(__doc__),
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--upstream", metavar="URL", help="The daemon, such as http://127.0.0.1:3850, where no COMMAND is given.")
@click.option(
    "--daemon",
    metavar="WHERE",
    help="The daemon for COMMAND: embedded (the default; embedded:VERSION), the URL of a running one, or a command"
    " that starts one.",
)
@click.option(
    "--out",
    metavar="FILE",
    callback=refuse_empty,
    help="The trace to write; it must not exist (default with COMMAND: a new one).",
)
@click.option("--no-check", is_flag=True, help="Do not judge the recording when COMMAND has ended.")
@click.option("--host", metavar="ADDRESS", help="Where to listen (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Where to listen (default: a free port).")
@click.option("--allow-non-loopback", is_flag=True, help="Let other machines connect to --host.")
@click.option("--upstream-may-be-down", is_flag=True, help="Record even if no daemon answers at --upstream yet.")
@click.option(
    "--canary-env",
    "canaries",
    multiple=True,
    metavar="NAME",
    help="Redact the value of this environment variable wherever it occurs; repeatable.",
)
@click.option("--body-limit", type=click.IntRange(0), metavar="BYTES", help="Cut larger bodies (default: 8 MiB).")
@click.option(
    "--target",
    metavar="NAME",
    callback=refuse_empty,
    help="Name of the connector, for the header; of a known target the profile is declared too.",
)
@click.option("--connector-release", metavar="RELEASE", help="Release of the connector, for the header.")
@click.option("--host-program", metavar="NAME", help="The program that the connector runs in, for the header.")
@click.option("--host-release", metavar="RELEASE", help="Release of that program, for the header.")
@click.option(
    "--addon",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_addon,
    help="Print where the addon for mitmproxy is, which writes the same recordings, and do nothing else.",
)
@click.option("--watch", is_flag=True, help="Show what is recorded as a page in a browser, while it grows.")
@declared_options
def command(
    *,
    words: tuple[str, ...],
    upstream: str | None,
    daemon: str | None,
    out: str | None,
    no_check: bool,
    allow_non_loopback: bool,
    upstream_may_be_down: bool,
    canaries: tuple[str, ...],
    target: str | None,
    watch: bool,
    **more: Any,
) -> int:
    """Run the recorder; the exit status is its own, or that of judging what it recorded."""
    recorder_options = {name: more.pop(name) for name in _RECORDER_OPTIONS}
    options = ["--allow-non-loopback"] * allow_non_loopback
    options += [] if upstream_may_be_down else ["--require-upstream"]
    options += [f"--canary-env={name}" for name in canaries]
    options += [f"--{name.replace('_', '-')}={value}" for name, value in recorder_options.items() if value is not None]
    options += [] if target is None else [f"--target={target}"]
    declared = _declared(parse_declared(**more), target, os.environ if words else {})
    options += ["--token-declared" if word == "--token" else word for word in declared_words(declared)]
    variables = {"SIGNET_AGENT_ID": declared.agents[0]} if target is not None and declared.agents else {}
    if words:
        if upstream is not None:
            raise UsageError("a command has a daemon of its own", where="--upstream", remedy="use --daemon instead")
        return record_command(words, daemon, out, options, variables, checks=not no_check, watch=watch)
    upstream, out = _place_without_command(upstream, out, daemon, no_check=no_check)
    # A shell lets its background processes ignore SIGINT, so that is set too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with (
        # A recording that is terminated, or whose terminal is closed, ends like an interrupted one: with a complete
        # trace, and no process left behind.
        interrupted_by(signal.SIGTERM, signal.SIGHUP),
        recorder([f"--upstream={upstream}", f"--out={out}", *options]) as child,
        watching(out, watch),
    ):
        try:
            return _run(child, upstream, out, variables)
        except ChildEndedError:
            return status_of_ended(child)
        finally:
            pass_on_stderr(child)


def _declared(options: Declared, target: str | None, environment: Mapping[str, str]) -> Declared:
    """The declaration: the options, then the profile of the target as far as it applies to the connector.

    `environment` is the connector's, as far as it is known. Its agent takes precedence, and a token is declared only if
    it has one.
    """
    if target is None:
        return options
    if target not in targets.known_names():
        print(
            f"{printable(target, 60)} is not a known target: the recording is named after it, and no profile is used",
            file=sys.stderr,
        )
        return options
    profile = targets.load(target).declared
    agent = environment.get("SIGNET_AGENT_ID", "").strip()
    given = any(environment.get(name, "").strip() for name in _TOKENS)
    return merge_declared(
        options, replace(profile, agents=(agent,) if agent else profile.agents, token=profile.token and given)
    )


def _place_without_command(
    upstream: str | None, out: str | None, daemon: str | None, *, no_check: bool
) -> tuple[str, str]:
    """The daemon and the file of a recording without a command.

    Raises UsageError for one that is missing, and for options that need a command.
    """
    for option, given in (("--daemon", daemon is not None), ("--no-check", no_check)):
        if given:
            raise UsageError(
                "needs a command to record",
                where=option,
                remedy="signet-conformance record -- COMMAND, or --upstream URL in its place",
            )
    return _require_option("--upstream", upstream, "URL"), _require_option("--out", out, "FILE")


def _require_option(option: str, value: str | None, example: str) -> str:
    if value is None:
        raise UsageError(
            f"Missing option '{option}'",
            remedy=f"add {option} {example}, or a command to record: signet-conformance record -- COMMAND",
        )
    return value


def _run(child: LineProcess, upstream: str, out: str, variables: Mapping[str, str]) -> int:
    url = child.receive(START_S)["url"]
    pass_on_stderr(child)
    shows_progress = sys.stdout.isatty()
    try:
        # A program may end the recording as soon as it has read the last of these lines: the wait follows at once.
        print(
            f"recording {printable(upstream, 300)} into {printable(out, 1000)}",
            "point the connector at the recorder, then use it:",
            f"  export SIGNET_DAEMON_URL={printable(url, 300)}",
            *(f"  export {name}={shlex.quote(printable(value, 300))}" for name, value in variables.items()),
            "Ctrl-C ends the recording",
            sep="\n",
            flush=True,
        )
        while True:
            # No command was sent, so only the timeout or the recorder's end ends the wait.
            with suppress(ChildTimeoutError):
                child.receive(_PROGRESS_S)
            if shows_progress:
                print(f"\r{counted(exchanges_of(child), 'exchange')} recorded ", end="", flush=True)
    except KeyboardInterrupt:
        count = exchanges_of(child)
        child.ask({"op": "exit"}, ANSWER_S)
        child.close()
        print("\r" if shows_progress else "", end="")
        if child.returncode:
            return KitError.exit_status  # the recorder has printed the reason
        print(f"{counted(count, 'exchange')} in {printable(Path(out).absolute(), 1000)}")
        if count:
            print(f"check it: {shell_command(['signet-conformance', 'check', out])}")
        else:
            print(f"nothing was recorded: does the connector call SIGNET_DAEMON_URL={printable(url, 300)}?")
    child.close()
    return KitError.exit_status if child.returncode else 0


START_S = 60.0
ANSWER_S = 10.0


def recorder(words: Sequence[str]) -> LineProcess:
    """Start the recorder with these options and a control channel."""
    # With -P, Python does not run a folder of the current one that is named like the recorder.
    return LineProcess("the recorder", [sys.executable, "-P", "-m", "signet_recording_proxy", "--control", *words])


def status_of_ended(child: LineProcess) -> int:
    """Close a recorder that ended by itself; return its exit status. Its own message gives the reason."""
    child.close()
    status = child.returncode
    return status if status in (UsageError.exit_status, KitError.exit_status) else KitError.exit_status


def exchanges_of(child: LineProcess) -> int:
    """How many exchanges were recorded."""
    written = child.ask({"op": "counts"}, ANSWER_S).get("written", 0)
    return written if isinstance(written, int) else 0


def pass_on_stderr(child: LineProcess) -> None:
    """Print what the recorder has written to stderr."""
    while child.stderr:
        print(child.stderr.popleft(), file=sys.stderr)


def watching(recording: str, wanted: bool) -> AbstractContextManager[None]:
    """Serve a growing recording as a page within this context, if `wanted`."""
    if not wanted:
        return nullcontext()
    # Imported here, since it imports the page and a server.
    from signet_conformance.cli.watch import watched
    from signet_conformance.outcome.conclusion import Terms

    return watched([recording], Terms())


_IDLE_S = 20.0
"""How long the last exchanges may take once the command has ended."""


def record_command(
    words: Sequence[str],
    daemon: str | None,
    out: str | None,
    options: Sequence[str],
    variables: Mapping[str, str],
    *,
    checks: bool,
    watch: bool = False,
) -> int:
    """Run a command with a recorder in front of a daemon; return the exit status of judging, or the command's own.

    `options` are options of the recorder, `variables` those of the command's environment. Raises NothingTestedError if
    the daemon or the command cannot be started.
    """
    # Imported here: a recording without a command launches no daemon and judges nothing.
    from signet_conformance.running.daemon import EMBEDDED, DaemonUnderTest, demand_consent, is_embedded
    from signet_conformance.running.request import check_daemon

    choice = EMBEDDED if daemon is None else daemon
    check_daemon(choice, "--daemon")
    # The command may do to the daemon what it likes: print the warning, and ask for no consent.
    demand_consent(choice, lambda line: print(line, file=sys.stderr), allowed=True, option="")
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
            ended = _run_command(child, words, trace, {**of_daemon, **variables})
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
    if ended.interrupted:
        return EXIT_INTERRUPTED
    if not checks:
        print(f"check it: {shell_command([PROGRAM, 'check', trace])}", file=sys.stderr)
        return ended.status
    status = command_named("check").main([trace], prog_name=f"{PROGRAM} check", standalone_mode=False)
    if status == NothingTestedError.exit_status:
        sys.stdout.flush()  # in a log of both streams, the line comes after the verdict
        print("try: let the command call the address in SIGNET_DAEMON_URL", file=sys.stderr)
    return status if isinstance(status, int) else KitError.exit_status


def _run_command(child: LineProcess, words: Sequence[str], trace: str, env: Mapping[str, str]) -> CommandEnd:
    from signet_conformance.children.foreground import run_in_foreground

    url = str(child.receive(START_S)["url"])
    pass_on_stderr(child)
    agent = f", SIGNET_AGENT_ID={printable(env['SIGNET_AGENT_ID'], 300)}" if "SIGNET_AGENT_ID" in env else ""
    print(f"recording into {printable(trace, 1000)}, SIGNET_DAEMON_URL={printable(url, 300)}{agent}", file=sys.stderr)
    sys.stderr.flush()
    ended = run_in_foreground(words, {**os.environ, **env, "SIGNET_DAEMON_URL": url})
    with suppress(KitError):
        # Wait for requests that are still under way. Those that do not end are recorded as cut off.
        child.ask({"op": "idle", "timeout_s": _IDLE_S}, _IDLE_S + ANSWER_S)
    print(f"{counted(exchanges_of(child), 'exchange')} in {printable(Path(trace).absolute(), 1000)}", file=sys.stderr)
    child.ask({"op": "exit"}, ANSWER_S)
    return ended
