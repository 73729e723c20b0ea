"""Reads the files that others publish: JSON or JSON lines, whose parts are demanded by name and kind."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from signet_reference_harness.documents import DocumentError, read_file, shown_value

LARGEST_SOURCE: Final = 4 * 1024 * 1024 * 1024
KINDS: Final = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}

Kind = TypeVar("Kind", dict, list, str, int)  # type: ignore[type-arg]  # what json.loads makes


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a source file, and where it stands: the file, and a JSON pointer."""

    where: str
    pointer: str
    value: Any

    def demand(self, kind: type[Kind]) -> Kind:
        """The value, which must be of that kind. Raises DocumentError."""
        if not isinstance(self.value, kind) or isinstance(self.value, bool):
            self.refuse(f"is {shown_value(self.value)}, not {KINDS[kind]}")
        return self.value

    def member(self, name: str) -> Value:
        """A member of an object. Raises DocumentError when the object lacks it."""
        members = self.demand(dict)
        if name not in members:
            self.refuse(f"lacks {name}")
        return Value(self.where, f"{self.pointer}/{name}", members[name])

    def optional(self, name: str) -> Any:
        """The plain value of a member; None when the member is missing."""
        return self.value.get(name) if isinstance(self.value, dict) else None

    def items(self) -> list[Value]:
        """The items of a list. Raises DocumentError."""
        return [Value(self.where, f"{self.pointer}/{n}", item) for n, item in enumerate(self.demand(list))]

    def text(self) -> str:
        """The value as a text: a number is written out. Raises DocumentError for anything else."""
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return str(self.value)
        return str(self.demand(str))

    def refuse(self, message: str) -> NoReturn:
        """Raise DocumentError for this value."""
        raise DocumentError(
            f"{self.where}: {self.pointer or 'the whole'}: {message}",
            remedy="name a file as its authors publish it; docs/harness/bench.md says which",
        )


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file that was read: its records, and the SHA-256 of its bytes."""

    path: Path
    sha256: str
    root: Value


def read_source(path: Path) -> PublishedFile:
    """The value in a JSON file; of JSON lines a list of their values. Raises DocumentError."""
    data = read_file(path, LARGEST_SOURCE)
    return PublishedFile(path, hashlib.sha256(data).hexdigest(), Value(str(path), "", _parsed(path, data)))


def _parsed(path: Path, data: bytes) -> Any:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{path}: is not UTF-8: {error}", remedy="export the data set as JSON or JSON lines"
        ) from None
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        whole = error
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (json.JSONDecodeError, RecursionError) as problem:
            # Of a file that is not even one good line, what is wrong with it as one document is said.
            told = f"{path}:{number}" if values else str(path)
            raise DocumentError(
                f"{told}: is not JSON: {problem if values else whole}",
                remedy="export the data set as JSON or JSON lines",
            ) from None
    return values


def name_of(text: str) -> str:
    """`text` as the name of a step or scenario."""
    name = re.sub(r"[^A-Za-z0-9._:-]+", "-", text).strip("-._:")[:120]
    return name or "unnamed"


def moment(text: str, *formats: str) -> str | None:
    """The moment that a text names in one of the formats, as ISO 8601 in UTC; None when in none."""
    for form in formats:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            continue
    return None


def plain(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step without the members that say nothing."""
    return {name: value for name, value in step.items() if value not in (None, [], "")}
