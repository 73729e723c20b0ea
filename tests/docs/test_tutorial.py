"""The tutorial, executed word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
MARK = "<!-- the test has the kit installed already -->"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP = "=== step "


@dataclass(frozen=True)
class Step:
    """One block of commands, and the lines of output that the page shows beneath it."""

    commands: str
    shown: tuple[str, ...] = ()


def steps() -> list[Step]:
    """The commands of the page in their order, without those of the installation."""
    text = TUTORIAL.read_text("utf-8")
    before, marked = text.split(MARK)
    assert "```" not in before
    found: list[Step] = []
    for kind, body in _FENCE.findall(marked)[1:]:
        if kind == "sh":
            found.append(Step(body))
        else:
            found[-1] = Step(found[-1].commands, tuple(filter(None, body.splitlines())))
    return found


def loose(text: str) -> str:
    """Text in which numbers, and the width of gaps, no longer count."""
    return re.sub(r"\s+", " ", re.sub(r"\d+", "0", text)).strip()


def walk(folder: Path) -> list[str]:
    """What each step says to a newcomer in an empty folder, all steps in one shell."""
    script = "".join(f"echo; echo '{_STEP}{number}'\n{step.commands}" for number, step in enumerate(steps()))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIGNET_", "GITHUB_", "PYTEST_"))}
    bin_folder = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=folder,
        env={**kept, "KIT": str(ROOT), "PATH": os.pathsep.join([bin_folder, kept.get("PATH", os.defpath)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return re.split(rf"^{_STEP}\d+\n", done.stdout, flags=re.MULTILINE)[1:]


def test_every_step_says_what_the_page_shows(tmp_path: Path) -> None:
    """Every line that the page shows beneath a block of commands is said, in that order, numbers aside."""
    said = walk(tmp_path)
    assert len(said) == len(steps())
    for step, output in zip(steps(), said, strict=True):
        rest = [loose(line) for line in output.splitlines()]
        for line in step.shown:
            wanted = loose(line)
            at = next((at for at, heard in enumerate(rest) if wanted in heard), None)
            assert at is not None, f"after {step.commands!r}, {line!r} is not said, or too early:\n{output}"
            del rest[: at + 1]


def test_the_installation_is_the_readmes() -> None:
    """The one block that is not executed makes an environment and installs the clone into it."""
    kind, body = _FENCE.findall(TUTORIAL.read_text("utf-8").split(MARK)[1])[0]
    assert kind == "sh"
    assert body.splitlines() == [
        'export KIT="$HOME/signet-conformance"',
        "python3 -m venv .venv",
        ". .venv/bin/activate",
        'pip install --quiet "$KIT"',
    ]
