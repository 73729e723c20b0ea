"""Fixtures of the audit's tests."""

from __future__ import annotations

from tests.support.command_line import invoke, process

__all__ = ["invoke", "process"]
