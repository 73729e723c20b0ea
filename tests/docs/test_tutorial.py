"""The tutorials, executed word for word."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from signet_conformance.outcome import known_failures
from tests.support.walked_page import ROOT, Page

KIT = Page(ROOT / "docs" / "tutorial.md")
TYPESCRIPT = Page(ROOT / "docs" / "tutorial-typescript.md")
HARNESS = Page(ROOT / "docs" / "harness" / "tutorial.md", until="## With a model of your own")


@pytest.mark.longest
def test_every_step_with_the_harness_says_what_the_page_shows(tmp_path: Path) -> None:
    """Every line that the page shows beneath a block of commands is said, in that order, numbers aside."""
    HARNESS.check(tmp_path)


@pytest.mark.longest
def test_every_step_with_the_kit_says_what_the_page_shows(tmp_path: Path) -> None:
    """And `init`, which meets a connector that fails, leaves a baseline, a lane that reads it, and its report."""
    walked = KIT.check(tmp_path)
    init = KIT.first_that_shows("fails now: ")
    assert walked.statuses[init] == 1
    # Progress is a line every five seconds: how many there are is up to the machine.
    lines = [line for line in walked.said[init].splitlines() if not re.fullmatch(r"\d+/\d+ scenarios, \d+ s", line)]
    assert len(lines) <= 25
    connector = tmp_path / "connector"
    known = known_failures.read_known(str(connector / "signet-baseline.json"))
    assert {(entry.requirement, entry.target) for entry in known.entries} == {("SIG-AGENT-002", "example-python")}
    workflow = (connector / ".github" / "workflows" / "signet-conformance.yml").read_text()
    assert 'baseline: "signet-baseline.json"' in workflow or 'SIGNET_LANE_BASELINE: "signet-baseline.json"' in workflow
    report = connector / "signet-report"
    assert {"plain.jsonl", "report.html", "report.json"} <= {path.name for path in report.iterdir()}


@pytest.mark.skipif("SIGNET_TUTORIALS" not in os.environ, reason="installs from the registries: nox -s tutorials")
@pytest.mark.parametrize("page", [KIT, TYPESCRIPT, HARNESS], ids=["kit", "typescript", "harness"])
def test_the_page_begins_on_a_machine_without_the_kit(
    page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its own installation, in an empty folder with an empty home, every step says what the page shows."""
    home = tmp_path / "home"
    home.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    walked = page.check(work, home)
    figures = [("whole page", walked.ended_s[-1])]
    if page is not HARNESS:
        figures.insert(0, ("first true finding", walked.ended_s[page.first_that_shows("FAIL SIG-")]))
        figures.insert(1, ("lane seen passing", walked.ended_s[page.first_that_shows("lets the lane pass until")]))
    with capsys.disabled():
        print(f"\n{page.path.name}, from the first command on:", ", ".join(f"{name} {s} s" for name, s in figures))


def test_the_installation_in_typescript_needs_the_clone_alone() -> None:
    """Beside the registries: the example, the package and the kit itself are those of the clone."""
    assert TYPESCRIPT.installation == [
        'export KIT="$HOME/signet-conformance"',
        'cp -r "$KIT/examples/driver-typescript" connector',
        "cd connector",
        'npm install --silent --save-dev "$KIT/conformance/npm" typescript@5 @types/node@20',
    ]


@pytest.mark.parametrize(("page", "what"), [(KIT, "$KIT"), (HARNESS, "$KIT[harness]")], ids=["kit", "harness"])
def test_the_installation_is_the_readmes(page: Page, what: str) -> None:
    """The one block that is not executed makes an environment and installs the clone into it."""
    assert page.installation == [
        'export KIT="$HOME/signet-conformance"',
        "python3 -m venv .venv",
        ". .venv/bin/activate",
        f'pip install --quiet "{what}"',
    ]
