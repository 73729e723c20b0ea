"""Programs that people run: profiles, installed releases, and how a release is installed."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from signet_conformance.children import watchdog
from signet_conformance.children.temporary import OWNER, temporary_folder
from signet_conformance.errors import NothingTestedError, TargetError, printable
from signet_conformance.files import read_json
from signet_conformance.files.json_values import fill_in
from signet_conformance.targets.releases import numbers

if TYPE_CHECKING:
    from signet_conformance.targets.program_document import ProgramDocument

FOLDER = Path(__file__).parent / "programs"
PLACE_VARIABLE = "SIGNET_CONFORMANCE_PROGRAMS"
INSTALLED = "installed"
"""The file that marks a folder whose program was installed completely."""


@dataclass(frozen=True, slots=True)
class HostProgram:
    """A program and the wanted release; None means the newest installed one."""

    profile: ProgramDocument
    path: Path
    release: str | None = None

    @property
    def name(self) -> str:
        """The program's name, which is also the harness of its faces."""
        return self.profile.name

    def installed(self) -> Mapping[str, Path]:
        """Map the releases installed for the kit, newest first, to their folders."""
        folder = programs_folder() / self.name
        complete = [path for path in folder.iterdir() if (path / INSTALLED).exists()] if folder.is_dir() else []
        return {path.name: path for path in sorted(complete, key=lambda path: numbers(path.name), reverse=True)}

    def find_installation(self, target: str) -> Installation:
        """Find the installation for driving `target`. Raises NothingTestedError with the command that installs it."""
        releases = self.installed()
        release = self.release or next(iter(releases), None)
        if release is None or release not in releases:
            which = self.name if self.release is None else f"{self.name} {printable(self.release, 40)}"
            raise NothingTestedError(
                f"NOT-APPLICABLE: {which} is not installed"
                + (f"; installed: {', '.join(releases)}" if releases else ""),
                where="--harness real",
                remedy=f"install it: {self._install_line(target)}",
            )
        return Installation(self, release, releases[release])

    def _install_line(self, target: str) -> str:
        version = "" if self.release is None else f" --harness-version {self.release}"
        return f"signet-conformance run {printable(target, 60)} --harness real --install-harness{version}"


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed release of a program in its own folder. `note` says why it is not the newest."""

    program: HostProgram
    release: str
    folder: Path
    note: str = ""

    @property
    def packages(self) -> Path:
        """The folder of its packages."""
        return self.folder / ("node_modules" if self.program.profile.registry == "npm" else "venv")

    @property
    def programs(self) -> Path:
        """The folder of its packages' programs."""
        return self.packages / (".bin" if self.program.profile.registry == "npm" else "bin")

    def _runtime(self, name: str) -> str:
        """The runtime installed with the program, or else that of this machine."""
        own = self.programs / name
        return str(own) if own.exists() else shutil.which(name) or name

    def placeholders(self) -> Mapping[str, str]:
        """The values of the profile's placeholders that depend on the installation."""
        return {
            **{name: self._runtime(name) for name in ("node", "bun")},
            "python": sys.executable,
            "packages": str(self.packages),
            "bin": str(self.programs),
        }


def programs_folder() -> Path:
    """The folder in which programs are installed for the kit."""
    given = os.environ.get(PLACE_VARIABLE)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(cache) / "signet-conformance" / "programs"


def program_names() -> Sequence[str]:
    """List the programs that the kit can launch, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def find_program_profile(name: str, release: str | None = None) -> HostProgram:
    """Find the profile of a program. Raises TargetError if the kit has no such profile."""
    from signet_conformance.files.documents import demand
    from signet_conformance.targets.program_document import ProgramDocument

    if name not in program_names():
        raise TargetError(
            f"the kit cannot start {printable(name, 60)!r}",
            where="--harness real",
            remedy=f"it can start {', '.join(program_names())}; leave --harness out to play the others",
        )
    path = FOLDER / f"{name}.json"
    data = read_json(path, "report it: the profile comes with the kit", error=TargetError)
    return HostProgram(demand(ProgramDocument, data, str(path), error=TargetError), path, release)


_TIMEOUT_S = 900.0
_LAST = 600


def install(program: HostProgram) -> Installation:
    """Install the wanted release of a program if it is missing, by default the newest.

    If the newest cannot be installed, try the releases with which the kit was checked, newest first. Package scripts do
    not run, except for those in the profile. Raises NothingTestedError with the registry's messages.
    """
    present = program.installed()
    if program.release is not None and program.release in present:
        return Installation(program, program.release, present[program.release])
    wanted: Sequence[str | None] = (program.release,)
    if program.release is None:
        wanted = (None, *(row.release for row in program.profile.checked))
    refusals = []
    for release in wanted:
        try:
            installation = _install_release(program, release)
        except CommandError as error:
            refusals.append(f"{release or 'the newest'}: {error}")
            continue
        if program.release is None:
            installation = dataclasses.replace(installation, note=_why_not_newest(installation, refusals))
        return installation
    raise NothingTestedError(
        f"NOT-APPLICABLE: {program.name} cannot be installed: {printable('; '.join(refusals), _LAST)}",
        where="--install-harness",
        remedy=f"install a release that this machine can run, with --harness-version; tried: {program.profile.package}",
    )


def _why_not_newest(installation: Installation, refusals: Sequence[str]) -> str:
    """Why an older release than the newest was installed; empty if it is the newest, or if that is not known."""
    package = installation.program.profile.package
    if refusals:
        reasons = printable("; ".join(refusals), _LAST)
        return f"{package} {installation.release} is driven, since others could not be installed: {reasons}"
    if installation.program.profile.registry != "npm":
        return ""
    question = ["npm", "view", f"{package}@latest", "version", "engines", "--json"]
    try:
        answer = json.loads(run_command(question, installation.folder))
        newest, needs = str(answer["version"]), str((answer.get("engines") or {}).get("node", ""))
    except (CommandError, ValueError, LookupError, TypeError, AttributeError):
        return ""
    if numbers(newest) <= numbers(installation.release):
        return ""
    wanted = f", which needs node {needs}" if needs else ""
    return f"npm chose {package} {installation.release} for the node of this machine; its newest is {newest}{wanted}"


class CommandError(Exception):
    """A command failed; the message is its last output."""


def _install_release(program: HostProgram, release: str | None) -> Installation:
    folder = programs_folder() / program.name
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_folder(".installing-", folder) as staging:
        installation = Installation(program, release or "", staging)
        if program.profile.registry == "npm":
            _install_npm(installation)
        else:
            _install_pypi(installation)
        version = _version(installation)
        if program.profile.after_install:
            _finish(installation)
        place = folder / version
        if (place / INSTALLED).exists():
            # Another run may be driving it.
            return Installation(program, version, place)
        shutil.rmtree(place, ignore_errors=True)
        staging.rename(place)
        (place / OWNER).unlink(missing_ok=True)
        (place / INSTALLED).touch()
        return Installation(program, version, place)


def _install_npm(installation: Installation) -> None:
    profile = installation.program.profile
    # Without a version, npm chooses a release that its own node can run: needed if that node will run the program.
    runs_in_ours = "{node}" in profile.command and profile.node is None
    release = installation.release or (None if runs_in_ours else "latest")
    package = profile.package + (f"@{release}" if release else "")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(installation.folder)]
    node = () if profile.node is None else (f"{_node_package()}@{profile.node}",)
    run_command(["npm", "install", *options, package, *profile.beside, *node], installation.folder)


def _node_package() -> str:
    """The npm package of node for this machine."""
    system = platform.system().lower()
    machine = platform.machine().lower()
    processor = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)
    return "-".join(("node-bin" if (system, processor) == ("darwin", "arm64") else "node", system, processor))


def _install_pypi(installation: Installation) -> None:
    profile = installation.program.profile
    package = profile.package + (f"=={installation.release}" if installation.release else "")
    # The folder is renamed later, which breaks the environment's scripts: profiles start the program by python -m.
    run_command([sys.executable, "-m", "venv", str(installation.folder / "venv")], installation.folder)
    pip = [str(installation.folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    run_command([*pip, package, *profile.beside], installation.folder)


def _version(installation: Installation) -> str:
    profile = installation.program.profile
    if profile.registry == "npm":
        package = json.loads((installation.packages / profile.package / "package.json").read_bytes())
        return str(package["version"])
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    python = str(installation.folder / "venv" / "bin" / "python")
    return run_command([python, "-c", code, profile.package], installation.folder).strip()


def _finish(installation: Installation) -> None:
    """Run the program's own set-up. It may write into a home, so it gets one that is removed afterwards."""
    with temporary_folder(".home-", installation.folder) as home:
        npm = {"npm_config_userconfig": str(Path.home() / ".npmrc"), **os.environ}
        env = {name: value for name, value in npm.items() if not name.startswith("XDG_")}
        env |= {"HOME": str(home), "TMPDIR": str(home)}
        for words in installation.program.profile.after_install:
            run_command(fill_in(words, installation.placeholders()), installation.folder, env)


def run_command(
    command: Sequence[str],
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> str:
    """Return the output of a command of a registry's client, or of an installation. Raises CommandError."""
    try:
        done = subprocess.run(
            [*command], cwd=folder, env=watchdog.watched_environment(env), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False,
        )  # fmt: skip
    except OSError as failure:
        raise CommandError(f"{command[0]} cannot be started: {failure.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"{command[0]} did not end within {timeout_s:g} s") from None
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise CommandError(f"{Path(command[0]).name} ended with {done.returncode}: {' '.join(lines[:4])}")
    return done.stdout
