"""The recipe of docs/real-bugs.md finds the commit, and the tool tells what differs between two reports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.drives import PLAIN
from tests.support.tools import tool

ROOT = Path(__file__).parents[2]
AGENT = '"agentId": self.agent'


def git(folder: Path, *words: str) -> str:
    """What git says, as somebody whom no settings of this machine name."""
    named = ["-c", "user.name=Robin", "-c", "user.email=robin@example.invalid", "-c", "commit.gpgsign=false"]
    command = [shutil.which("git") or "git", *named, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A connector's repository with five commits, of which the fourth sends another agent."""
    folder = tmp_path / "connector"
    shutil.copytree(ROOT / "examples" / "driver-python", folder, ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "-q")
    connector = folder / "connector.py"
    assert AGENT in connector.read_text("utf-8")
    for number in range(5):
        (folder / "NOTES").write_text(f"change {number}\n")
        if number == 3:
            connector.write_text(connector.read_text("utf-8").replace(AGENT, '"agentId": "default"'), "utf-8")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"change {number}")
    return folder


def test_the_recipe_finds_the_commit_that_broke_it(history: Path, tmp_path: Path) -> None:
    """Each commit is driven through one session, which shows the breach; a usual run has many more for a good one."""
    recipe = re.search(r"(?m)^git bisect run sh -c '(.*)'$", (ROOT / "docs" / "real-bugs.md").read_text("utf-8"))
    assert recipe is not None
    kit = f"{sys.executable} -m signet_conformance.cli"
    (tmp_path / "plain.json").write_text(json.dumps(PLAIN))
    run = f"run example-python --scenario {tmp_path / 'plain.json'}"
    line = recipe[1].replace("signet-conformance", kit).replace("run mine", run)
    git(history, "bisect", "start", "HEAD", "HEAD~4")
    found = git(history, "bisect", "run", "sh", "-c", line)
    assert "change 3" in found.split("is the first bad commit")[1]


def test_a_breach_is_known_by_requirement_and_kind() -> None:
    """The wording does not tell breaches apart; each listed element, and the next contract, makes another one."""
    tools = tool("real_bugs")
    finding = {"message": "key a is used twice", "fold": "used twice"}
    again = {"message": "key b is used twice", "fold": "used twice"}
    report = {"together": {"SIG-SESS-001": {"verdict": "WARN", "findings": [finding, again]}}}
    assert tools.breaches(report) == {("SIG-SESS-001", "used twice"): "key a is used twice"}
    listed = {"message": "never seen: a, b", "fold": "never called", "elements": ["a", "b"]}
    seen = tools.breaches({"together": {"SIG-COV-001": {"verdict": "FAIL", "findings": [listed]}}})
    assert list(seen) == [("SIG-COV-001", "never called a"), ("SIG-COV-001", "never called b")]
    later = {"contract": "0.145", "breaches": {"SIG-AGENT-002": {"message": "as 'default'"}}}
    assert tools.breaches({"newer": later}) == {("SIG-AGENT-002", "next contract"): "would breach 0.145: as 'default'"}


def test_the_page_names_each_pair() -> None:
    tools = tool("real_bugs")
    rows = [{"fix": "012345678", "target": "pi", "release": "0.1.0", "wrong": "a|b", "gone": [["SIG-A-001", "said"]]}]
    assert "| 012345678 | pi | 0.1.0 | a\\|b | `SIG-A-001` said |" in tools.table(rows)
    assert tools.table(rows).startswith("The kit reports 1 of 1 bugs.")
    silent = [{**rows[0], "fix": "abcdef012", "gone": []}, {**rows[0], "fix": "abcdef013", "failed": "not driven: x"}]
    assert tools.table(silent, tools.table(rows)).startswith("The kit reports 1 of 3 bugs.")


def test_a_tool_that_came_with_the_fix_does_not_tell_another_bug() -> None:
    row = {"fix": "012345678", "target": "pi", "release": "0.1.0", "wrong": "x", "gone": [], "reachable": ["a_tool"]}
    assert "| became reachable: a_tool |" in tool("real_bugs").table([row])
    assert "| nothing: sent by no hook |" in tool("real_bugs").table([{**row, "untold": "sent by no hook"}])
