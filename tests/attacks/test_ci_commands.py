"""What a recording says is never a command to the CI system that reads what the kit prints."""

from __future__ import annotations

import pytest

from signet_conformance.errors import printable


@pytest.mark.parametrize(
    "text",
    [
        *("::set-output name=x::y", "  ::add-mask::x", "::stop-commands::t", "::ERROR file=a::b", "::group::x"),
        *("##[command]x", "##[error]x", "##vso[task.setvariable variable=a]b", "##teamcity[x]", "a##[group]b"),
    ],
)
def test_a_command_of_a_ci_system_is_escaped(text: str) -> None:
    """Wherever it stands, for a line may be broken before it."""
    shown = printable(text)
    assert "::set" not in shown
    assert all(mark not in shown for mark in ("::add", "::stop", "::ERROR", "::group", "##[", "##vso[", "##teamcity["))


@pytest.mark.parametrize("text", ["std::vector", "a::b", "[::1]:3850", "## Heading", "# [x]", "http://[::1]/x"])
def test_other_colons_and_number_signs_stay(text: str) -> None:
    """They mean nothing to anybody."""
    assert printable(text) == text
