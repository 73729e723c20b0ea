"""The `schemas` folder: where it is, its JSON files, and the frozen contract versions; daemon versions that compare."""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from signet_conformance.errors import ContractError, printable

REINSTALL = "install the kit again: pip install --force-reinstall signet-conformance"


@cache
def schemas_folder() -> Path:
    """The folder of schemas: inside the installed package, or in the source tree of an editable install."""
    package = Path(__file__).parent.parent
    for folder in (package / "_schemas", package.parent.parent / "schemas"):
        if (folder / "operations.json").is_file():
            return folder
    raise ContractError("the schemas folder is missing", where=str(package), remedy=REINSTALL)


@cache
def document(name: str) -> Any:
    """A JSON file of the schemas folder, by its relative name. Raises ContractError when it cannot be read."""
    path = schemas_folder() / name
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as failure:
        raise ContractError(f"cannot be read: {failure}", where=str(path), remedy=REINSTALL) from None


REFERENCE_DAEMON = "0.145.7"
"""The daemon that a trace without `daemon_version` is taken to have met."""

_VERSION = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")


@lru_cache(maxsize=1000)
def version_key(version: str) -> tuple[int, int, int]:
    """A daemon version as comparable numbers; `0.145` is 0.145.0. Raises ContractError for anything else."""
    match = _VERSION.match(version.strip().removeprefix("v"))
    if not match:
        raise ContractError(f"{printable(version, 40)!r} is not a daemon version", remedy="write it like 0.145.7")
    return int(match[1]), int(match[2] or 0), int(match[3] or 0)


@cache
def contract_versions() -> tuple[str, ...]:
    """The frozen contract versions, oldest first."""
    return tuple(sorted((path.stem for path in (schemas_folder() / "versions").glob("*.json")), key=version_key))


def version_document(version: str) -> Any:
    """The frozen set of a contract version. Raises ContractError naming the known ones."""
    if version not in contract_versions():
        raise ContractError(
            f"no contract version is called {printable(version, 40)!r}",
            where="--contract",
            remedy=f"one of {', '.join(contract_versions())}",
        )
    return document(f"versions/{version}.json")


def _first_daemon(version: str) -> str:
    return str(version_document(version)["daemon_versions"]["from"])


def reference_daemon(version: str) -> str:
    """The daemon version that a contract version is judged by."""
    return str(version_document(version)["daemon_versions"]["reference"])


@cache
def contract_version_of(daemon_version: str) -> str:
    """The contract version that a daemon serves: the newest one that is not newer than the daemon."""
    key = version_key(daemon_version)
    older = [version for version in contract_versions() if version_key(_first_daemon(version)) <= key]
    return older[-1] if older else contract_versions()[0]
