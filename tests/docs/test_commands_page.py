"""docs/commands.md is what the program says."""

from __future__ import annotations

from tests.support.tools import tool

pages = tool("command_pages")


def test_the_page_is_current() -> None:
    assert pages.PAGE.read_text("utf-8") == pages.page(), "try: python ci/tools/command_pages.py"
