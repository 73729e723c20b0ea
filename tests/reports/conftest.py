"""What the tests of reports share with those of the commands that write them."""

from __future__ import annotations

from tests.support.command_line import invoke

__all__ = ["invoke"]
