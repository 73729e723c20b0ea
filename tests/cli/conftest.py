"""Fixtures of the commands' tests."""

from __future__ import annotations

from tests.support.command_line import few_scripted, invoke, process

__all__ = ["few_scripted", "invoke", "process"]
