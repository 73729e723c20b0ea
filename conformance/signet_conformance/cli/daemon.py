"""`signet-conformance daemon`: the embedded daemon in the foreground.

Examples:
  signet-conformance daemon
  signet-conformance daemon --port 3850 --daemon-version 0.205 --workspace ./workspace

When it is ready, it prints one JSON line:
  {"url": "http://127.0.0.1:PORT", "version": "0.145.7", "workspace": DIR}
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from signet_conformance.cli.commands import epilog_of, refuse_empty
from signet_conformance.daemon.behaviour import VERSIONS
from signet_conformance.daemon.http import DaemonSettings, serve
from signet_conformance.daemon.js import read_moment
from signet_conformance.daemon.state.auth import MODES
from signet_conformance.errors import UsageError


@click.command("daemon", help="Run the embedded daemon until Ctrl-C.", epilog=epilog_of(__doc__))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    envvar="SIGNET_PORT",
    help="Where to listen (default: SIGNET_PORT, else a free port).",
)
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", show_default=True, help="Where to listen.")
@click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines can reach.")
@click.option(
    "--workspace",
    metavar="DIR",
    callback=refuse_empty,
    help="Keep the daemon's data in this folder (default: a temporary one).",
)
@click.option(
    "--daemon-version",
    "version",
    type=click.Choice(VERSIONS),
    default="0.145",
    show_default=True,
    help="The daemon version to answer as.",
)
@click.option(
    "--auth", type=click.Choice(MODES), default="local", show_default=True, help="How callers prove who they are."
)
@click.option("--clock", metavar="MOMENT", help="Stop the clock at this moment, such as 2026-01-15T12:00:00Z.")
def command(*, workspace: str | None, clock: str | None, **settings: Any) -> int:
    """Serve; Ctrl-C ends it with status 0."""
    stands_at = None if clock is None else read_moment(clock)
    if clock is not None and stands_at is None:
        raise UsageError(f"{clock!r} is not a moment", where="--clock", remedy="write it as 2026-01-15T12:00:00Z")
    print("Ctrl-C ends the daemon. Give its url to the connector as SIGNET_DAEMON_URL.", file=sys.stderr, flush=True)
    folder = None if workspace is None else Path(workspace)
    serve(DaemonSettings(**settings, workspace=folder, clock_stands_at=stands_at))
    return 0
