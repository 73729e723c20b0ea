"""The command `signet-conformance`: it puts the parts of the kit together and holds no logic of its own."""

from signet_conformance.cli.commands import main

__all__ = ["main"]
