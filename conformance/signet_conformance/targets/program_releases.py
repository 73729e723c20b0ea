"""The releases of a program: those published on its registry, known, proven or installed, and a bisection over them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from signet_conformance.errors import NothingTestedError, printable
from signet_conformance.files.json_values import list_in, parse_value
from signet_conformance.targets.face import known_releases
from signet_conformance.targets.program import CommandError, HostProgram, run_command
from signet_conformance.targets.program_document import ProgramDocument
from signet_conformance.targets.releases import numbers

_PATIENCE_S = 120.0
_STABLE = re.compile(r"\d+(\.\d+)*")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases of one program.

    `published`: those on the registry, oldest first; None if the registry did not answer, with the reason in `why`.
    `known`: facts by release. `proven`: releases with which the kit was checked, with a note. `installed`: those on
    this machine.
    """

    name: str
    package: str
    published: Sequence[str] | None
    known: Mapping[str, str]
    proven: Mapping[str, str]
    installed: Sequence[str]
    why: str = ""

    @property
    def newer(self) -> Sequence[str]:
        """The published releases after the newest proven one."""
        last = max(map(numbers, self.proven), default=[])
        return [release for release in self.published or () if numbers(release) > last]


def releases_of(program: HostProgram) -> Releases:
    """Collect a program's releases, here and on its registry."""
    profile = program.profile
    published: Sequence[str] | None = None
    why = ""
    try:
        published = published_releases(profile)
    except NothingTestedError as failure:
        why = failure.message
    proven = {row.release: row.note or "" for row in profile.checked}
    return Releases(
        program.name, profile.package, published, known_releases(program.name), proven, [*program.installed()], why
    )


def published_releases(profile: ProgramDocument) -> Sequence[str]:
    """List a program's releases on its registry, oldest first, without pre-releases.

    The registry's own client asks, as it is configured here. Raises NothingTestedError with its message.
    """
    command = (
        ["npm", "view", profile.package, "versions", "--json"]
        if profile.registry == "npm"
        else [sys.executable, "-m", "pip", "index", "versions", profile.package]
    )
    try:
        output = run_command(command, timeout_s=_PATIENCE_S)
    except CommandError as failure:
        raise _unanswered(command, str(failure)) from None
    releases = _of_npm(output) if profile.registry == "npm" else _of_pip(output)
    if not releases:
        raise _unanswered(command, "it named no release")
    return sorted({release for release in releases if _STABLE.fullmatch(release)}, key=numbers)


def _of_npm(output: str) -> Sequence[str]:
    value = parse_value(output)
    return [value] if isinstance(value, str) else [each for each in list_in(value) if isinstance(each, str)]


def _of_pip(output: str) -> Sequence[str]:
    line = re.search(r"^Available versions:(.*)$", output, re.MULTILINE)
    return [each.strip() for each in line[1].split(",")] if line is not None else ()


def _unanswered(command: Sequence[str], why: str) -> NothingTestedError:
    return NothingTestedError(
        f"the registry did not answer: {printable(why, 300)}",
        where=" ".join(command[-4:]),
        remedy="check that the client of the registry works on this machine",
    )


@dataclass(slots=True)
class Bisection(Generic[T]):
    """The search for the release in which an outcome changed.

    `last` is the newest release with the oldest's outcome, `first` the next one; both are None if the two ends agree.
    `tried`: outcomes by release. `untested`: releases that could not be tried.
    """

    tried: dict[str, T] = field(default_factory=dict)
    untested: list[str] = field(default_factory=list)
    last: str | None = None
    first: str | None = None


def bisect(releases: Sequence[str], outcome_of: Callable[[str], T | None]) -> Bisection[T]:
    """Find where the outcome of `releases` (oldest first) changes; `outcome_of` returns None if one cannot be tried.

    Raises NothingTestedError if an end cannot be tried.
    """
    bisection: Bisection[T] = Bisection()

    def try_release(release: str) -> T | None:
        outcome = outcome_of(release)
        if outcome is None:
            bisection.untested.append(release)
        else:
            bisection.tried[release] = outcome
        return outcome

    ends = [try_release(releases[0]), try_release(releases[-1])]
    if None in ends:
        raise NothingTestedError(
            f"{bisection.untested[0]} cannot be driven here, so nothing can be compared",
            where="--bisect",
            remedy="name releases that can be installed on this machine",
        )
    if ends[0] == ends[1]:
        return bisection
    low, high = 0, len(releases) - 1
    while True:
        between = [n for n in range(low + 1, high) if releases[n] not in bisection.untested]
        if not between:
            bisection.last, bisection.first = releases[low], releases[high]
            return bisection
        middle = min(between, key=lambda n: abs(2 * n - low - high))
        outcome = try_release(releases[middle])
        if outcome is not None:
            low, high = (middle, high) if outcome == ends[0] else (low, middle)
