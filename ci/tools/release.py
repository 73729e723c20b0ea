"""Build wheel, sdist and npm package of one version, and prove each in an empty environment.

    python ci/tools/release.py [--tag v0.1.0] [--out DIR] [--dry-run]

--tag is the tag that is released: it must be the version of all parts. --dry-run asks no registry: it builds without
isolation, packs, and looks into what was made, but installs nothing. DIR (default: dist) must not exist. Exit status:
1 when a part is of another version or does not work, else 0.
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
import tomllib
import venv
import zipfile
from collections.abc import Iterator, Sequence
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
    """Which parts name another version than the Python package, in words."""
    expected = version()
    if tag is not None and tag.removeprefix("v") != expected:
        yield f"the tag {tag} is not v{expected}"
    said = json.loads((root / "conformance" / "npm" / "package.json").read_text("utf-8"))["version"]
    if said != expected:
        yield f"conformance/npm/package.json says {said}, not {expected}"
    if not re.search(rf"(?m)^## {re.escape(expected)}\b", (root / "CHANGELOG.md").read_text("utf-8")):
        yield f"CHANGELOG.md has no section {expected}"


def build(out: Path, *, isolated: bool) -> tuple[Path, Path, Path]:
    """Wheel, sdist and npm package in a new folder. Raises CalledProcessError."""
    out.mkdir()
    words = [] if isolated else ["--no-isolation"]
    subprocess.run([sys.executable, "-m", "build", "-q", "--outdir", str(out), *words, str(ROOT)], check=True)
    npm = shutil.which("npm") or "npm"
    subprocess.run([npm, "pack", "--silent", "--pack-destination", str(out)], cwd=NPM, check=True, capture_output=True)
    (wheel,), (sdist,), (package,) = (sorted(out.glob(name)) for name in ("*.whl", "*.tar.gz", "*.tgz"))
    return wheel, sdist, package


def inspect(wheel: Path, sdist: Path, package: Path) -> Iterator[str]:
    """What is missing in what was built, or should not be there."""
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
    """Install each as a user does, in an empty environment, and let it do the main job. Raises CalledProcessError."""
    for source in (wheel, sdist):
        place = folder / source.suffix.lstrip(".")
        venv.create(place, with_pip=True)
        subprocess.run([place / "bin" / "pip", "install", "-q", source], check=True)
        subprocess.run([place / "bin" / "signet-conformance", *PROOF], check=True, cwd=folder)
        print(f"{source.name}: installs and does the main job", flush=True)
    project = folder / "project"
    project.mkdir()
    (project / "package.json").write_text('{"name": "empty", "private": true}')
    npm = shutil.which("npm") or "npm"
    subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", str(package)], cwd=project, check=True)
    own = {
        **os.environ,
        "SIGNET_CONFORMANCE_SOURCE": str(wheel),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PATH": _without_kits(os.environ.get("PATH", "")),
    }
    program = project / "node_modules" / ".bin" / "signet-conformance"
    subprocess.run([program, *PROOF], cwd=project, check=True, env=own)
    print(f"{package.name}: makes its environment from that wheel and does the main job", flush=True)


def _without_kits(path: str) -> str:
    """A search path on which no kit lies that was installed before."""
    return os.pathsep.join(each for each in path.split(os.pathsep) if not Path(each, "signet-conformance").exists())


def main(words: Sequence[str] | None = None) -> int:
    """Build, look into it, and prove it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tag")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--dry-run", action="store_true")
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
