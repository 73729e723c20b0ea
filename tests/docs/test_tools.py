"""Each tool of ci/tools explains itself, and refuses a word that it does not know."""

from __future__ import annotations

import runpy
import sys

import pytest

from tests.support.tools import TOOLS

PROGRAMS = [path for path in sorted(TOOLS.glob("*.py")) if "__main__" in path.read_text("utf-8")]
NAMES = [path.name for path in PROGRAMS if path.name != "mutation.py"]  # needs cosmic-ray, which the tests do not


@pytest.mark.parametrize(("word", "status"), [("--help", 0), ("--chekc", 2)])
@pytest.mark.parametrize("name", NAMES)
def test_a_tool_prints_its_usage(
    name: str, word: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.setattr(sys, "argv", [name, word])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(TOOLS / name), run_name="__main__")
    assert ended.value.code == status
    printed = capsys.readouterr()
    assert (printed.err if status else printed.out).startswith(f"usage: {name}")
