"""The `schemas` folder: where it is, and its JSON files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from signet_conformance.errors import ContractError

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
