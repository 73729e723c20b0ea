"""Facts about `signet-conformance targets`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from signet_conformance import targets
from tests.support.command_line import Invoke


def test_every_target_is_listed(invoke: Invoke) -> None:
    """Each known target has a line with its declaration."""
    shown = invoke("targets").stdout
    assert [line.split()[0] for line in shown.splitlines() if not line.startswith(" ")] == list(targets.names())
    assert "harness reference" in shown


def test_json_has_the_declaration_of_each(invoke: Invoke) -> None:
    """--json is an object of target names with their declarations."""
    document = json.loads(invoke("targets", "--json").stdout)
    assert document == {name: targets.load(name).declared.to_json() for name in targets.names()}


def test_repository_s_own_target_is_listed(invoke: Invoke, tmp_path: Path) -> None:
    """A target of the settings is listed, in JSON too, and can be examined."""
    text = '[tool.signet-conformance.targets.mine]\ncommand = ["{python}", "-c", "pass"]\nharness = "acme"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    shown = invoke("targets").stdout
    assert [line.split() for line in shown.splitlines() if line.startswith("mine ")] == [["mine", "harness", "acme"]]
    assert json.loads(invoke("targets", "--json").stdout)["mine"] == {"harness": "acme"}
    assert invoke("targets", "--doctor", "mine").stdout.startswith("found    a program that speaks signet-driver/1:")


@pytest.mark.parametrize(
    ("text", "status"),
    [('driver = "mcp"\ncommand = ["{python}"]', 0), ('driver = "mcp"', 2), ('driver = "http-adapter"', 2)],
)
def test_the_doctor_always_prints_something(invoke: Invoke, tmp_path: Path, text: str, status: int) -> None:
    """Whatever the driver, each need has a line, and a missing one decides the exit status."""
    (tmp_path / "signet-conformance.toml").write_text(f"[targets.mine]\n{text}\n")
    result = invoke("targets", "--doctor", "mine")
    assert result.exit_code == status
    assert any(line.startswith("missing ") for line in result.stdout.splitlines()) is bool(status)
    assert result.stdout.strip()


def test_unknown_target_is_an_error_of_the_option(invoke: Invoke) -> None:
    """The error names --doctor."""
    result = invoke("targets", "--doctor", "nope")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --doctor: no target is called 'nope'")


def test_the_doctor_writes_no_json(invoke: Invoke) -> None:
    """--json is refused, since --doctor would ignore it."""
    done = invoke("targets", "--doctor", "reference", "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: --doctor: ")


def test_the_doctor_quotes_standard_error_line_by_line(invoke: Invoke, tmp_path: Path) -> None:
    """A traceback is shown as the program wrote it."""
    (tmp_path / "driver.py").write_text("import acme\n")
    settings = '[targets.mine]\ncommand = ["{python}", "{root}/driver.py"]\n'
    (tmp_path / "signet-conformance.toml").write_text(settings)
    done = invoke("targets", "--doctor", "mine")
    assert done.exit_code == 2
    assert "\n             ModuleNotFoundError: No module named 'acme'\n" in done.stdout
    assert "\\n" not in done.stdout


def test_the_doctor_says_what_the_driver_skips(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A declared operation that no listed step can cause is named before a run blames the connector for it."""
    answer = {"id": 1, "ok": True, "result": {"protocol": "signet-driver/1", "steps": ["start", "prompt", "end"]}}
    (tmp_path / "driver.py").write_text(f"import sys\nsys.stdin.readline()\nprint({json.dumps(json.dumps(answer))})\n")
    operations = [
        "session-start",
        "user-prompt-submit",
        "session-end",
        "compaction-complete",
        "memory-recall",
        "health",
    ]
    settings = f'[targets.mine]\ncommand = ["{{python}}", "{{root}}/driver.py"]\ncapabilities = {operations}\n'
    (tmp_path / "signet-conformance.toml").write_text(settings)
    monkeypatch.setenv("COLUMNS", "120")
    done = invoke("targets", "--doctor", "mine")
    # A line that goes on is indented below its label.
    lines = re.sub(r"\n {9}", " ", done.stdout).splitlines()
    told = [line.removeprefix("note     ") for line in lines if line.startswith("note ")]
    assert done.exit_code == 0
    declared = "declared, but no step can cause it"
    assert told[0].startswith("what the driver skips: clear, compact, compaction_complete, pre_compaction, resume,")
    assert [line.partition(": add ")[0] for line in told[1:]] == [
        f"{declared}: compaction-complete",
        f"{declared}: memory-recall",
    ]
    assert told[1].endswith(": add compact or compaction_complete to the driver's steps, or do not declare it")
