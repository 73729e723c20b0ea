"""The command `signet-conformance`: it puts the parts of the kit together and holds no logic of its own."""

import sys

try:
    from signet_conformance.cli.commands import main
except KeyboardInterrupt:  # before there is a command that could end by itself
    print("interrupted", file=sys.stderr)
    raise SystemExit(130) from None

__all__ = ["main"]
