"""Build wheel, sdist and npm package of one version, and try each in an empty environment.

The tool performs each way of installing the kit from an empty home: wheel, sdist, uvx, pipx, npm package, action and
container. The exit status is 1 if a part has another version or does not work.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NPM = ROOT / "conformance" / "npm"
PROOF = ("run", "reference", "--scenarios", "0", "--quiet")
"""A whole scripted run, which needs no network."""


def version() -> str:
    """The version of the Python package."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def other_versions(tag: str | None, root: Path = ROOT) -> Iterator[str]:
    """Yield a message for each part whose version is not that of the Python package."""
    expected = version()
    if tag is not None and tag.removeprefix("v") != expected:
        yield f"the tag {tag} is not v{expected}"
    npm_version = json.loads((root / "conformance" / "npm" / "package.json").read_text("utf-8"))["version"]
    if npm_version != expected:
        yield f"conformance/npm/package.json says {npm_version}, not {expected}"
    if not re.search(rf"(?m)^## {re.escape(expected)}\b", (root / "CHANGELOG.md").read_text("utf-8")):
        yield f"CHANGELOG.md has no section {expected}"


def build(out: Path, *, isolated: bool) -> tuple[Path, Path, Path]:
    """Build wheel, sdist and npm package in a new folder. Raises CalledProcessError."""
    out.mkdir()
    words = [] if isolated else ["--no-isolation"]
    subprocess.run([sys.executable, "-m", "build", "-q", "--outdir", str(out), *words, str(ROOT)], check=True)
    npm = shutil.which("npm") or "npm"
    subprocess.run([npm, "pack", "--silent", "--pack-destination", str(out)], cwd=NPM, check=True, capture_output=True)
    (wheel,), (sdist,), (package,) = (sorted(out.glob(name)) for name in ("*.whl", "*.tar.gz", "*.tgz"))
    return wheel, sdist, package


def inspect(wheel: Path, sdist: Path, package: Path) -> Iterator[str]:
    """Yield a message for each file that a built package lacks or should not have."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for needed in ("signet_conformance/_schemas/operations.json", "signet_reference_harness/py.typed"):
        if needed not in names:
            yield f"{wheel.name} lacks {needed}"
    yield from (f"{wheel.name} holds {name}" for name in names if name.startswith(("tests/", "ci/")))
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    yield from (
        f"{sdist.name} lacks {needed}" for needed in ("pyproject.toml", "LICENSE", "README.md") if needed not in held
    )
    with tarfile.open(package) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("package.json", "README.md", "src/driver.mjs", "bin/signet-conformance.mjs"):
        if needed not in packed:
            yield f"{package.name} lacks {needed}"
    yield from (
        f"{package.name} holds {name}" for name in sorted(packed) if name.startswith(("test/", "node_modules/"))
    )


def prove(wheel: Path, sdist: Path, package: Path, folder: Path) -> None:
    """Perform each way of installing the kit, from an empty home to a first result, and print how long it took.

    Raises CalledProcessError if one fails. If this machine lacks the program of a way, the tool says so and skips it.
    """
    for way in _ways(wheel, sdist, package):
        place = folder / way.name
        (place / "home").mkdir(parents=True)
        (place / "package.json").write_text('{"name": "empty", "private": true}')
        if (program := shutil.which(way.program)) is None or not _works(program):
            print(f"{way.name}: not tried, {way.program} is missing or does not work here", flush=True)
            continue
        began, spent = time.monotonic(), _children_s()
        for command in way.commands:
            subprocess.run(command, check=True, cwd=place, env={**_empty_home(place / "home"), **way.environment})
        took = f"{time.monotonic() - began:.0f} s ({_children_s() - spent:.0f} s of a processor)"
        print(f"{way.name}: from an empty home to the main job in {took}", flush=True)


@dataclass(frozen=True)
class Way:
    """A way of installing the kit and getting a first result, as commands in its own folder; `program` is required."""

    name: str
    program: str
    commands: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def _ways(wheel: Path, sdist: Path, package: Path) -> Iterator[Way]:
    kit = ("signet-conformance", *PROOF)
    for name, source in (("wheel", wheel), ("sdist", sdist)):
        make, install = ("python3", "-m", "venv", "kit"), ("kit/bin/pip", "install", "-q", str(source))
        yield Way(name, "python3", (make, install, ("kit/bin/signet-conformance", *PROOF)))
    yield Way("uvx", "uvx", (("uvx", "--from", str(wheel), *kit),))
    yield Way("pipx", "pipx", (("pipx", "run", "--spec", str(wheel), *kit),))
    add = ("npm", "install", "--silent", "--no-audit", "--no-fund", str(package))
    yield Way("npm", "npm", (add, ("npx", *kit)), {"SIGNET_CONFORMANCE_SOURCE": str(wheel)})
    lane = {"SIGNET_LANE_TARGET": "reference", "SIGNET_LANE_SCENARIOS": "0"}
    yield Way("action", "sh", (("sh", str(ROOT / "ci" / "action" / "lane.sh")),), lane)
    build = ("docker", "build", "-q", "-f", str(ROOT / "ci" / "Containerfile"), "-t", "signet-conformance", str(ROOT))
    yield Way("container", "docker", (build, ("docker", "run", "--rm", *kit)))


def _children_s() -> float:
    """The processor time of all children that have ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def _works(program: str) -> bool:
    """Whether a program can be used; docker also needs a daemon."""
    if Path(program).name != "docker":
        return True
    return subprocess.run([program, "info"], capture_output=True, check=False).returncode == 0


def _empty_home(home: Path) -> dict[str, str]:
    """The environment of a user who has installed nothing yet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "VIRTUAL_ENV", "PYTHON"))}
    return {**kept, "HOME": str(home), "PATH": _without_kits(kept.get("PATH", ""))}


def _without_kits(path: str) -> str:
    """PATH without a kit that was installed before."""
    return os.pathsep.join(each for each in path.split(os.pathsep) if not Path(each, "signet-conformance").exists())


def main(words: Sequence[str] | None = None) -> int:
    """Build the packages, check their files, and try them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="the tag to release, such as v0.1.0: all parts must have this version")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="a new folder for the packages (default: dist)")
    parser.add_argument("--dry-run", action="store_true", help="build and check the packages; ask no registry")
    options = parser.parse_args(words)
    if options.out.exists():
        print(f"error: {options.out}: is there already\ntry: --out DIR, a new folder", file=sys.stderr)
        return 1
    problems = list(other_versions(options.tag))
    if not problems:
        built = build(options.out.resolve(), isolated=not options.dry_run)
        problems = list(inspect(*built))
    if problems:
        print("\n".join(f"error: {problem}" for problem in problems), file=sys.stderr)
        return 1
    print("\n".join(f"{path.name}: {path.stat().st_size:,} bytes" for path in built), flush=True)
    if not options.dry_run:
        with tempfile.TemporaryDirectory(prefix="signet-release-") as name:
            prove(*built, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
