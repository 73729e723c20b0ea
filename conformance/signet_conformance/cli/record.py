"""`signet-conformance record`: records what a connector and a daemon say, until Ctrl-C or the end of a command."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from signet_conformance import targets
from signet_conformance.children.processes import ChildEndedError, ChildTimeoutError, LineProcess
from signet_conformance.cli.declared import declared_options, parse_declared
from signet_conformance.cli.recorder_process import (
    ANSWER_S,
    START_S,
    exchanges_of,
    pass_on_stderr,
    recorder,
    status_of_ended,
    watching,
)
from signet_conformance.errors import KitError, UsageError, counted, printable
from signet_conformance.outcome.declared import merged
from signet_conformance.outcome.declared import words as declared_words
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.trace import Declared

_PROGRESS_S = 0.5
_TOKENS = ("SIGNET_TOKEN", "SIGNET_API_KEY")
"""Where connectors look for a token."""

_EPILOG = """\b
Examples:
  signet-conformance record --out run.jsonl -- node agent.js
  signet-conformance record --daemon http://127.0.0.1:3850 -- claude -p hello
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl \\
      --agent atlas --harness openclaw --bound start=15
  mitmdump -s "$(signet-conformance record --addon)" --set signet_out=run.jsonl \\
      --mode reverse:http://127.0.0.1:3850

\b
COMMAND is run with SIGNET_DAEMON_URL set to the recorder (and SIGNET_PATH, where
the daemon is the embedded one); when it ends the recording is judged, and the
exit status is that of check. With --no-check it is that of COMMAND.
With --target it gets the profile's first agent in SIGNET_AGENT_ID too, unless
--agent or that variable names another, and is expected to send a token where
SIGNET_TOKEN or SIGNET_API_KEY holds one.
Without COMMAND the connector is pointed at the recorder by hand, and Ctrl-C ends
the recording. Secrets are redacted before anything is written.
"""


def _print_addon(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        # Not imported: it runs in mitmproxy, and the recorder is a process of its own.
        spec = find_spec("signet_recording_proxy")
        assert spec is not None  # noqa: S101 - it comes with the kit
        assert spec.origin is not None  # noqa: S101 - a package with a file
        click.echo(Path(spec.origin).with_name("addon.py"))
        context.exit()


@click.command(
    "record",
    help="Record what a connector and a daemon say to each other: until COMMAND ends, or until Ctrl-C.",
    epilog=_EPILOG,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--upstream", metavar="URL", help="The daemon, such as http://127.0.0.1:3850, where no COMMAND is given.")
@click.option(
    "--daemon",
    metavar="WHERE",
    help="The daemon for COMMAND: embedded (the default; embedded:VERSION), the URL of a running one, or a command"
    " that starts one.",
)
@click.option("--out", metavar="FILE", help="The trace to write; it must not exist (default with COMMAND: a new one).")
@click.option("--no-check", is_flag=True, help="Do not judge the recording when COMMAND has ended.")
@click.option("--host", metavar="ADDRESS", help="Where to listen (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Where to listen (default: a free port).")
@click.option("--allow-non-loopback", is_flag=True, help="Let other machines connect to --host.")
@click.option("--upstream-may-be-down", is_flag=True, help="Record even when nobody answers at --upstream yet.")
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
    host: str | None,
    port: int | None,
    allow_non_loopback: bool,
    upstream_may_be_down: bool,
    canaries: tuple[str, ...],
    body_limit: int | None,
    target: str | None,
    connector_release: str | None,
    host_program: str | None,
    host_release: str | None,
    watch: bool,
    **declared: Any,
) -> int:
    """Run the recorder; the exit status is its own, or that of judging what it recorded."""
    options = [] if host is None else [f"--host={host}"]
    options += [] if port is None else [f"--port={port}"]
    options += ["--allow-non-loopback"] * allow_non_loopback
    options += [] if upstream_may_be_down else ["--require-upstream"]
    options += [f"--canary-env={name}" for name in canaries]
    options += [] if body_limit is None else [f"--body-limit={body_limit}"]
    options += [] if target is None else [f"--target={target}"]
    options += [] if connector_release is None else [f"--connector-release={connector_release}"]
    options += [] if host_program is None else [f"--host-program={host_program}"]
    options += [] if host_release is None else [f"--host-release={host_release}"]
    said = _declared(parse_declared(**declared), target, os.environ if words else {})
    options += ["--token-declared" if word == "--token" else word for word in declared_words(said)]
    told = {"SIGNET_AGENT_ID": said.agents[0]} if target is not None and said.agents else {}
    if words:
        if upstream is not None:
            raise UsageError("a command has a daemon of its own", where="--upstream", remedy="say --daemon instead")
        # Imported here: a recording without a command launches no daemon.
        from signet_conformance.cli.recorded_command import record_command

        return record_command(words, daemon, out, options, told, checks=not no_check, watch=watch)
    upstream, out = _place_without_command(upstream, out, daemon, no_check=no_check)
    # A terminated recording ends like an interrupted one: with a whole trace and no process left behind. A shell that
    # puts it into the background has it ignore interruptions.
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.default_int_handler)
    with recorder([f"--upstream={upstream}", f"--out={out}", *options]) as child, watching(out, watch):
        try:
            return _run(child, upstream, out, told)
        except ChildEndedError:
            return status_of_ended(child)
        finally:
            pass_on_stderr(child)


def _declared(options: Declared, target: str | None, environment: Mapping[str, str]) -> Declared:
    """What is declared: the options before the profile of the target, as far as the connector is given that.

    `environment` is the connector's, as far as it is known: the agent in it is the one that counts, and without a
    token in it none was given.
    """
    if target is None:
        return options
    if target not in targets.known():
        print(
            f"{printable(target, 60)} is not a known target: the recording is named after it, and no profile is used",
            file=sys.stderr,
        )
        return options
    profile = targets.load(target).declared
    agent = environment.get("SIGNET_AGENT_ID", "").strip()
    given = any(environment.get(name, "").strip() for name in _TOKENS)
    return merged(
        options,
        replace(profile, agents=(agent,) if agent else profile.agents, token=profile.token and given),
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
    return _demanded("--upstream", upstream, "URL"), _demanded("--out", out, "FILE")


def _demanded(option: str, value: str | None, example: str) -> str:
    if value is None:
        raise UsageError(
            f"Missing option '{option}'",
            remedy=f"add {option} {example}, or a command to record: signet-conformance record -- COMMAND",
        )
    return value


def _run(child: LineProcess, upstream: str, out: str, told: Mapping[str, str]) -> int:
    url = child.receive(START_S)["url"]
    pass_on_stderr(child)
    shows_progress = sys.stdout.isatty()
    try:
        # Whoever has read the last of these lines may end the recording: nothing lies between it and the wait.
        print(
            f"recording {printable(upstream, 300)} into {printable(out, 1000)}",
            "point the connector at the recorder, then use it:",
            f"  export SIGNET_DAEMON_URL={printable(url, 300)}",
            *(f"  export {name}={shlex.quote(printable(value, 300))}" for name, value in told.items()),
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
        print("\r" if shows_progress else "", end="")
        print(f"{counted(count, 'exchange')} in {printable(Path(out).absolute(), 1000)}")
        if count:
            print(f"check it: {shell_command(['signet-conformance', 'check', out])}")
        else:
            print(f"nothing was recorded: does the connector call SIGNET_DAEMON_URL={printable(url, 300)}?")
    child.close()
    return KitError.exit_status if child.returncode else 0
