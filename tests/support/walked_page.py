"""A page of the documentation, executed word for word."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ends_in_time

ROOT = Path(__file__).parents[2]
MARK = "<!-- the test has the kit installed already -->"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP = "=== step at "
_TELL_TIME = f'_status=$?; echo; echo "{_STEP}$(date +%s) $_status"\n'
PATIENCE_S = 300.0
INSTALLING_S = 600.0
"""What a page may take that begins with its installation, on a machine that has no other work."""


@dataclass(frozen=True)
class Step:
    """One block of commands, and the lines of output that the page shows beneath it."""

    commands: str
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Walked:
    """What each step of a page said, its exit status, and when it had ended, in whole seconds after the page began."""

    installing: str
    said: list[str]
    statuses: list[int]
    ended_s: list[int]

    @classmethod
    def read(cls, text: str) -> Walked:
        """What a script said that told the time at its beginning, before each step, and after the last."""
        _, *told = re.split(rf"^{_STEP}(\d+) (\d+)\n", text, flags=re.MULTILINE)
        at, statuses, said = [int(each) for each in told[::3]], [int(each) for each in told[1::3]], told[2::3]
        return cls(said[0], said[1:-1], statuses[2:], [each - at[0] for each in at[2:]])


@dataclass(frozen=True)
class Page:
    """A page whose first block of commands installs the kit; up to the heading `until`, the others are executed."""

    path: Path
    until: str | None = None

    @property
    def _blocks(self) -> list[tuple[str, str]]:
        text = self.path.read_text("utf-8")
        before, marked = text.split(MARK)
        assert "```" not in before
        if self.until is not None:
            assert self.until in marked
            marked = marked.partition(self.until)[0]
        return _FENCE.findall(marked)

    @property
    def installation(self) -> list[str]:
        """The lines of the one block that is not executed."""
        kind, body = self._blocks[0]
        assert kind == "sh"
        return body.splitlines()

    @property
    def steps(self) -> list[Step]:
        """The commands of the page in their order, without those of the installation."""
        steps: list[Step] = []
        for kind, body in self._blocks[1:]:
            if kind == "sh":
                steps.append(Step(body))
            else:
                steps[-1] = Step(steps[-1].commands, tuple(filter(None, body.splitlines())))
        return steps

    def walk(self, folder: Path, home: Path | None = None) -> Walked:
        """What each step says to a newcomer in an empty folder, all steps in one shell.

        With an empty `home` the page is begun with its installation; without one the kit is there already.
        """
        script = "".join(f"{_TELL_TIME}{step.commands}" for step in self.steps) + _TELL_TIME
        # A newcomer reads at a machine of his own: nothing of a CI system's, where a lane refuses an earlier report.
        hidden = ("SIGNET_", "GITHUB_", "PYTEST_", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith(hidden)}
        bin_folder = str(Path(sys.executable).parent)
        places = [place for place in kept.get("PATH", os.defpath).split(os.pathsep) if place != bin_folder]
        if home is None:
            places.insert(0, bin_folder)
        else:
            # The clone is this one, wherever the page supposes it.
            lines = [line for line in self.installation if not line.startswith("export KIT=")]
            script = "\n".join(["set -e", *lines, "set +e", script])
            kept["HOME"] = str(home)
        script = _TELL_TIME + script
        patience_s = PATIENCE_S if home is None else INSTALLING_S
        # Into a file: nothing that outlives the shell holds up the reading of what was said.
        with tempfile.TemporaryFile("w+") as said:
            with subprocess.Popen(
                ["/bin/sh", "-c", script],
                cwd=folder,
                env={**kept, "KIT": str(ROOT), "PATH": os.pathsep.join(places)},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as shell:
                try:
                    ended = ends_in_time(shell, patience_s)
                finally:
                    # What a page starts in the background ends with it, even where the page broke off.
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(shell.pid, signal.SIGKILL)
            said.seek(0)
            text = said.read()
        assert ended, f"the page did not end within {patience_s:g} s; it said:\n{text}"
        return Walked.read(text)

    def check(self, folder: Path, home: Path | None = None) -> Walked:
        """Fail unless every line that the page shows beneath a block is said, in that order, as `says` has it."""
        walked = self.walk(folder, home)
        assert len(walked.said) == len(self.steps), [walked.installing, *walked.said]
        for step, output in zip(self.steps, walked.said, strict=True):
            rest = output.splitlines()
            for line in step.shown:
                at = next((at for at, heard in enumerate(rest) if says(heard, line)), None)
                assert at is not None, f"after {step.commands!r}, {line!r} is not said, or too early:\n{output}"
                del rest[: at + 1]
        return walked

    def first_that_shows(self, text: str) -> int:
        """The number of the first step beneath which the page shows a line with this text."""
        return next(number for number, step in enumerate(self.steps) if any(text in line for line in step.shown))


_NUMBER = re.compile(r"\d+")
_COUNT = re.compile(r"(?<![\w.:#-])\d{1,3}(?![\w.:-]| ?(?:ms|s|MB)\b)")
"""A number that counts something: no part of a name, a date, a version or a time."""


def says(heard: str, shown: str) -> bool:
    """Whether a line says what a page shows: any number for a number, and for a count the same count, or its neighbour.

    Which of two a count is may hang on what else runs: SIG-LOAD-003 is not decided while another run holds the port.
    The width of gaps does not matter.
    """
    loose = r"\s+".join(_NUMBER.sub(r"(\\d+)", re.escape(word)) for word in shown.split())
    counted = {found.span() for found in _COUNT.finditer(shown)}
    figures = [(int(found[0]), found.span() in counted) for found in _NUMBER.finditer(shown)]
    return any(
        all(
            not counts or abs(int(said) - figure) <= 1
            for said, (figure, counts) in zip(each.groups(), figures, strict=True)
        )
        for each in re.finditer(rf"(?<!\d){loose}(?!\d)", heard)
    )
