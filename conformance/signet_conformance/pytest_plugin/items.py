"""The items of a conformance run: one for each requirement, whose outcome is the verdict over the whole run."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from signet_conformance.contract import requirements
from signet_conformance.errors import SignetConformanceError, printable
from signet_conformance.finding import Judgement, Verdict
from signet_conformance.reports.command_lines import explain_note
from signet_conformance.rules import rules

NODE = "signet-conformance"
"""Prefix of the node ids of the kit's items."""

VERDICT = "signet_verdict"
"""The user property that carries an item's verdict, also from xdist workers and into JUnit."""

KNOWN = "signet_known"
"""The user property with the reason of a known failure."""


class ConformanceWarning(UserWarning):
    """A requirement of level SHOULD is not met."""


class InconclusiveError(Exception):
    """Raised by an item whose requirement could not be decided; it becomes an outcome of its own."""


class Verdicts(Protocol):
    """The part of a run that its items use."""

    def judgement(self, requirement: str) -> Judgement:
        """The verdict of the whole run for a requirement."""

    def breach_text(self, judgement: Judgement) -> str:
        """The report on a failing requirement, for the author of the connector."""

    def place_of(self, judgement: Judgement) -> tuple[str, int]:
        """The file and the line of the first exchange that decided."""

    def known_reason(self, judgement: Judgement) -> str | None:
        """The reason of a known failure; None unless it is known at each target that has it."""


class Requirements(pytest.Collector):
    """Collects the kit's items: one for each requirement of the catalogue, then one for each rule of the repository."""

    def __init__(self, *, run: Verdicts, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._run = run

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item for each requirement, in the catalogue's order."""
        wanted = [name for name in self.config.getoption("signet_requirement") if name]
        for name in dict.fromkeys((*requirements(), *rules())):
            if wanted and name not in wanted:
                continue
            yield RequirementItem.from_parent(self, name=name, run=self._run)


class RequirementItem(pytest.Item):
    """One requirement over all traces of the run."""

    def __init__(self, *, run: Verdicts, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._run = run
        requirement = requirements().get(self.name)
        self._title = requirement.title if requirement is not None else "a rule of this repository's own"
        if requirement is not None:
            # Names for -k; marks would have to be registered in the repository that is judged.
            self.extra_keyword_matches.update((requirement.level, requirement.area))

    def runtest(self) -> None:
        """Turn the verdict into an outcome."""
        judgement = self._run.judgement(self.name)
        # Skip reasons and warnings reach terminal and JUnit file as they are.
        judgement = msgspec.structs.replace(judgement, message=printable(judgement.message, 600))
        self.user_properties.append((VERDICT, str(judgement.verdict)))
        known = self._run.known_reason(judgement)
        if known is not None:
            self.user_properties.append((KNOWN, known))
            if judgement.verdict is Verdict.FAIL:
                pytest.xfail(f"known: {known}")
        if judgement.verdict in (Verdict.FAIL, Verdict.ERROR):
            kind = BreachError if judgement.verdict is Verdict.FAIL else RuleFailedError
            raise kind(self._run.breach_text(judgement), judgement.message)
        if judgement.verdict is Verdict.INCONCLUSIVE:
            raise InconclusiveError(judgement.message)
        if judgement.verdict is Verdict.NOT_APPLICABLE:
            pytest.skip(judgement.message)
        if judgement.verdict is Verdict.WARN and known is None:
            self._warn(judgement)

    def _warn(self, judgement: Judgement) -> None:
        # Recorded directly, so that a repository that turns warnings into errors does not fail for it.
        message = f"{self.name}: {judgement.message}{explain_note(self.name)}"
        file, line = self._run.place_of(judgement)
        # An empty source line, or pytest would print the whole line of the trace.
        recorded = warnings.WarningMessage(ConformanceWarning(message), ConformanceWarning, file, line, line="")
        self.ihook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": recorded, "nodeid": self.nodeid, "when": "runtest", "location": None}
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Describe the failure without a traceback of the kit."""
        value = excinfo.value
        if not isinstance(value, (ItemError, InconclusiveError, SignetConformanceError)):
            return super().repr_failure(excinfo, style)
        # The text of the error and nothing else, in a form that xdist carries whole.
        shown = excinfo.getrepr(style="value", chain=False)
        if shown.reprcrash is not None:
            # The text after the item's name in pytest's summary lines, which a CI log does not cut.
            shown.reprcrash.message = value.summary if isinstance(value, ItemError) else f"error: {value}"
        return shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The place and name of the item in pytest's output."""
        return self.config.rootpath / self.nodeid.partition("::")[0], None, f"{self.name} {self._title}"


class ItemError(Exception):
    """Base of the errors of failing items: pytest shows only the text, and in single lines the summary."""

    def __init__(self, text: str, summary: str) -> None:
        super().__init__(text)
        self.summary = printable(summary, 200)


class BreachError(ItemError, AssertionError):
    """Raised by an item whose requirement fails.

    An assertion's error: readers of results (Allure, JUnit) tell a failed test from a broken one by that.
    """


class RuleFailedError(ItemError):
    """Raised by an item whose rule failed, which is the kit's own fault."""


def report_by_id(report: Any, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """The report of an item. An inconclusive one counts as skipped, at the requirement's id as its place."""
    if isinstance(item, RequirementItem) and call.excinfo is not None:
        if call.excinfo.errisinstance(InconclusiveError):
            report.outcome = "skipped"
            report.longrepr = (item.name, None, f"INCONCLUSIVE: {call.excinfo.value}")
        elif report.skipped and not hasattr(report, "wasxfail"):
            # The same place for all of them: pytest folds skipped items of one place and reason.
            report.longrepr = (item.nodeid.partition("::")[0], None, str(call.excinfo.value))
    return report


def verdict_of(report: pytest.TestReport | pytest.CollectReport) -> Verdict | None:
    """The verdict that a report carries; ERROR for an item of the kit that failed without one."""
    verdict = dict(getattr(report, "user_properties", ())).get(VERDICT)
    if verdict is not None:
        return Verdict(str(verdict))
    crashed = report.when == "call" and report.failed and report.nodeid.startswith(f"{NODE}/")
    return Verdict.ERROR if crashed else None


def is_inconclusive(report: pytest.TestReport | pytest.CollectReport) -> bool:
    """Whether a report is about a requirement that could not be decided."""
    return report.when == "call" and verdict_of(report) is Verdict.INCONCLUSIVE
