"""Build the wheel, compare its contents with the sources, and test it in an environment without the sources.

The tool makes a new environment for the wheel. With --here it uses its own environment, which needs `build`,
`hatchling`, `pytest-xdist` and the dependencies of the wheel; then only the wheel is installed. The whole suite runs
against the sources; the tests in SMOKE are those that fail first when a file is not packed or not registered. The exit
status is that of the first step that fails.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "signet_conformance": ROOT / "conformance" / "signet_conformance",
    "signet_recording_proxy": ROOT / "recording_proxy" / "signet_recording_proxy",
    "signet_reference_harness": ROOT / "reference_harness" / "signet_reference_harness",
}
SCHEMAS = "signet_conformance/_schemas"
SMOKE = (
    "tests/rules/test_recordings.py",  # reads the requirements; every rule judges
    "tests/pytest_plugin/test_plugin.py",  # pytest finds the plugin by its entry point
    "tests/cli/test_commands.py",  # the command exists with all its subcommands
    "tests/cli/test_targets.py",  # reads profiles and faces
    "tests/reports/test_page.py",  # the page has its style and its script
    "tests/reference_harness/llm_server/test_serving.py::test_it_ends_when_it_is_told_to",  # the scripted model starts
    "tests/selftest/test_command.py",  # daemon, recorder and reference harness start
)


def main() -> int:
    """Build the wheel, compare its contents, install it, and return the exit status of the smoke tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true", help="build and install in this environment, not in a new one")
    here = parser.parse_args().here
    with tempfile.TemporaryDirectory(prefix="signet-wheel-") as name:
        folder = Path(name)
        build = [sys.executable, "-m", "build", "-q", "--outdir", str(folder / "dist")]
        subprocess.run([*build, *(["--no-isolation"] if here else []), str(ROOT)], check=True)
        (wheel,) = (folder / "dist").glob("*.whl")
        if problems := list(inspect(wheel)):
            print("\n".join(f"{wheel.name}: {problem}" for problem in problems), file=sys.stderr)
            return 1
        if here:
            python = Path(sys.executable)
            subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel], check=True)
        else:
            venv.create(folder / "venv", with_pip=True)
            python = folder / "venv" / "bin" / "python"
            subprocess.run([python, "-m", "pip", "install", "-q", wheel, "pytest-xdist"], check=True)
        return try_installed(python, folder)


def inspect(wheel: Path) -> Iterator[str]:
    """Yield each file of our packages and of schemas/ that the wheel lacks, and each file that it should not hold."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = {f"{package}/{file}" for package, folder in PACKAGES.items() for file in files(folder)}
    sources |= {f"{SCHEMAS}/{file}" for file in files(ROOT / "schemas")}
    yield from (f"lacks {name}" for name in sorted(sources - packed))
    yield from (f"holds {name}, which the repository does not" for name in sorted(packed - sources))
    typed = {f"{package}/py.typed" for package in PACKAGES}
    yield from (f"lacks {name}" for name in sorted(typed - packed - sources))


def files(folder: Path) -> Iterator[str]:
    """Yield the files below a folder, without compiled Python, as paths relative to it."""
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix()


def try_installed(python: Path, folder: Path) -> int:
    """Run the smoke tests with an interpreter that has the wheel, from a folder without our sources."""
    # Tests compare these schemas with what the wheel says; the wheel reads its own copy.
    checkout = folder / "checkout"
    checkout.mkdir()
    for part in ("tests", "ci", "docs", "examples", "schemas", "pyproject.toml", "README.md"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, checkout / part)
    command = [str(python), "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *SMOKE]
    return subprocess.run(command, cwd=checkout, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
