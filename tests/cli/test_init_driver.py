"""Facts about the driver that `signet-conformance init` writes, and about its first run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance import targets
from tests.support.command_line import Invoke, Process
from tests.support.drives import PLAIN
from tests.support.init_files import IGNORED, WORKFLOW, files

MANIFESTS = {
    "pyproject.toml": ('[project]\nname = "acme-memory"\n', "conformance/driver.py", "python -m pip install ."),
    "package.json": ('{"name": "@acme/acme-memory"}', "conformance/driver.mjs", "npm install"),
    "Cargo.toml": ('[package]\nname = "acme_memory"\n', "examples/signet-driver.rs", "cargo build --examples"),
}


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_an_unknown_connector_gets_a_driver_of_its_language(tmp_path: Path, invoke: Invoke, manifest: str) -> None:
    """The manifest decides language, name and build lines; settings, driver and lane fit each other."""
    text, driver, build = MANIFESTS[manifest]
    (tmp_path / manifest).write_text(text)
    assert invoke("init", "--no-run").exit_code == 0
    assert files(tmp_path) == {manifest, "signet-conformance.toml", driver, ".gitignore", WORKFLOW.as_posix()}
    target = targets.load("acme-memory", tmp_path)
    assert (target.driver, target.declared.agents) == ("command", ("atlas-agent", "beacon-agent"))
    # A connector that reads its agent from the environment when it is loaded is not blamed for another agent's session.
    assert target.processes == "agent"
    assert (tmp_path / driver).read_text().count("FILL IN ") == 5
    lane = (tmp_path / WORKFLOW).read_text()
    assert f"- run: {build}\n" in lane
    assert 'SIGNET_LANE_TARGET: "acme-memory"' in lane
    assert (tmp_path / ".gitignore").read_text() == IGNORED


@pytest.mark.parametrize("manifest", ["pyproject.toml", "package.json"])
def test_the_driver_answers_before_anything_is_filled_in(tmp_path: Path, process: Process, manifest: str) -> None:
    """The doctor gets its answer; a run tests nothing, ends with 3, and has no notes."""
    (tmp_path / manifest).write_text(MANIFESTS[manifest][0])
    assert process("init", "--no-run").returncode == 0
    seen = process("targets", "--doctor", "acme-memory")
    assert seen.returncode == 0
    assert "it performs start, prompt, end" in seen.stdout
    (tmp_path / "plain.json").write_text(json.dumps(PLAIN))
    done = process("run", "acme-memory", "--scenario", "plain.json")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "no request was recorded" in done.stdout
    assert "FAIL SIG-" not in done.stdout
    assert notes(done.stdout) == []


@pytest.mark.usefixtures("few_scripted")
def test_a_driver_without_anything_filled_in_is_not_called_broken(tmp_path: Path, invoke: Invoke) -> None:
    """Its first run tests nothing, ends with 3, and says what is still to be done."""
    (tmp_path / "pyproject.toml").write_text(MANIFESTS["pyproject.toml"][0])
    done = invoke("init")
    assert done.exit_code == 3, done.output
    assert "\nno request was recorded in 2 scenarios\n" in done.stdout
    assert notes(done.stdout) == []
    assert "nothing was tested" in done.stdout
    assert "five places marked FILL IN" in done.stdout
    assert "FAIL" not in done.stdout
    assert "generated sessions" not in done.output


def notes(shown: str) -> list[str]:
    """The notes of a run, except for one that depends on whether another test uses the daemon's default port."""
    return [line for line in shown.splitlines() if line.startswith("note: ") and "note: SIG-LOAD-003 " not in line]


REFUSED = {
    "pyproject.toml": (
        '    return ""\n',
        """    from urllib.request import Request, urlopen
    url = os.environ["SIGNET_DAEMON_URL"] + "/api/hooks/user-prompt-submit"
    urlopen(Request(url, b"{}", {"content-type": "application/json"}))
""",
        "HTTPError: HTTP Error 400: Bad Request at conformance/driver.py:",
    ),
    "package.json": (
        '  return "";\n',
        """  const said = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
  const answer = await fetch(process.env.SIGNET_DAEMON_URL + "/api/hooks/user-prompt-submit", said);
  if (!answer.ok) throw new Error(`refused with ${answer.status}`);
""",
        "Error: refused with 400 at prompt (file://",
    ),
}
"""What stands in the driver, a call in its place that is refused, and how the kit quotes what that throws."""


@pytest.mark.parametrize("manifest", REFUSED)
def test_a_connector_that_throws_is_judged_by_its_first_run(tmp_path: Path, process: Process, manifest: str) -> None:
    """The driver goes on after an error of the connector, as a harness does: breach and error are shown."""
    (tmp_path / manifest).write_text(MANIFESTS[manifest][0])
    assert process("init", "--no-run").returncode == 0
    driver = tmp_path / MANIFESTS[manifest][1]
    before, filled_in, thrown = REFUSED[manifest]
    assert before in driver.read_text()
    driver.write_text(driver.read_text().replace(before, filled_in))
    (tmp_path / "plain.json").write_text(json.dumps(PLAIN))
    done = process("run", "acme-memory", "--scenario", "plain.json")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL SIG-PROMPT-001" in done.stdout
    assert "note: prompt: threw, in " in done.stdout
    assert thrown in done.stdout
    assert "broke off" not in done.stdout + done.stderr
    assert "no hook or memory request was accepted; what was sent and answered: signet-conformance show" in done.stdout


@pytest.mark.usefixtures("few_scripted")
def test_a_connector_whose_requests_are_all_refused_is_not_called_silent(tmp_path: Path, invoke: Invoke) -> None:
    """The breaches of its requests are shown, and no baseline lets them pass."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "packages" / "connector"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(MANIFESTS["pyproject.toml"][0])
    assert invoke("init", "--no-run", "packages/connector").exit_code == 0
    driver = folder / "conformance" / "driver.py"
    before, filled_in, _ = REFUSED["pyproject.toml"]
    driver.write_text(driver.read_text().replace(before, filled_in))
    done = invoke("init", "--scenarios", "0", "packages/connector")
    assert done.exit_code == 3, done.output
    assert "FAIL SIG-PROMPT-001" in done.stdout
    assert "no hook or memory request was accepted, see above" in done.stdout
    assert "note: prompt: threw, in " in done.stdout
    assert "no request was recorded" not in done.stdout
    assert "report: packages/connector/signet-report/report.html, " in done.stdout
    assert not (folder / "signet-baseline.json").exists()


@pytest.mark.usefixtures("few_scripted")
def test_a_connector_that_throws_before_it_calls_anything_is_quoted(tmp_path: Path, invoke: Invoke) -> None:
    """Without a request nothing was tested: init shows the connector's error as the reason."""
    (tmp_path / "pyproject.toml").write_text(MANIFESTS["pyproject.toml"][0])
    assert invoke("init", "--no-run").exit_code == 0
    driver = tmp_path / "conformance" / "driver.py"
    driver.write_text(driver.read_text().replace('    return ""\n', '    return {}["SIGNET_URL"]\n'))
    done = invoke("init", "--scenarios", "0")
    assert done.exit_code == 3, done.output
    assert "note: prompt: threw" in done.stdout
    assert "KeyError: 'SIGNET_URL' at conformance/driver.py:" in done.stdout


FURTHER_STEPS = {
    "pyproject.toml": (
        sys.executable,
        'HANDLERS = {"start": start, "prompt": prompt, "end": end}',
        """HANDLERS = {"start": start, "tool": lambda session, step: f"ran {step['tool']}"}
HANDLERS |= {"pre_compaction": lambda session, step: (print("Bearer t-1"), session.update(key="before"))}
HANDLERS |= {"compaction_complete": lambda session, step: session.update(key=session["key"] + step["summary"])}""",
    ),
    "package.json": (
        "node",
        "const HANDLERS = { start, prompt, end };",
        """const HANDLERS = { start, tool: (session, step) => `ran ${step.tool}` };
HANDLERS.pre_compaction = (session) => { console.log("Bearer t-1"); session.key = "before"; };
HANDLERS.compaction_complete = (session, step) => { session.key += step.summary; };""",
    ),
}
"""What runs the driver, its table of functions, and one with more of them."""


@pytest.mark.parametrize("manifest", FURTHER_STEPS)
def test_driver_performs_each_step_that_its_table_names(tmp_path: Path, invoke: Invoke, manifest: str) -> None:
    """Each named function is a listed step and is performed; a compaction needs both of its functions."""
    program, table, more = FURTHER_STEPS[manifest]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on PATH")
    (tmp_path / manifest).write_text(MANIFESTS[manifest][0])
    assert invoke("init", "--no-run").exit_code == 0
    driver = tmp_path / MANIFESTS[manifest][1]
    assert table in driver.read_text()
    driver.write_text(driver.read_text().replace(table, more))
    steps = [
        {"step": "start"},
        {"step": "tool", "tool": "t"},
        {"step": "compact", "summary": " after"},
        {"step": "end"},
    ]
    asked = [{"op": "hello"}, *({"op": "step", "step": {"session": "s1", **step}} for step in steps), {"op": "exit"}]
    lines = "".join(json.dumps({"id": number, **request}) + "\n" for number, request in enumerate(asked))
    done = subprocess.run([program, driver], input=lines, capture_output=True, text=True, check=True, timeout=60)
    hello, _, tool, compaction, skipped, _ = (json.loads(line)["result"] for line in done.stdout.splitlines())
    assert hello["steps"] == ["start", "tool", "pre_compaction", "compaction_complete", "compact"]
    assert tool["content"] == {"text": "ran t"}
    assert compaction["key"] == "before after"
    assert compaction["printed"] == "Bearer t-1\n"
    assert skipped == {"skipped": "the driver has no function for end"}


def test_a_driver_without_an_answer_is_missing_for_the_doctor(tmp_path: Path, process: Process) -> None:
    """Its other output is shown, and the exit status is that of something missing."""
    settings = '[targets.mute]\ncommand = ["{python}", "-c", "print(\'hello there\')"]\n'
    (tmp_path / "signet-conformance.toml").write_text(settings)
    seen = process("targets", "--doctor", "mute")
    assert seen.returncode == 2
    assert "missing" in seen.stdout
    assert "hello there" in seen.stdout


@pytest.mark.parametrize("place", ["asked for", "installed above"])
def test_the_package_for_npm_makes_the_driver_a_few_lines(tmp_path: Path, invoke: Invoke, place: str) -> None:
    """A repository with the package gets a call of createDriver, still with five places to fill in."""
    asked = {"devDependencies": {"signet-conformance": "0.1.0"}} if place == "asked for" else {}
    (tmp_path / "package.json").write_text(json.dumps({"name": "acme-memory", **asked}))
    if not asked:
        installed = tmp_path / "node_modules" / "signet-conformance"
        installed.mkdir(parents=True)
        (installed / "package.json").write_text("{}")
    assert invoke("init", "--no-run").exit_code == 0
    driver = (tmp_path / "conformance" / "driver.mjs").read_text()
    assert 'import { createDriver } from "signet-conformance";' in driver
    assert driver.count("FILL IN ") == 5
    assert len(driver.splitlines()) < 20
    assert targets.load("acme-memory", tmp_path).command[0] == "node"


@pytest.mark.usefixtures("few_scripted")
def test_a_driver_that_cannot_be_started_is_not_said_to_answer(tmp_path: Path, invoke: Invoke) -> None:
    """The reason is shown, no place to fill in is mentioned, and the lane is said to be red."""
    (tmp_path / "pyproject.toml").write_text(MANIFESTS["pyproject.toml"][0])
    assert invoke("init", "--no-run").exit_code == 0
    settings = tmp_path / "signet-conformance.toml"
    settings.write_text(settings.read_text().replace('"{root}/conformance/driver.py"', '"-c", "exit(7)"'))
    done = invoke("init")
    assert done.exit_code == 3, done.output
    assert "ended with status 7" in done.stderr
    assert "the lane is still red (exit 3), see above" in done.stdout
    assert "FILL IN" not in done.stdout
