"""Installs stand-ins for the programs that people run, and writes down the targets that the kit drives in them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from signet_conformance.targets.program import INSTALLED

TESTS = Path(__file__).parents[1] / "drivers"
STAND_IN = TESTS / "real" / "stand_in.py"
FIXTURES = TESTS / "fixtures"
PROGRAMS = {
    "claude-code": ("claude", "node_modules/.bin/claude"),
    "codex": ("codex", "node_modules/.bin/codex"),
    "hermes-agent": ("hermes", "venv/bin/python"),
    "opencode": ("opencode", "node_modules/.bin/opencode"),
    "pi": ("pi", "node_modules/.bin/node"),
}
"""Each program, with its name among the stand-ins and the file that is launched.

OpenClaw has a stand-in of its own; oh-my-pi is pi to its driver.
"""


def install_stand_in(name: str, place: Path, release: str = "0.0.1") -> None:
    """Make the stand-in what the kit finds as the program's installation, where programs are installed at `place`."""
    short, file = PROGRAMS[name]
    installation = place / name / release
    program = installation / file
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {STAND_IN} {short} "$@"\n')
    program.chmod(0o755)
    (installation / INSTALLED).touch()


def write_target(name: str, folder: Path, mode: str) -> None:
    """Write the settings of a target in a folder: a small connector for the program, which behaves as `mode` says."""
    module = FIXTURES / ("real_installer.mjs" if name in ("claude-code", "codex", "hermes-agent") else "tiny.mjs")
    if name == "hermes-agent":
        place = folder / "integrations" / name / "connector" / "dist" / "index.js"
        place.parent.mkdir(parents=True)
        shutil.copy(module, place.with_suffix(".mjs"))
        place.write_text('export * from "./index.mjs";\n')
        module = FIXTURES / "hermes_conforming" / "__init__.py"
    (folder / "signet-conformance.toml").write_text(
        f'[targets.{name}]\nmodule = "{module}"\nenv = {{STAND_IN = "{mode}"}}\n'
    )
    # The settings of no folder above are read.
    (folder / ".git").mkdir()
