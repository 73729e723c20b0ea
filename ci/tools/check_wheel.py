"""Build the wheel, look into it, and run the tests against it in an environment of its own.

Exit status: that of the first thing that failed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"signet_conformance", "signet_recording_proxy", "signet_reference_harness"}


def main() -> int:
    """Build, inspect, install, test."""
    with tempfile.TemporaryDirectory(prefix="signet-wheel-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)], check=True)
        (wheel,) = (folder / "dist").glob("*.whl")
        if problems := inspect(wheel):
            print("\n".join(f"{wheel.name}: {problem}" for problem in problems), file=sys.stderr)
            return 1
        return test_installed(wheel, folder)


def inspect(wheel: Path) -> list[str]:
    """What is wrong with the wheel's contents; empty when nothing is."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/", 1)[0] for name in names if ".dist-info/" not in name}
    problems = [f"holds {top}, which is no package of ours" for top in sorted(tops - PACKAGES)]
    problems += [f"lacks {package}" for package in sorted(PACKAGES - tops)]
    source = {str(p.relative_to(ROOT / "schemas")) for p in (ROOT / "schemas").rglob("*") if p.is_file()}
    packed = {n.removeprefix("signet_conformance/_schemas/") for n in names if "/_schemas/" in n}
    problems += [f"lacks the schema {name}" for name in sorted(source - packed)]
    problems += [f"lacks {p}/py.typed" for p in sorted(PACKAGES) if f"{p}/py.typed" not in names]
    return problems


def test_installed(wheel: Path, folder: Path) -> int:
    """Install the wheel into a fresh environment and run the tests from a folder without our sources."""
    environment = folder / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel), "pytest-xdist"], check=True)
    # With the schemas, which tests hold against what the wheel says; the wheel itself reads its own.
    checkout = folder / "checkout"
    checkout.mkdir()
    for part in ("tests", "ci", "docs", "examples", "schemas", "pyproject.toml", "README.md"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, checkout / part)
    command = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=checkout, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
