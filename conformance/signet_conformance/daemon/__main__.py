"""``python -m signet_conformance.daemon``: an embedded Signet daemon on a loopback port."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from signet_conformance.daemon.behaviour import VERSIONS
from signet_conformance.daemon.http import DaemonSettings, serve
from signet_conformance.errors import SignetConformanceError


def main(arguments: list[str] | None = None) -> int:
    """Serve as the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m signet_conformance.daemon",
        description="Serve an embedded Signet daemon for tests. Prints one JSON line with its url when it is ready.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--allow-remote", action="store_true", help="allow a host that other machines can reach")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument(
        "--workspace", type=Path, metavar="DIR", help="folder of this daemon's own (default: a temporary one)"
    )
    parser.add_argument(
        "--daemon-version", dest="version", default="0.145", choices=VERSIONS,
        help="version to answer as (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when standard input is closed")
    parser.add_argument("--frozen", action="store_true", help="refuse changes of memories, as with the kill switch")
    parser.add_argument("--shutting-down", action="store_true", help="refuse everything but /health")
    parser.add_argument(
        "--claims-expire", action="store_true", help="forget earlier sessions, as after more than four hours"
    )
    try:
        serve(DaemonSettings(**vars(parser.parse_args(arguments))))
    except SignetConformanceError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
