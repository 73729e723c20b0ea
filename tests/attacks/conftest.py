"""Fixtures of the kit's command line."""

from __future__ import annotations

from tests.support.command_line import invoke

__all__ = ["invoke"]
