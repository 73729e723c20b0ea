"""npm packages that CI installs beside bun, for tests that need one without a network."""

from __future__ import annotations

import shutil
from pathlib import Path


def axe() -> Path | None:
    """The script of axe-core, where it lies beside bun."""
    packages = packages_beside_bun("axe-core")
    return None if packages is None else packages / "axe-core" / "axe.min.js"


def packages_beside_bun(*names: str) -> Path | None:
    """The folder of packages that bun lies in, where it holds all of these; None otherwise."""
    bun = shutil.which("bun")
    folder = None if bun is None else Path(bun).parent.parent
    return folder if folder is not None and all((folder / name).is_dir() for name in names) else None
