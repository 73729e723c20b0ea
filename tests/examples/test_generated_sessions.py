"""The examples, and what `init` writes, breach nothing in generated sessions: people copy them.

CI tries a few seeds of few sessions; `nox -s examples` tries seeds 1 to 10 of as many as a run performs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.bun import packages_beside_bun
from tests.support.drives import PLAIN

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SEEDS = range(1, 11)
IN_CI = {("driver-python", 2): 20, ("driver-javascript", 1): 8, ("init-python", 1): 8}
"""Cases, seeds and numbers of sessions. From eight on every outage is held by some.

More are for the one that is not driven through the scripted scenarios.
"""
PATIENCE_S = 600.0

# A line of the driver that `init` writes, to the line in its place, or after it, with the connector of an example.
FILLED_IN = {
    "driver.py": {
        '# sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))': (
            'sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))'
        ),
        "# from my_connector import Connector": "from connector import Connector; own = Connector()",
        '    # session["key"] = the id that the harness gives the session, if it gives one': (
            "    session.update(at=(at := own.open(step['project'])), key=at['key'])"
        ),
        '    return ""': "    return own.prompt(session['at'], step['text'])",
        '    """FILL IN 4: the model has answered step["reply"]; add it to the transcript."""': (
            "    session['at']['turns'] += [f\"User: {step['text']}\", f\"Assistant: {step['reply']}\"]"
        ),
        '    """FILL IN 5: end the session as the harness does."""': "    own.close(session['at'])",
        '    """The harness is about to quit: wait for background work of the connector, if there is any."""': (
            "    own.flush()"
        ),
    },
    "driver.mjs": {
        '// import { Connector } from "../dist/index.js";': 'import * as own from "../connector.mjs";',
        "  // session.key = the id that the harness gives the session, if it gives one": (
            "  session.at = await own.open(step.project); session.key = session.at.key;"
        ),
        '  return "";': "  return own.prompt(session.at, step.text);",
        "async function answered(session, step) {}": (
            "async function answered({ at }, step) { at.turns.push(`User: ${step.text}`, `Assistant: ${step.reply}`); }"
        ),
        "async function end(session, step) {}": "async function end(session) { await own.close(session.at); }",
        "async function flush() {}": "async function flush() { await own.flush(); }",
    },
}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of the kit in a folder."""
    return warm.finished([sys.executable, "-m", "signet_conformance.cli", *words], folder, dict(os.environ), PATIENCE_S)


def copy(name: str, folder: Path) -> None:
    """Copy an example into a folder."""
    shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def copy_typescript(name: str, folder: Path) -> None:
    """Copy the example in TypeScript, and build it."""
    packages = packages_beside_bun("typescript")
    if packages is None:
        pytest.skip("typescript is not installed beside bun")
    copy(name, folder)
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "signet-conformance").symlink_to(ROOT / "conformance" / "npm")
    # It complains of types of node that are not installed here, and builds all the same.
    compiler = packages / "typescript" / "bin" / "tsc"
    subprocess.run([shutil.which("node") or "node", compiler], cwd=folder, capture_output=True, check=False)
    assert (folder / "dist" / "driver.js").is_file()


def fill_in(name: str, folder: Path) -> None:
    """Let `init` write a driver beside the connector of an example, and fill it in."""
    copy(name, folder)
    (folder / "signet-conformance.toml").unlink()
    (driver,) = folder.glob("driver.*")
    driver.unlink()
    if driver.suffix == ".mjs":
        (folder / "package.json").write_text('{"name": "acme"}')
    else:
        (folder / "pyproject.toml").write_text('[project]\nname = "acme"\n')
    done = run(folder, "init", "--no-run")
    assert done.returncode == 0, done.stdout + done.stderr
    written = folder / "conformance" / driver.name
    lines = written.read_text().splitlines()
    for line, filled_in in FILLED_IN[driver.name].items():
        lines[lines.index(line)] = filled_in
    written.write_text("\n".join(lines))
    settings = folder / "signet-conformance.toml"
    written_settings = settings.read_text().replace('harness = "acme"', 'harness = "example"')
    assert WRITTEN_BOUNDS in written_settings
    # The connector of the example waits no longer than that.
    settings.write_text(written_settings.replace(WRITTEN_BOUNDS, "bounds_s = {start = 2.0, prompt = 1.0}"))


WRITTEN_BOUNDS = "bounds_s = {start = 5.0, prompt = 2.0}"
CASES = {
    "driver-python": (copy, "driver-python", "example-python", "python3"),
    "driver-javascript": (copy, "driver-javascript", "example-javascript", "node"),
    "driver-typescript": (copy_typescript, "driver-typescript", "example-typescript", "node"),
    "real-claude-code": (copy, "real-claude-code", "example-claude-code", "node"),
    "init-python": (fill_in, "driver-python", "acme", "python3"),
    "init-javascript": (fill_in, "driver-javascript", "acme", "node"),
}
"""What places it in a folder, from which example; its target, and the program that it needs."""
WALKED = ("driver-python",)
"""What the tutorial, which is executed by a test of its own, shows to conform in the scripted scenarios."""
TRIED = (
    [(case, seed, 60) for case in CASES for seed in SEEDS]
    if "SIGNET_EXAMPLES" in os.environ
    else [(*case, sessions) for case, sessions in IN_CI.items()]
)


@pytest.mark.parametrize(("case", "seed", "sessions"), TRIED)
def test_no_session_breaches_anything(case: str, seed: int, sessions: int, tmp_path: Path) -> None:
    """No FAIL, WARN or ERROR in the scripted scenarios and in the generated sessions of a seed."""
    place, example, target, program = CASES[case]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on PATH")
    place(example, tmp_path)
    words = [f"--seed={seed}", f"--scenarios={sessions}", "--json"]
    if case in WALKED:
        (tmp_path / "plain.json").write_text(json.dumps(PLAIN))
        words += ["--scenario", "plain.json"]
    done = run(tmp_path, "run", target, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = {name: judgement["verdict"] for name, judgement in json.loads(done.stdout)["together"].items()}
    assert {name: verdict for name, verdict in verdicts.items() if verdict in ("FAIL", "WARN", "ERROR")} == {}


def test_an_installer_keeps_what_others_wrote(tmp_path: Path) -> None:
    """The example for Claude Code is installed twice beside the settings of another tool."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on PATH")
    other = {"hooks": [{"type": "command", "command": "acme-notes begin"}]}
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"model": "opus", "hooks": {"SessionStart": [other], "PostToolUse": [other]}}))
    module = (EXAMPLES / "real-claude-code" / "connector.mjs").as_uri()
    twice = f"const {{ connector }} = await import('{module}'); await connector.install(); await connector.install();"
    subprocess.run([node, "--input-type=module", "-e", twice], env={**os.environ, "HOME": str(tmp_path)}, check=True)
    written = json.loads(settings.read_text())
    assert (written["model"], written["hooks"]["PostToolUse"], written["hooks"]["SessionStart"][0]) == (
        "opus", [other], other,
    )  # fmt: skip
    assert [len(written["hooks"][event]) for event in ("SessionStart", "UserPromptSubmit", "SessionEnd")] == [2, 1, 1]
