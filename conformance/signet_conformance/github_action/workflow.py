"""The workflow file that `init` writes, with its pinned action and the connector's folder."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from signet_conformance import __version__
from signet_conformance.errors import UsageError, install_source, printable
from signet_conformance.files import real_path
from signet_conformance.github_action.discovery import build_lines, template
from signet_conformance.github_action.inputs import FIELDS, Inputs, read_inputs, variable
from signet_conformance.outcome import known_failures

CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
PYTHON = "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0"
UPLOAD = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"


class LaneConnector(Struct, frozen=True):
    """One connector that a lane drives.

    `inputs` are input to value, each of a shape that the lane accepts; `build` are the commands that build the
    connector, in the folder `within` of the repository.
    """

    inputs: Mapping[str, str]
    build: Sequence[str] = ()
    within: str = "."


class Workflow(Struct, frozen=True):
    """The workflow of a lane: a job for each connector.

    `pin` is the kit's action, None for the kit of a package index.
    """

    driven: Sequence[LaneConnector]
    pin: str | None

    def text(self) -> str:
        """The content of the file."""
        if len(self.driven) == 1:
            (only,) = self.driven
            matrix, build, inputs = "", "\n".join(_build_steps(only)), only.inputs
        else:
            names = dict.fromkeys(name for each in self.driven for name in each.inputs)
            jobs = "\n".join(line for each in self.driven for line in _job(each, names))
            matrix = template("workflow.matrix.yml.tmpl").format(jobs=jobs)
            build = template("workflow.build.yml.tmpl").rstrip()
            inputs = {name: f"${{{{ matrix.{name} }}}}" for name in names}
        lane = "\n".join(self._lane(inputs))
        return template("workflow.yml.tmpl").format(
            checkout=CHECKOUT, python=PYTHON, matrix=matrix, build=build, lane=lane
        )

    def _lane(self, inputs: Mapping[str, str]) -> Iterator[str]:
        if self.pin is None:
            lines = "\n".join(f'          {variable(name)}: "{value}"' for name, value in inputs.items())
            index = template("workflow.index.yml.tmpl").rstrip()
            yield index.format(version=__version__, inputs=lines, upload=UPLOAD)
            return
        repository, _, commit = self.pin.partition("@")
        yield f"      - uses: {repository}/ci/action@{commit} # signet-conformance {__version__}"
        yield "        with:"
        yield from (f'          {name}: "{value}"' for name, value in inputs.items())


def _build_steps(driven: LaneConnector) -> Iterator[str]:
    if not driven.build:
        yield "      # Add the commands that build the connector here."
    for line in driven.build:
        yield f"      - run: {line}"
        if driven.within != ".":
            yield f"        working-directory: {driven.within}"


def _job(driven: LaneConnector, names: Iterable[str]) -> Iterator[str]:
    """The lines in which the job of one connector differs from the others."""
    dash = "- "
    for name in names:
        yield f'          {dash}{name}: "{driven.inputs.get(name, "")}"'
        dash = "  "
    yield f'            build-folder: "{driven.within}"'
    yield "            build: |" if driven.build else '            build: ""'
    yield from (f"              {line}" for line in driven.build)


_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}@[0-9a-f]{40}")
_ADDRESS = re.compile(r"(?:https://|ssh://git@|git@)github\.com[/:]([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?")


def checked_pin(text: str) -> str:
    """A pin as a user writes it, OWNER/REPOSITORY@COMMIT. Raises UsageError for anything else, a tag included."""
    if _PIN.fullmatch(text) is None:
        raise UsageError(
            f"{printable(text, 120)!r} is not OWNER/REPOSITORY@COMMIT with all 40 digits of the commit",
            where="--kit",
            remedy="a tag can be moved; git rev-parse HEAD in the kit's checkout prints the commit",
        )
    return text


def installed_pin() -> str | None:
    """The pin of the running kit: from the source that pip noted, or from the checkout that it was installed from.

    None if the kit came from a package index, or from a checkout without a commit or such a remote.
    """
    noted = install_source()
    address = str(noted.get("url", ""))
    if "vcs_info" in noted:
        return _pin(address, str(noted["vcs_info"].get("commit_id", "")))
    parts = urlsplit(address)
    if parts.scheme != "file" or "dir_info" not in noted:
        return None
    folder = Path(unquote(parts.path))
    return _pin(_git(folder, "config", "--get", "remote.origin.url"), _git(folder, "rev-parse", "HEAD"))


def _pin(address: str, commit: str) -> str | None:
    origin = _ADDRESS.fullmatch(address)
    pin = f"{origin[1]}@{commit}" if origin is not None else ""
    return pin if _PIN.fullmatch(pin) is not None else None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


BASELINE = "signet-baseline.json"
IGNORE = ".gitignore"
_IGNORED = (
    "signet-failures/",
    "signet-report/",
    "signet-report-*/",
    ".hypothesis/",
    known_failures.audit_path(BASELINE).name,
)
_INIT_NAMES = {
    "SIGNET_LANE_TARGET": ("--target", "call it by letters, digits, dots, dashes and underscores in the settings"),
    "SIGNET_LANE_SCENARIOS": ("--scenarios", "a whole number, such as --scenarios 200"),
    "SIGNET_LANE_WORKING_DIRECTORY": ("FOLDER", "a lane takes paths of letters, digits, dots, dashes and underscores"),
}
"""By variable of the lane: the name of that input for `init`, and the remedy for a value that the lane refuses."""


class ConnectorFolder(Struct, frozen=True):
    """The connector's folder, and the root of the repository that it is in."""

    folder: Path
    root: Path

    @classmethod
    def find(cls, path: str) -> ConnectorFolder:
        """The connector's folder at `path`. Raises UsageError when it is not a folder."""
        folder = real_path(path)
        if not folder.is_dir():
            raise UsageError("is not a folder", where=path, remedy="name the folder of the connector")
        return cls(folder, next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder))

    @property
    def directory(self) -> str:
        """The folder, from the root of the repository."""
        return self.folder.relative_to(self.root).as_posix()

    def inputs(self, target: str, scenarios: str | None) -> Inputs:
        """Return the inputs of the lane. Raises UsageError in terms of the options of `init`."""
        known = BASELINE if (self.folder / BASELINE).is_file() else ""
        values = {"target": target, "working-directory": self.directory, "scenarios": scenarios or ""}
        values |= {"baseline": known, "strict": "true"}
        variables = {field.variable: values.get(field.name, "") for field in FIELDS}
        try:
            return read_inputs({**variables, "GITHUB_WORKSPACE": str(self.root)}, self.root)
        except UsageError as failure:
            # The user of `init` has set options, not variables of the lane.
            option, remedy = _INIT_NAMES.get(str(failure.where), (failure.where, failure.remedy))
            raise UsageError(failure.message, where=option, remedy=remedy) from None

    def driven(self, target: str, scenarios: str | None) -> LaneConnector:
        """A connector of this folder, as the lane drives it."""
        # Strict, with today's warnings in the baseline, so that new warnings fail.
        inputs = {"target": target, "strict": "true"}
        if scenarios is not None:
            # The lane has to perform the sessions from which the baseline was written.
            inputs["scenarios"] = scenarios
        if (self.folder / BASELINE).is_file():
            inputs["baseline"] = BASELINE
        if self.directory != ".":
            inputs["working-directory"] = self.directory
        # A repository of many packages has one lock file, at its root.
        if of_root := build_lines(self.root):
            return LaneConnector(inputs, of_root)
        return LaneConnector(inputs, build_lines(self.folder), self.directory)

    @property
    def ignored(self) -> Sequence[str]:
        """The lines that .gitignore lacks, so that git would not ignore the files of runs."""
        try:
            present = (self.root / IGNORE).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            present = []
        known = {line.strip().strip("/") for line in present}
        return [line for line in _IGNORED if line.strip("/") not in known]
