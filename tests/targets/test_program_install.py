"""What the registry's client is asked for when a program is installed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.children.watchdog import VARIABLE
from signet_conformance.targets.program import PLACE_VARIABLE, find_program_profile
from signet_conformance.targets.program_install import install
from tests.support.processes import PATIENCE_S, Watched, descendants, wait_until

CLIENT = """#!/bin/sh
echo "$@" > "{folder}/asked"
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/{package}"
echo '{{"version": "{release}"}}' > "$2/node_modules/{package}/package.json"
node="$2/node_modules/.bin/node"
mkdir -p "$2/node_modules/.bin"
printf '#!/bin/sh\\necho "$@" > "{folder}/finished"; touch "$HOME/.touched" "$TMPDIR/touched"\\n' > "$node"
chmod +x "$node"
"""

STUCK = """#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/half"
touch "{folder}/stuck"
while :; do sleep 1; done
"""


@pytest.mark.parametrize(
    ("name", "release", "asked"),
    [("openclaw", None, "openclaw@latest"), ("openclaw", "2026.6.1", "openclaw@2026.6.1"), ("pi", None, None)],
)
def test_a_program_with_a_node_of_its_own_is_not_chosen_by_that_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, release: str | None, asked: str | None
) -> None:
    """Its newest release is asked for by name; where this machine's node runs it, npm picks one that it can run."""
    profile = find_program_profile(name).profile
    client = tmp_path / "npm"
    client.write_text(CLIENT.format(folder=tmp_path, package=profile.package, release=release or "9.9.9"))
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "programs"))
    for variable in ("HOME", "TMPDIR"):
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    made = install(find_program_profile(name, release))
    assert made.release == (release or "9.9.9")
    assert (asked or profile.package) in (tmp_path / "asked").read_text().split()
    # What its package would do at the first start is done: several starts at once would be in each other's way.
    assert (tmp_path / "finished").exists() is (name == "openclaw")
    # Whatever it writes down for its user meanwhile, it does not write into a home that is somebody's.
    assert [*(tmp_path / "HOME").iterdir(), *(tmp_path / "TMPDIR").iterdir()] == []
    assert not [*made.folder.glob(".home-*")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_installation_that_is_cut_off_leaves_neither_its_client_nor_half_a_program(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Whichever signal ends the run that installs."""
    client = tmp_path / "npm"
    client.write_text(STUCK.format(folder=tmp_path))
    client.chmod(0o755)
    programs = tmp_path / "programs"
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {PLACE_VARIABLE: str(programs), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    code = "from signet_conformance.targets import program, program_install\n"
    code += "program_install.install(program.find_program_profile('pi'))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, process_group=0, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process, Watched([process.pid]):
        wait_until((tmp_path / "stuck").exists, "the client", process)
        with Watched(descendants(process.pid)) as watched:
            assert list((programs / "pi").iterdir()) != []
            process.send_signal(number)
            assert process.wait(PATIENCE_S) != 0
            assert watched.left() == []
    assert list((programs / "pi").iterdir()) == []
