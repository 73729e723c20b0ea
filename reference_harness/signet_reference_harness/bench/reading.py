"""Reads a suite: every line is checked alone, then against the lines before it. Errors name the line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from signet_reference_harness.bench.suite import (
    OWN_SESSION,
    Fact,
    Forget,
    Head,
    Performance,
    Prompt,
    Query,
    Scenario,
    Start,
    Step,
    Suite,
    SuiteLine,
)
from signet_reference_harness.documents import DocumentError, demand

LARGEST_SUITE: Final = 1024 * 1024 * 1024
MOST_PROBLEMS: Final = 20
MODEL: Final = "write it as schemas/harness/signet-bench-suite-1.schema.json says"


class SuiteError(DocumentError):
    """Raised for a suite that breaks the format: `problems` are its faults, the message tells them all."""

    def __init__(self, problems: list[DocumentError]) -> None:
        self.problems = problems
        first = problems[0]
        shown = "\n".join(problem.message for problem in problems[:MOST_PROBLEMS])
        more = len(problems) - MOST_PROBLEMS
        super().__init__(f"{shown}\nand {more} more" if more > 0 else shown, remedy=first.remedy or MODEL)


def read_suite(path: Path) -> Suite:
    """The suite in a file. Raises SuiteError with every fault that was found, DocumentError for an unreadable file."""
    try:
        data = path.read_bytes() if path.stat().st_size <= LARGEST_SUITE else None
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}", remedy="name a file that can be read") from None
    if data is None:
        raise DocumentError(f"{path}: is larger than {LARGEST_SUITE} bytes", remedy="split it by scenarios")
    return parse_suite(data, str(path))


def parse_suite(data: bytes, where: str) -> Suite:
    """The suite that the bytes hold; `where` is what errors name. Raises SuiteError."""
    reader = _Reader(where)
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            try:
                reader.take(number, reader.parsed(number, line))
            except DocumentError as problem:
                reader.problems.append(problem)
    return reader.suite(hashlib.sha256(data).hexdigest())


class _Reader:
    def __init__(self, where: str) -> None:
        self._where = where
        self._head: Head | None = None
        self._scenarios: dict[str, int] = {}
        self._performances: list[tuple[int, Scenario, list[tuple[int, Step]]]] = []
        self._ids: dict[str, int] = {}
        """The names that facts, queries and turns of the present scenario have, with their lines."""
        self._items: set[str] = set()
        """Those of them that can be evidence."""
        self._sessions: set[str] = set()
        self.problems: list[DocumentError] = []

    def suite(self, sha256: str) -> Suite:
        if self._head is None and not self.problems:
            self.problems.append(
                DocumentError(f"{self._where}:1: the file holds no line", remedy="begin it with a line of kind suite")
            )
        if not self._performances and not self.problems:
            self.problems.append(
                DocumentError(f"{self._where}:1: the suite holds no scenario", remedy="add a line of kind scenario")
            )
        if self.problems:
            raise SuiteError(self.problems)
        assert self._head is not None  # noqa: S101 - reported above
        performances = (Performance(line, scenario, tuple(steps)) for line, scenario, steps in self._performances)
        return Suite(self._where, sha256, self._head, tuple(performances))

    def parsed(self, number: int, line: bytes) -> Any:
        where = f"{self._where}:{number}"
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise DocumentError(
                f"{where}:{error.colno}: is not JSON: {error.msg}", remedy="one object a line"
            ) from None
        except (UnicodeDecodeError, RecursionError) as error:
            raise DocumentError(f"{where}: is not JSON: {error}"[:300], remedy="one object a line, in UTF-8") from None
        if not isinstance(value, dict):
            raise DocumentError(f"{where}: is not an object", remedy="one object a line")
        return demand(SuiteLine, value, where).root

    def take(self, number: int, line: Head | Scenario | Step) -> None:
        if self._head is None:
            if not isinstance(line, Head):
                # One complaint is enough: the lines that follow may be good.
                self._head = Head(kind="suite", format="signet-bench-suite/1", name="unnamed", licence="unknown")
                self._refuse(number, "the suite does not begin with its head", "put a line of kind suite first")
            self._head = line
        elif isinstance(line, Head):
            self._refuse(number, "a second line of kind suite", "take it out: a file holds one suite")
        elif isinstance(line, Scenario):
            self._begin(number, line)
        elif not self._performances:
            self._refuse(number, f"a {line.kind} before any scenario", "put a line of kind scenario before it")
        else:
            # Kept also when it is refused below, so that what builds on it is not refused too.
            self._performances[-1][2].append((number, line))
            for problem in self._problems_of(number, line):
                self.problems.append(problem)

    def _begin(self, number: int, scenario: Scenario) -> None:
        before = self._scenarios.setdefault(scenario.id, number)
        self._performances.append((number, scenario, []))
        self._ids, self._items, self._sessions = {}, set(), {OWN_SESSION}
        if before != number:
            self._refuse(number, f"scenario {scenario.id!r} stands in line {before} already", "give it another id")

    def _problems_of(self, number: int, step: Step) -> Iterator[DocumentError]:
        session = step.session
        if isinstance(step, Start):
            self._sessions.add(session)
        elif session not in self._sessions:
            yield self._problem(
                number, f"session {session!r} has not been started", f"add a line of kind start for {session!r}"
            )
        if isinstance(step, Forget) and step.fact not in self._items:
            yield self._unknown(number, "fact", step.fact)
        if isinstance(step, Query | Start | Prompt):
            for member in ("evidence", "expect", "absent"):
                for name in getattr(step, member):
                    if name not in self._items:
                        yield self._unknown(number, member, name)
        name = getattr(step, "id", None)
        if name is None:
            return
        before = self._ids.setdefault(name, number)
        if before != number:
            yield self._problem(number, f"id {name!r} stands in line {before} already", "give each step its own id")
        if isinstance(step, Fact | Prompt):
            self._items.add(name)

    def _unknown(self, number: int, member: str, name: str) -> DocumentError:
        return self._problem(
            number,
            f"{member} {name!r} is not the id of a fact or prompt above it in this scenario",
            "name one that is stored before it is asked for, or take it out",
        )

    def _problem(self, number: int, message: str, remedy: str) -> DocumentError:
        return DocumentError(f"{self._where}:{number}: {message}", remedy=remedy)

    def _refuse(self, number: int, message: str, remedy: str) -> NoReturn:
        raise self._problem(number, message, remedy)
