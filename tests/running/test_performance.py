"""The user's own home after a run of a real program."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.errors import KitError
from signet_conformance.running.performance import guarded


def test_a_home_that_is_left_alone_passes(tmp_path: Path) -> None:
    """Folders that are there, that are not, and a single file."""
    (tmp_path / ".pi" / "agent").mkdir(parents=True)
    (tmp_path / ".claude.json").write_text("{}")
    with guarded(tmp_path, [".pi", ".claude.json", ".codex"]):
        (tmp_path / "elsewhere").write_text("this is the user's own")


@pytest.mark.parametrize("place", [".pi/agent/new", ".claude.json", ".codex"])
def test_a_change_is_an_error_that_names_it(tmp_path: Path, place: str) -> None:
    """A file that is new or longer, or a folder that came to be."""
    (tmp_path / ".pi" / "agent").mkdir(parents=True)
    (tmp_path / ".claude.json").write_text("{}")
    with (
        pytest.raises(KitError, match=place.split("/", maxsplit=1)[0]),
        guarded(tmp_path, [".pi", ".claude.json", ".codex"]),
    ):
        (tmp_path / place).write_text("changed")
