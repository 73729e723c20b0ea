"""Runs of connectors over time: which one is the newest by each contract, what it answers, and what it changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from signet_conformance.contract import contract_versions
from signet_conformance.finding import Verdict
from signet_conformance.reports.matrix.document import Column

MAX_NAMED = 5
"""Broken requirements that an answer names; the others are counted."""


class May(StrEnum):
    """Whether a connector may ship with a daemon of a contract version."""

    YES = "yes"
    NO = "no"
    NOT_SHOWN = "not shown"


class Answer(Struct, frozen=True):
    """What a run answers, and why; `why` is empty where nothing stands against it."""

    may: May
    why: str


class Connector(Struct, frozen=True, order=True):
    """A connector in one lane: in the real program, or where the kit plays its harness."""

    name: str
    real: bool

    @property
    def words(self) -> str:
        """What it is called."""
        return f"{self.name}, in the real program" if self.real else self.name


def answer(column: Column) -> Answer:
    """What one run says. What is broken in a part of a run is broken; only a whole run says that nothing is."""
    failed = [name for name, verdict in column.verdicts.items() if verdict is Verdict.FAIL]
    if failed:
        more = f" and {len(failed) - MAX_NAMED} more" if len(failed) > MAX_NAMED else ""
        return Answer(May.NO, f"breaks {', '.join(failed[:MAX_NAMED])}{more}")
    missing = column.full_set
    return Answer(May.YES, "") if missing is None else Answer(May.NOT_SHOWN, missing)


def histories(columns: Iterable[Column]) -> Mapping[Connector, Sequence[Column]]:
    """The runs of each connector, the newest first; one whose report gives no time counts as the oldest."""
    runs: dict[Connector, list[Column]] = {}
    for column in columns:
        runs.setdefault(Connector(column.name, column.harness is not None), []).append(column)
    return {
        connector: sorted(runs[connector], key=lambda column: (column.created, column.report), reverse=True)
        for connector in sorted(runs)
    }


def newest(history: Sequence[Column]) -> Mapping[str, Column]:
    """The newest run by each contract version, the newest version first. `history` begins with the newest run."""
    known = {version: number for number, version in enumerate(contract_versions())}
    first: dict[str, Column] = {}
    for column in history:
        first.setdefault(column.contract, column)
    return {version: first[version] for version in sorted(first, key=lambda version: -known[version])}


def before(history: Sequence[Column], number: int) -> Column | None:
    """The run by the same contract version that came before the one at `number`."""
    contract = history[number].contract
    return next((column for column in history[number + 1 :] if column.contract == contract), None)


def changes(old: Column, new: Column) -> tuple[list[str], list[str]]:
    """The requirements that a later run newly fails, and those that it passes again."""
    failed, passed = (
        [name for name, verdict in new.verdicts.items() if verdict is wanted] for wanted in (Verdict.FAIL, Verdict.PASS)
    )
    broken = [name for name in failed if old.verdicts.get(name) is not Verdict.FAIL]
    mended = [name for name in passed if old.verdicts.get(name) is Verdict.FAIL]
    return broken, mended
