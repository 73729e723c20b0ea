"""The report for code scanning: SARIF 2.1.0, a result for each kind of breach, at the line of the trace file.

Code scanning refuses a file with more than MAX_RESULTS: the worst are written, and the rest is counted. Text of a trace
stays text: what SARIF would read as a link or a placeholder is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from signet_conformance import __version__
from signet_conformance.contract import MUST, Requirement, catalogue, requirements
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import counted, printable
from signet_conformance.finding import BREACHES, Finding, Judgement, Reason, Verdict
from signet_conformance.reports.command_lines import bytes_of, explain_command, page_address
from signet_conformance.reports.ending import RunEnding
from signet_conformance.reports.evidence import call_line, evidence_of, kinds, known_requirement
from signet_conformance.reports.json_document import encoded
from signet_conformance.rules import rules

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
MAX_KINDS = 50
"""Results for one requirement of one trace."""
MAX_RESULTS = 25_000

_WORST_FIRST = ("error", "warning", "note")
_LEVELS = {Verdict.FAIL: "error", Verdict.WARN: "warning"}


class SarifReport:
    """Gathers the results, by level, and writes the worst of them at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rules = [_rule(requirement) for requirement in catalogue().values()]
        self._rules += [_own_rule(name) for name in rules() if name not in requirements()]
        self._places = {str(rule["id"]): number for number, rule in enumerate(self._rules)}
        self._notifications: list[dict[str, Any]] = []
        self._results: dict[str, list[str]] = {level: [] for level in _WORST_FIRST}
        self._counts: Counter[str] = Counter()
        driver = {"name": "signet-conformance", "version": __version__, "rules": self._rules}
        head = encoded({"$schema": SCHEMA, "version": VERSION})
        stream.write(f'{head[:-1]},"runs":[{{"tool":{encoded({"driver": driver})},\n"results":[')

    def add(self, judged: JudgedTrace, known: Mapping[str, str]) -> None:
        """Add the breaches of one trace; those of the daemon and of the harness as notes."""
        for judgement in judged.judgements.values():
            self._add(judged, judgement, known.get(judgement.requirement))
        for judgement in (*judged.daemon.values(), *judged.harness.values()):
            self._add(judged, judgement, None, "note")

    def close(self, ending: RunEnding) -> None:
        """Add the breaches that only the run as a whole shows, and write the worst results and how the run ended."""
        run = ending.conclusion
        if (whole := run.run_level_breaches) is not None:
            for judgement in whole.judgements.values():
                self._add(whole, judgement, run.known_reasons.get(judgement.requirement), file=run.judged[0].trace.path)
        results = [result for level in _WORST_FIRST for result in self._results[level]][:MAX_RESULTS]
        left_out = self._counts.total() - len(results)
        if left_out:
            words = (
                f"{counted(left_out, 'result')} left out: code scanning takes {MAX_RESULTS:,}, and the worst are here"
            )
            self._notifications.append(_notification(f"{words}; the report as JSON has all", "warning"))
        self._stream.write("".join([f"\n{results[0]}", *(f",\n{result}" for result in results[1:])]) if results else "")
        self._notifications += [_notification(note, "note") for note in ending.notes]
        invocation = {
            "executionSuccessful": ending.status < 4,
            "exitCode": ending.status,
            "exitCodeDescription": literal(ending.closing_line),
            "toolExecutionNotifications": self._notifications,
        }
        targets = {each.trace.header.target or each.trace.header.declared.harness for each in run.judged}
        target = targets.pop() if len(targets) == 1 else None
        tail = {
            "invocations": [invocation],
            "automationDetails": {"id": f"signet-conformance/{printable(target or 'traces', 80)}/"},
            "properties": {"contract": run.contract, "run": run.identity.words()},
        }
        self._stream.write(f"\n],{encoded(tail)[1:-1]}}}]}}\n")

    def _add(
        self,
        judged: JudgedTrace,
        judgement: Judgement,
        known: str | None,
        level: str | None = None,
        file: str | None = None,
    ) -> None:
        if judgement.verdict not in BREACHES:
            return
        if judgement.reason is Reason.CRASHED or judgement.verdict not in _LEVELS:
            # The kit's own failure says nothing about the connector.
            self._notifications.append(_notification(f"{judgement.requirement}: {judgement.message}", "error"))
            return
        for kind in kinds(judgement.findings)[:MAX_KINDS]:
            result = {
                "ruleId": judgement.requirement,
                "ruleIndex": self._places[judgement.requirement],
                "level": level or _LEVELS[judgement.verdict],
                **_result(judged, judgement.requirement, kind, file),
            }
            if known is not None:
                result["suppressions"] = [
                    {"kind": "external", "status": "accepted", "justification": printable(known, 300)}
                ]
            self._counts[str(result["level"])] += 1
            results = self._results[str(result["level"])]
            if len(results) < MAX_RESULTS:
                results.append(encoded(result))


def _rule(requirement: Requirement) -> dict[str, Any]:
    address = page_address(requirement.id)
    page = address or explain_command(requirement.id)
    help_text = f"{requirement.why}\n\nChange: {requirement.fix}\n\nPage: {page}"
    return {
        "id": requirement.id,
        "shortDescription": {"text": literal(requirement.title)},
        "fullDescription": {"text": literal(f"{requirement.title} Subject: {requirement.subject}")},
        "help": {"text": literal(help_text)},
        **({"helpUri": address} if address else {}),
        "defaultConfiguration": {"level": "error" if requirement.level == MUST else "warning"},
        "properties": {"tags": [requirement.area, requirement.level]},
    }


def _own_rule(name: str) -> dict[str, Any]:
    return {"id": name, "shortDescription": {"text": literal(f"{printable(name, 80)}, a rule of this repository")}}


def _result(judged: JudgedTrace, requirement: str, kind: list[Finding], file: str | None) -> dict[str, Any]:
    shown = evidence_of(judged, kind)
    rows = (("where", shown.where), ("at", shown.pointer), ("expected", shown.expected), ("received", shown.received))
    pieces = [shown.what, *(f"{label}: {text}" for label, text in rows if text)]
    if (known := known_requirement(requirement)) is not None:
        pieces += [f"change: {known.fix}", f"page: {page_address(requirement) or explain_command(requirement)}"]
    identity = f"{requirement}\0{kind[0].kind}"
    trace = _place(judged.trace.path or file, shown.line)
    code = [_location("sent by", _place(source.file, source.line)) for source in shown.sources]
    related = [*code[1:], _location("the recording", trace)] if code else []
    return {
        "message": {"text": literal("\n".join(pieces))},
        "locations": [{"physicalLocation": code[0]["physicalLocation"] if code else trace}],
        "relatedLocations": [{"id": n, **each} for n, each in enumerate([*related, *_related(judged, kind[0])], 1)],
        "occurrenceCount": len(kind),
        "partialFingerprints": {"requirementAndKind/v1": sha256(identity.encode(errors="replace")).hexdigest()},
    }


def _related(judged: JudgedTrace, finding: Finding) -> list[dict[str, Any]]:
    calls = (judged.recording.by_seq.get(seq) for seq in finding.exchanges[1:6])
    return [
        _location(call_line(call), _place(judged.trace.path, call.exchange.line)) for call in calls if call is not None
    ]


def _location(text: str, place: dict[str, Any]) -> dict[str, Any]:
    return {"message": {"text": literal(text)}, "physicalLocation": place}


def _place(file: str | None, line: int | None) -> dict[str, Any]:
    return {"artifactLocation": {"uri": _address(file)}, "region": {"startLine": line or 1}}


def _address(file: str | None) -> str:
    """A file as a URI, relative to the current folder where it is below it."""
    path = Path(file or "trace")
    if path.is_absolute():
        try:
            path = path.relative_to(Path.cwd())
        except ValueError:
            return f"file://{quote(bytes_of(str(path)))}"
    # A colon in the first segment would be read as a scheme.
    return quote(bytes_of(str(path)))


def _notification(text: str, level: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": literal(printable(text, 600))}}


def literal(text: str) -> str:
    """`text` as a SARIF message that shows it: unescaped, `[x](1)` would be a link and `{0}` a placeholder."""
    return text.replace("](", "] (").replace("{", "{{").replace("}", "}}")
