"""The frozen contract versions, and daemon versions as values that compare."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from signet_conformance.contract.folder import document, schemas_folder
from signet_conformance.errors import ContractError, printable

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


def reference_daemon(version: str) -> str:
    """The daemon version that a contract version is judged by."""
    return str(version_document(version)["daemon_versions"]["reference"])


@cache
def contract_version_of(daemon_version: str) -> str:
    """The contract version that a daemon serves: the newest one that is not newer than the daemon."""
    key = version_key(daemon_version)
    older = [version for version in contract_versions() if version_key(version) <= key]
    return older[-1] if older else contract_versions()[0]
