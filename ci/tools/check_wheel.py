"""Build the wheel, compare what is in it with the sources, and try it in an environment without them.

    python ci/tools/check_wheel.py [--here]

That is one of its own, or with --here the one at hand, which then needs `build`, `hatchling`, `pytest-xdist` and what
the wheel depends on, so that nothing but the wheel is installed, and nothing to build it with. The whole suite runs
against the sources; SMOKE are the tests that fail first when something is not packed or not registered. Exit status:
that of the first thing that failed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "signet_conformance": ROOT / "conformance" / "signet_conformance",
    "signet_recording_proxy": ROOT / "recording_proxy" / "signet_recording_proxy",
    "signet_reference_harness": ROOT / "reference_harness" / "signet_reference_harness",
}
SCHEMAS = "signet_conformance/_schemas"
SMOKE = (
    "tests/rules/test_recordings.py",  # the law is read, and every rule judges
    "tests/pytest_plugin/test_plugin.py",  # pytest finds the plugin by its entry point
    "tests/cli/test_commands.py",  # the command is there, and so is each of its subcommands
    "tests/cli/test_targets.py",  # profiles and faces are read
    "tests/reports/test_page.py",  # the page has its style and its script
    "tests/reference_harness/llm_server/test_serving.py::test_it_ends_when_it_is_told_to",  # the scripted model starts
    "tests/selftest/test_command.py",  # daemon, recorder and reference harness start
)


def main(words: Sequence[str]) -> int:
    """Build, inspect, install, try."""
    if unknown := [word for word in words if word != "--here"]:
        print(f"error: {unknown[0]!r} is not an option\ntry: python ci/tools/check_wheel.py [--here]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="signet-wheel-") as name:
        folder = Path(name)
        build = [sys.executable, "-m", "build", "-q", "--outdir", str(folder / "dist")]
        subprocess.run([*build, *(["--no-isolation"] if words else []), str(ROOT)], check=True)
        (wheel,) = (folder / "dist").glob("*.whl")
        if problems := list(inspect(wheel)):
            print("\n".join(f"{wheel.name}: {problem}" for problem in problems), file=sys.stderr)
            return 1
        if words:
            python = Path(sys.executable)
            subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel], check=True)
        else:
            venv.create(folder / "venv", with_pip=True)
            python = folder / "venv" / "bin" / "python"
            subprocess.run([python, "-m", "pip", "install", "-q", wheel, "pytest-xdist"], check=True)
        return try_installed(python, folder)


def inspect(wheel: Path) -> Iterator[str]:
    """What is wrong with the wheel's contents: it holds each file of our packages and of schemas/, and no other."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = {f"{package}/{file}" for package, folder in PACKAGES.items() for file in files(folder)}
    sources |= {f"{SCHEMAS}/{file}" for file in files(ROOT / "schemas")}
    yield from (f"lacks {name}" for name in sorted(sources - packed))
    yield from (f"holds {name}, which the repository does not" for name in sorted(packed - sources))
    typed = {f"{package}/py.typed" for package in PACKAGES}
    yield from (f"lacks {name}" for name in sorted(typed - packed - sources))


def files(folder: Path) -> Iterator[str]:
    """The files below a folder but for what Python compiles, as paths from there."""
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix()


def try_installed(python: Path, folder: Path) -> int:
    """Run the smoke tests with an interpreter that has the wheel, from a folder without our sources."""
    # With the schemas, which tests hold against what the wheel says; the wheel itself reads its own.
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
    sys.exit(main(sys.argv[1:]))
