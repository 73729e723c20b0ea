"""`signet-conformance record`: records what a connector and a daemon say, until Ctrl-C."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from signet_conformance.children.processes import ChildEndedError, ChildTimeoutError, LineProcess
from signet_conformance.cli.declared import declared_options, parse_declared
from signet_conformance.errors import KitError, UsageError, printable
from signet_conformance.outcome.declared import words as declared_words
from signet_conformance.reports.command_lines import shell_command

_START_S = 60.0
_ANSWER_S = 10.0
_PROGRESS_S = 0.5

_EPILOG = """\b
Examples:
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl \\
      --agent atlas --harness openclaw --bound start=15

\b
The connector is pointed at the recorder, the recorder at the daemon. Secrets
are redacted before anything is written. Ctrl-C ends the recording.
"""


@click.command("record", help="Record what a connector and a daemon say to each other, until Ctrl-C.", epilog=_EPILOG)
@click.option("--upstream", required=True, metavar="URL", help="The daemon, such as http://127.0.0.1:3850.")
@click.option("--out", required=True, metavar="FILE", help="The trace to write; it must not exist.")
@click.option("--host", metavar="ADDRESS", help="Where to listen (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Where to listen (default: a free port).")
@click.option("--allow-non-loopback", is_flag=True, help="Let other machines connect to --host.")
@click.option("--upstream-may-be-down", is_flag=True, help="Record even when nobody answers at --upstream yet.")
@click.option(
    "--canary-env",
    "canaries",
    multiple=True,
    metavar="NAME",
    help="Redact the value of this variable, and notice it anywhere; repeatable.",
)
@click.option("--body-limit", type=click.IntRange(0), metavar="BYTES", help="Cut larger bodies (default: 8 MiB).")
@click.option("--target", metavar="NAME", help="Name of the connector, for the header.")
@declared_options
def command(
    *,
    upstream: str,
    out: str,
    host: str | None,
    port: int | None,
    allow_non_loopback: bool,
    upstream_may_be_down: bool,
    canaries: tuple[str, ...],
    body_limit: int | None,
    target: str | None,
    **declared: Any,
) -> int:
    """Run the recorder; the exit status is its own."""
    words = [f"--upstream={upstream}", f"--out={out}"]
    words += [] if host is None else [f"--host={host}"]
    words += [] if port is None else [f"--port={port}"]
    words += ["--allow-non-loopback"] * allow_non_loopback
    words += [] if upstream_may_be_down else ["--require-upstream"]
    words += [f"--canary-env={name}" for name in canaries]
    words += [] if body_limit is None else [f"--body-limit={body_limit}"]
    words += [] if target is None else [f"--target={target}"]
    words += ["--token-declared" if word == "--token" else word for word in declared_words(parse_declared(**declared))]
    # A terminated recording ends like an interrupted one: with a whole trace and no process left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # -P keeps a folder that happens to be called like the recorder from being run in its place.
    with LineProcess(
        "the recorder", [sys.executable, "-P", "-m", "signet_recording_proxy", "--control", *words]
    ) as child:
        try:
            return _run(child, upstream, out)
        except ChildEndedError:
            child.close()
            status = child.returncode
            return status if status in (UsageError.exit_status, KitError.exit_status) else KitError.exit_status
        finally:
            _pass_on_stderr(child)


def _run(child: LineProcess, upstream: str, out: str) -> int:
    url = child.receive(_START_S)["url"]
    _pass_on_stderr(child)
    print(
        f"recording {printable(upstream, 300)} into {printable(out, 1000)}",
        "point the connector at the recorder, then use it:",
        f"  export SIGNET_DAEMON_URL={printable(url, 300)}",
        "Ctrl-C ends the recording",
        sep="\n",
        flush=True,
    )
    shows_progress = sys.stdout.isatty()
    try:
        while True:
            # Nothing was asked, so what ends the wait is the time, or the recorder's own end.
            with suppress(ChildTimeoutError):
                child.receive(_PROGRESS_S)
            if shows_progress:
                print(f"\r{_count(child)} recorded ", end="", flush=True)
    except KeyboardInterrupt:
        count = _count(child)
        child.ask({"op": "exit"}, _ANSWER_S)
        print("\r" if shows_progress else "", end="")
        print(f"{count} in {printable(Path(out).absolute(), 1000)}")
        print(f"check it: {shell_command(['signet-conformance', 'check', out])}")
    child.close()
    return KitError.exit_status if child.returncode else 0


def _count(child: LineProcess) -> str:
    written = child.ask({"op": "counts"}, _ANSWER_S).get("written", 0)
    return f"{written} exchange{'' if written == 1 else 's'}"


def _pass_on_stderr(child: LineProcess) -> None:
    while child.stderr:
        print(child.stderr.popleft(), file=sys.stderr)
