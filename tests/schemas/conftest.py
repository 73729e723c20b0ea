"""What the tests of the schemas folder share: the folder, its documents, and a schema under two validators."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator, ValidationError

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"

Load = Callable[[str], Any]
FindOperation = Callable[[str, str], "str | None"]


def every_error(error: ValidationError) -> Iterator[ValidationError]:
    """The error and what lies behind it: the reasons why each branch of an anyOf did not hold."""
    yield error
    for cause in error.context or ():
        yield from every_error(cause)


class Schema:
    """One schema file under two independent validators, which must agree on every document."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.document = json.loads((SCHEMAS / name).read_text("utf-8"))
        self._python = Draft202012Validator(self.document)
        self._rust = jsonschema_rs.validator_for(self.document)

    def complaints(self, document: Any) -> list[ValidationError]:
        """Every error of a document, causes included; empty when it is valid."""
        complaints = [cause for error in self._python.iter_errors(document) for cause in every_error(error)]
        agreed = self._rust.is_valid(document) is not bool(complaints)
        assert agreed, f"{self.name}: the validators disagree on {str(document)[:200]}"
        return complaints

    def admits(self, document: Any) -> bool:
        """Whether a document is valid."""
        return not self.complaints(document)

    def demand(self, document: Any, where: str) -> None:
        """Fail, naming place and reason, unless a document is valid."""
        complaints = self.complaints(document)
        if complaints:
            deepest = max(complaints, key=lambda error: len(error.absolute_path))
            pytest.fail(f"{where}: {self.name} refuses {deepest.json_path}: {deepest.message[:300]}", pytrace=False)


@cache
def _schema(name: str) -> Schema:
    return Schema(name)


@pytest.fixture(scope="session")
def schema() -> Callable[[str], Schema]:
    """A schema by its name in the folder."""
    return _schema


@pytest.fixture(scope="session")
def folder() -> Path:
    """The schemas folder."""
    return SCHEMAS


@pytest.fixture(scope="session")
def load() -> Load:
    """A JSON document of the folder by its name."""
    return lambda name: json.loads((SCHEMAS / name).read_text("utf-8"))


@pytest.fixture(scope="session")
def find_operation(load: Load) -> FindOperation:
    """The operation of a method and path at the reference daemon: None outside the contract, KeyError if not served."""
    table = load("routes/0.145.json")

    def pattern_of(path: str) -> re.Pattern[str]:
        return re.compile("/".join("[^/]+" if part.startswith(":") else re.escape(part) for part in path.split("/")))

    routes = [(route["method"], pattern_of(route["path"]), route["operation"]) for route in table["routes"]]

    def find(method: str, path: str) -> str | None:
        implied = table["implied"].get(method, method)
        for served, pattern, operation in routes:
            if (implied == "*" or served in (implied, "*")) and pattern.fullmatch(path):
                return operation
        raise KeyError(f"{method} {path}")

    return find
