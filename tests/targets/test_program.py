"""What the registry's client is asked for when a program is installed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from signet_conformance.children.watchdog import WATCHDOG_VARIABLE
from signet_conformance.targets.program import PLACE_VARIABLE, HostProgram, find_program_profile, install
from tests.support.processes import PATIENCE_S, Watched, descendants, wait_until

CLIENT = """#!/bin/sh
if [ "$1" = view ]; then echo '{{"version": "9.9.10", "engines": {{"node": ">=99"}}}}'; exit; fi
case " $* " in *" {refused} "*) echo "no such release" >&2; exit 1 ;; esac
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


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., HostProgram]:
    """Puts a client of the registry before others; the program of the name that it installs."""

    def make(name: str, release: str | None, refused: str = "nothing") -> HostProgram:
        profile = find_program_profile(name).profile
        client = tmp_path / "npm"
        text = CLIENT.format(folder=tmp_path, package=profile.package, release=release or "9.9.9", refused=refused)
        client.write_text(text)
        client.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "programs"))
        for variable in ("HOME", "TMPDIR"):
            (tmp_path / variable).mkdir()
            monkeypatch.setenv(variable, str(tmp_path / variable))
        return find_program_profile(name, release)

    return make


@pytest.mark.parametrize(
    ("name", "release", "asked"),
    [
        ("openclaw", None, "openclaw@latest"),
        ("openclaw", "2026.6.1", "openclaw@2026.6.1"),
        ("claude-code", None, "@anthropic-ai/claude-code@latest"),
        ("pi", None, "@mariozechner/pi-coding-agent"),
    ],
)
def test_only_a_program_that_our_node_runs_is_chosen_by_it(
    tmp_path: Path, client: Callable[..., HostProgram], name: str, release: str | None, asked: str
) -> None:
    """Of others the newest release is asked for by name; npm would take an old one that its own node could run."""
    made = install(client(name, release))
    assert made.release == (release or "9.9.9")
    assert asked in (tmp_path / "asked").read_text().split()
    # What its package would do at the first start is done: several starts at once would be in each other's way.
    assert (tmp_path / "finished").exists() is (name in ("openclaw", "claude-code"))
    # Whatever it writes down for its user meanwhile, it does not write into a home that is somebody's.
    assert [*(tmp_path / "HOME").iterdir(), *(tmp_path / "TMPDIR").iterdir()] == []
    assert not [*made.folder.glob(".home-*")]


def test_a_release_that_npm_chose_for_its_node_is_told(client: Callable[..., HostProgram]) -> None:
    """A newer one may be what people run: the run says that there is one, and what it asks for."""
    note = install(client("pi", None)).note
    assert note == (
        "npm chose @mariozechner/pi-coding-agent 9.9.9 for the node of this machine;"
        " its newest is 9.9.10, which needs node >=99"
    )


def test_a_release_that_was_asked_for_needs_no_word(client: Callable[..., HostProgram]) -> None:
    """The user chose it."""
    assert install(client("pi", "9.9.9")).note == ""


def test_a_release_in_place_of_one_that_cannot_be_installed_is_told(client: Callable[..., HostProgram]) -> None:
    """The reason stands beside the release that is driven."""
    package = "@anthropic-ai/claude-code"
    note = install(client("claude-code", None, refused=f"{package}@latest")).note
    reason = "others could not be installed: the newest: npm ended with 1: no such"
    assert note.startswith(f"{package} 9.9.9 is driven, since {reason}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_installation_that_is_cut_off_leaves_neither_its_client_nor_half_a_program(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Whichever signal ends the run that installs."""
    client = tmp_path / "npm"
    client.write_text(STUCK.format(folder=tmp_path))
    client.chmod(0o755)
    programs = tmp_path / "programs"
    environment = {name: value for name, value in os.environ.items() if name != WATCHDOG_VARIABLE}
    environment |= {PLACE_VARIABLE: str(programs), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    code = "from signet_conformance.targets import program\n"
    code += "program.install(program.find_program_profile('pi'))"
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
