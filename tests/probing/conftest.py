"""Fixtures of the tests of probing."""

from __future__ import annotations

from tests.schemas.conftest import schema
from tests.support.command_line import process

__all__ = ["process", "schema"]
