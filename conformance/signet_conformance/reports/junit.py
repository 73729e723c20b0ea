"""The report for CI systems that count tests: JUnit XML, one test case per requirement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from xml.sax.saxutils import escape, quoteattr

from signet_conformance.errors import printable
from signet_conformance.finding import Verdict
from signet_conformance.reports.cause_text import MAX_PROBLEMS, cause_rows, known_words, replay_words
from signet_conformance.reports.causes import Cause, CauseReport
from signet_conformance.reports.command_lines import explain_command, shell_command
from signet_conformance.reports.ending import RunEnding
from signet_conformance.reports.evidence import Evidence, known_requirement

_BROKEN = (Verdict.FAIL, Verdict.ERROR)
_UNTESTED = (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE)


class JunitReport(CauseReport):
    """Gathers the breaches by cause, and writes the suite at the end.

    A breached MUST is a failure, what the kit could not judge is an error, and what was not tested is skipped. A WARN
    and a known failure pass, and the suite's output says so. The document is valid by the schema of Jenkins' xUnit
    plugin (junit-10.xsd) and by that of Ant's reports (JUnit.xsd), which has no output for a single case.
    """

    def close(self, ending: RunEnding) -> None:
        """Write the document."""
        self._causes.end(ending.conclusion)
        verdicts = ending.verdicts
        lines_of = _by_requirement(self._causes.connector(), ending.options)
        known = {name for name in lines_of if all(cause.is_known for cause, _ in lines_of[name])}
        tally = Counter(verdict for name, verdict in verdicts.items() if name not in known)
        counts = {
            "tests": len(verdicts),
            "failures": tally[Verdict.FAIL],
            "errors": tally[Verdict.ERROR],
            "skipped": sum(tally[verdict] for verdict in _UNTESTED),
        }
        created = (each.trace.header.created for each in ending.conclusion.judged)
        self._stream.write('<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n')
        self._stream.write(
            f'<testsuite name="signet-conformance" package="signet-conformance" id="0" hostname="localhost"'
            f' timestamp="{_instant(next(filter(None, created), None))}" time="0" '
            + " ".join(f'{name}="{count}"' for name, count in counts.items())
            + ">\n<properties/>\n"
        )
        passed: list[str] = []
        for name, verdict in verdicts.items():
            self._stream.write(_case(name, verdict, lines_of.get(name, ()), known=name in known))
            if name in lines_of and (verdict not in _BROKEN or name in known):
                passed += [f"{name}: {verdict.value}{', known' if name in known else ''}"]
                passed += [line for _, lines in lines_of[name] for line in lines]
        lines = [*passed, ending.closing_line, *ending.notes]
        lines += [text for cause in (*self._causes.daemon(), *self._causes.harness()) for text in _lines(cause, ())]
        self._stream.write(f"<system-out>{_text(lines)}</system-out>\n<system-err/>\n")
        self._stream.write("</testsuite>\n</testsuites>\n")


_LinesOfCauses = Sequence[tuple[Cause, Sequence[str]]]


def _by_requirement(causes: Sequence[Cause], options: Sequence[str]) -> Mapping[str, _LinesOfCauses]:
    lines_of: dict[str, list[tuple[Cause, Sequence[str]]]] = {}
    for cause in causes:
        lines = _lines(cause, options)
        for name in cause.requirements:
            lines_of.setdefault(name, []).append((cause, lines))
    return lines_of


def _instant(created: str | None) -> str:
    """When the first recording was made, as Ant writes it: to the second, without a zone."""
    try:
        return datetime.fromisoformat(created or "").strftime("%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return "1970-01-01T00:00:00"


def _case(name: str, verdict: Verdict, causes: _LinesOfCauses, *, known: bool) -> str:
    requirement = known_requirement(name)
    title = name if requirement is None else f"{name} {requirement.title}"
    inner = ""
    if verdict in _UNTESTED:
        inner = f"<skipped message={_attribute(verdict.value)}/>\n"
    elif verdict in _BROKEN and not known:
        kind = "failure" if verdict is Verdict.FAIL else "error"
        message = causes[0][0].first.what if causes else name
        lines = [line for _, lines in causes for line in lines]
        inner = f"<{kind} type={_attribute(verdict.value)} message={_attribute(message)}>{_text(lines)}</{kind}>\n"
    names = f"classname={_attribute(name.rpartition('-')[0] or name)} name={_attribute(title)}"
    return f'<testcase {names} time="0">\n{inner}</testcase>\n'


def _lines(cause: Cause, options: Sequence[str]) -> list[str]:
    lines = [f"{cause.verdict.value} {', '.join(cause.requirements)}"]
    lines += [f"{label}: {text}" for breach in cause.breaches[:MAX_PROBLEMS] for label, text in breach.facts]
    lines += [f"{label}: {content}" for label, content in cause_rows(cause, map(_other, cause.also))]
    lines += [f"explain: {explain_command(name)}" for name in cause.requirements if known_requirement(name) is not None]
    words = replay_words(cause, options) if cause.first.file else ()
    return [*lines, f"replay: {shell_command(words)}"] if words else lines


def _other(other: Evidence) -> str:
    return f"{other.verdict.value} {other.requirement}{known_words(other)}: {other.what}"


def _text(lines: Sequence[str]) -> str:
    return escape("\n".join(printable(line, 2000) for line in lines))


def _attribute(text: str) -> str:
    return quoteattr(printable(text, 600))
