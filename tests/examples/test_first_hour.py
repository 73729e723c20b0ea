"""The first hour of three newcomers, walked in clean folders and timed: `nox -s walks`.

One has a connector in Python, one in TypeScript, each without a driver and with one mistake; one comes to a lane
that is red since yesterday. What pip and npm take to install stands apart.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from tests.examples.test_generated_sessions import FILLED_IN, WRITTEN_BOUNDS
from tests.support.processes import ends_in_time

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PATIENCE_S = 600.0
"""For one command, on a machine that has no other work."""
MOST_S = {"first finding": 120.0, "green": 360.0, "lane by hand": 480.0}
"""What is promised on a machine that has no other work."""
FORGOTTEN = '"agentId": self.agent, '
LANE = "SIGNET_LANE_SCENARIOS=0 SIGNET_LANE_BASELINE=signet-baseline.json"

pytestmark = pytest.mark.skipif("SIGNET_WALKS" not in os.environ, reason="installs from the registries: nox -s walks")


@dataclass
class Walk:
    """A newcomer in a folder of their own with an empty home: the commands they type, and the times."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)
    _spent_s: float = 0.0

    def type(self, command: str, status: int = 0, says: Sequence[str] = (), *, counts: bool = True) -> str:
        """Run a command, which must exit with `status` and print the words `says`; return its output."""
        hidden = ("SIGNET_", "GITHUB_", "PYTEST_", "VIRTUAL_ENV", "npm_", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith(hidden)}
        path = os.pathsep.join((str(self.folder / ".venv" / "bin"), "/usr/local/bin", "/usr/bin", "/bin"))
        env = {**kept, "HOME": str(self.folder.parent), "PATH": path}
        began = time.monotonic()
        # Into files: nobody reads while it is waited for.
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as complaints:
            with subprocess.Popen(
                ["/bin/sh", "-c", command], cwd=self.folder, env=env, text=True, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=complaints,
            ) as shell:  # fmt: skip
                try:
                    ended = ends_in_time(shell, PATIENCE_S)
                finally:
                    with suppress(ProcessLookupError):
                        os.killpg(shell.pid, signal.SIGKILL)
            if counts:
                self._spent_s += time.monotonic() - began
            said, complained = (_read_whole(stream) for stream in (output, complaints))
        told = said + complained
        assert ended, f"{command} did not end within {PATIENCE_S:g} s: {told}"
        assert shell.returncode == status, f"{command}: {told}"
        for words in says:
            assert words in told, f"{command} does not say {words!r}: {told}"
        return said

    def reach(self, place: str) -> None:
        """Note the time so far, without installations."""
        self.seconds[place] = round(self._spent_s, 1)


def _read_whole(stream: IO[str]) -> str:
    stream.seek(0)
    return stream.read()


def last_command(told: str) -> str:
    """The command at the end of a printed text's last line."""
    label, _, command = told.splitlines()[-1].partition(": ")
    assert label.startswith("next")
    return command


def settle(folder: Path) -> None:
    """Write the settings that only the connector's author knows."""
    settings = folder / "signet-conformance.toml"
    text = settings.read_text().replace('harness = "acme"', 'harness = "example"')
    assert WRITTEN_BOUNDS in text
    settings.write_text(text.replace(WRITTEN_BOUNDS, "bounds_s = {start = 2.0, prompt = 1.0}\ntoken = true"))


def forgive_nothing(folder: Path) -> None:
    """Remove every entry of the baseline, as a lane demands once its failure is fixed."""
    baseline = folder / "signet-baseline.json"
    baseline.write_text(json.dumps({**json.loads(baseline.read_text()), "entries": []}))


def show(name: str, walk: Walk, capsys: pytest.CaptureFixture[str]) -> None:
    """Print the times, and compare a walk with its limits if the machine is idle."""
    with capsys.disabled():
        print(f"\n{name}:", ", ".join(f"{place} {seconds} s" for place, seconds in walk.seconds.items()))
    if os.getloadavg()[0] < 1.5 * (os.cpu_count() or 1):
        assert all(walk.seconds[place] < most for place, most in MOST_S.items() if place in walk.seconds)


def fill_in_python(folder: Path) -> None:
    """Fill in the places of the driver that `init` wrote."""
    driver = folder / "conformance" / "driver.py"
    lines = driver.read_text().splitlines()
    for line, filled_in in FILLED_IN["driver.py"].items():
        lines[lines.index(line)] = filled_in
    driver.write_text("\n".join(lines))


FIVE_LINES = {
    '// import { open, prompt, answered, close } from "../dist/index.js";': (
        'import { Connector } from "../dist/connector.js";\nconst own = new Connector(process.env);'
    ),
    "=> ({}), // FILL IN 2": "=> own.open(project), // FILL IN 2",
    '=> "", // FILL IN 3': "=> own.prompt(session, text), // FILL IN 3",
    "answered: ({ reply }, session) => {}": (
        "answered: ({ text, reply }, session) => { session.turns.push(`User: ${text}`, `Assistant: ${reply}`); }"
    ),
    "end: (step, session) => {},": "flush: () => own.flush(),\n  end: (step, session) => own.close(session),",
}
"""What stands in the driver with the package for npm, to what takes its place."""


def fill_in_typescript(folder: Path) -> None:
    """Fill in the five lines."""
    driver = folder / "conformance" / "driver.mjs"
    text = driver.read_text()
    for before, after in FIVE_LINES.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    driver.write_text(text)


@pytest.fixture(name="environment", scope="module")
def make_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the kit: the one that a variable names, or a new one for all walks in Python."""
    if (given := os.environ["SIGNET_WALKS"]) != "1":
        return Path(given).absolute()
    walk = Walk(tmp_path_factory.mktemp("installed") / "kit")
    walk.folder.mkdir()
    walk.type(f"python3 -m venv .venv && .venv/bin/pip install --quiet {shlex.quote(str(ROOT))}", counts=False)
    return walk.folder / ".venv"


@pytest.fixture(name="walk")
def make_walk(tmp_path: Path) -> Walk:
    """A newcomer in an empty repository."""
    (tmp_path / "connector").mkdir()
    walk = Walk(tmp_path / "connector")
    walk.type("git init --quiet", counts=False)
    return walk


def test_a_connector_in_python(walk: Walk, environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From an empty folder to the first finding, to green, and to a lane run by hand."""
    (walk.folder / ".venv").symlink_to(environment)
    source = (EXAMPLES / "driver-python" / "connector.py").read_text()
    assert FORGOTTEN in source
    (walk.folder / "connector.py").write_text(source.replace(FORGOTTEN, ""))
    (walk.folder / "pyproject.toml").write_text('[project]\nname = "acme"\n')
    again = last_command(walk.type("signet-conformance init --scenarios 0", 3, ["five places marked FILL IN"]))
    fill_in_python(walk.folder)
    settle(walk.folder)
    told = walk.type(again, 1, ["FAIL SIG-AGENT-002", "lets the lane pass until"])
    walk.reach("first finding")
    narrow = last_command(told)
    assert narrow == "signet-conformance run acme -k SIG-AGENT-002"
    walk.type(narrow, 1, ["expected  atlas-agent", "change    Send the configured agent"])
    (walk.folder / "connector.py").write_text(source)
    walk.type(narrow, 0, ["conforming"])
    walk.type("signet-conformance run acme --scenarios 0", 0, ["conforming"])
    walk.reach("green")
    lane = f"SIGNET_LANE_TARGET=acme {LANE} signet-conformance lane"
    walk.type(lane, 1, ["STALE SIG-AGENT-002", "remove the entry"])
    forgive_nothing(walk.folder)
    walk.type(lane, 0, ["lane: acme conforming"])
    walk.reach("lane by hand")
    show("Python", walk, capsys)


def test_a_connector_in_typescript(walk: Walk, capsys: pytest.CaptureFixture[str]) -> None:
    """The same with the package for npm, whose first run makes the kit's environment."""
    shutil.copytree(EXAMPLES / "driver-typescript" / "src", walk.folder / "src")
    (walk.folder / "src" / "driver.ts").unlink()
    shutil.copy(EXAMPLES / "driver-typescript" / "tsconfig.json", walk.folder)
    source = walk.folder / "src" / "connector.ts"
    whole = source.read_text()
    source.write_text("".join(line for line in whole.splitlines(True) if "agentId: this.#agent" not in line))
    (walk.folder / "package.json").write_text('{"name": "acme", "private": true, "type": "module"}')
    packages = f"{shlex.quote(str(ROOT / 'conformance' / 'npm'))} typescript@5 @types/node@20"
    walk.type(f"npm install --silent --no-audit --no-fund --save-dev {packages}", counts=False)
    walk.type("npx signet-conformance --version", 0, ["the first run makes", "2 of 2: kit, done in"], counts=False)
    walk.type("npx tsc")
    again = last_command(walk.type("npx signet-conformance init --scenarios 0", 3, ["five places marked FILL IN"]))
    fill_in_typescript(walk.folder)
    settle(walk.folder)
    told = walk.type(again, 1, ["FAIL SIG-AGENT-002", "lets the lane pass until"])
    walk.reach("first finding")
    narrow = last_command(told)
    assert narrow == "npx signet-conformance run acme -k SIG-AGENT-002"
    walk.type(narrow, 1, ["expected  atlas-agent", "sent by   src/connector.ts:"])
    source.write_text(whole)
    walk.type("npx tsc")
    walk.type(narrow, 0, ["conforming"])
    walk.type("npx signet-conformance run acme --scenarios 0", 0, ["conforming"])
    walk.reach("green")
    lane = f"SIGNET_LANE_TARGET=acme {LANE} npx signet-conformance lane"
    walk.type(lane, 1, ["STALE SIG-AGENT-002"])
    forgive_nothing(walk.folder)
    walk.type(lane, 0, ["lane: acme conforming"])
    walk.reach("lane by hand")
    show("TypeScript", walk, capsys)


def test_a_lane_that_is_red_since_yesterday(walk: Walk, environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A maintainer has its report, finds the cause in it, fixes it, and runs the lane by hand."""
    (walk.folder / ".venv").symlink_to(environment)
    shutil.copytree(
        EXAMPLES / "driver-python", walk.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    connector = walk.folder / "connector.py"
    whole = connector.read_text()
    lane = "SIGNET_LANE_TARGET=example-python SIGNET_LANE_SCENARIOS=0 {} signet-conformance lane"
    walk.type(lane.format("SIGNET_LANE_REPORT=before"), counts=False)
    connector.write_text(whole.replace(FORGOTTEN, ""))
    walk.type(lane.format("SIGNET_LANE_REPORT=yesterday"), 1, counts=False)
    walk.type("signet-conformance compare before yesterday", 1, ["SIG-AGENT-002", "3 new, 0 fixed"])
    walk.reach("first finding")
    connector.write_text(whole)
    walk.type("signet-conformance run example-python -k SIG-AGENT-002", 0, ["conforming"])
    walk.type("signet-conformance run example-python --scenarios 0 --report today", 0, ["conforming"])
    walk.type("signet-conformance compare yesterday today", 0, ["0 new, 3 fixed"])
    walk.reach("green")
    walk.type(lane.format(""), 0, ["lane: example-python conforming"])
    walk.reach("lane by hand")
    show("a red lane", walk, capsys)
