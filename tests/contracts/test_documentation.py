"""The examples of the page on the suites run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import contracts
from tests.reference_harness.sessions import PATIENT

from .suites import failures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "harness" / "contracts.md"


def examples() -> list[dict[str, Any]]:
    """What the Python examples of the page define."""
    text = PAGE.read_text("utf-8")
    defined: list[dict[str, Any]] = [{} for _ in re.findall(r"```python\n", text)]
    for code, names in zip(re.findall(r"```python\n(.*?)```", text, re.DOTALL), defined, strict=True):
        exec(code, names)  # noqa: S102 - the page's own example
    return defined


def test_the_suite_of_the_page_passes() -> None:
    """Its tool conforms; what it does not override is skipped."""
    suite = examples()[0]["TestWeather"]
    assert list(failures(suite())) == ["TEST_IT_RAISES_TO_TELL_THE_MODEL_WHAT_IS_WRONG"]


def test_the_fake_of_the_page_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness of the example starts a session on a daemon without a socket."""
    for name, value in PATIENT.items():
        monkeypatch.setenv(name, value)
    examples()[1]["test_my_harness_starts_a_session"]()


def test_the_page_names_everything_that_is_exported() -> None:
    """No suite and no fake is left out; `Answer` and `Request` are what fakes are told and tell."""
    told = PAGE.read_text("utf-8")
    assert [name for name in contracts.__all__ if f"`{name}`" not in told] == ["Answer", "Request"]


def test_the_plugin_of_pytest_imports_no_suite() -> None:
    """Who only has the kit installed pays nothing for the suites."""
    code = "import sys, signet_conformance.pytest_plugin.hooks; print([n for n in sys.modules if 'contracts' in n])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
