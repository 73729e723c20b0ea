"""The report for programs: `signet-report/1`, described by schemas/report/signet-report-1.schema.json.

The document is plain ASCII: what a trace holds reaches no terminal unescaped, and lone surrogates survive.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from msgspec import to_builtins
from msgspec.structs import asdict

from signet_conformance import __version__
from signet_conformance.contract.routes import operation_table
from signet_conformance.engine import JudgedTrace
from signet_conformance.engine.folding import MAX_FINDINGS
from signet_conformance.errors import printable_json
from signet_conformance.facts import Call, Recording
from signet_conformance.finding import BREACHES, Finding, Judgement
from signet_conformance.outcome.coverage import Coverage
from signet_conformance.outcome.generated_summary import GeneratedSummary
from signet_conformance.outcome.reach import UnreachableParts
from signet_conformance.outcome.recording_gaps import lacks_of
from signet_conformance.outcome.several_traces import evidence_of
from signet_conformance.outcome.time_spent import TimeSpent
from signet_conformance.reports.causes import Cause, CauseReport
from signet_conformance.reports.command_lines import explain_command
from signet_conformance.reports.ending import RunEnding, scenario_of
from signet_conformance.reports.evidence import known_requirement
from signet_conformance.reports.remarks import played, remarks
from signet_conformance.reports.values import shorten

FORMAT = "signet-report/1"
_HEAD = {"format": FORMAT, "kit": __version__}


class JsonReport(CauseReport):
    """Writes the document trace by trace, so that a run of any size never has to fit in memory.

    The document is incomplete until `close`.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        head = encoded(_HEAD)
        stream.write(f'{head[:-1]},"traces":[')
        self._separator = "\n"

    def add(self, judged: JudgedTrace, known: Mapping[str, str]) -> None:
        """Write one trace."""
        super().add(judged, known)
        self._stream.write(f"{self._separator}{encoded(trace_entry(judged))}")
        self._separator = ",\n"

    def close(self, ending: RunEnding) -> None:
        """Write the end of the document: the verdicts over all traces, the causes, the warnings, the exit status."""
        self._causes.end(ending.conclusion)
        causes = [_cause(cause) for cause in self._causes.all()]
        self._stream.write(f"\n],\n{encoded(_closing(ending, causes))[1:]}\n")


def encoded(document: Any) -> str:
    """A document as one line of ASCII JSON."""
    return printable_json(json.dumps(document, separators=(",", ":"), allow_nan=False))


def _present(**members: Any) -> dict[str, Any]:
    """The members of an object that say something: None and an empty list or object are left out."""
    return {name: value for name, value in members.items() if value is not None and value not in ([], (), {})}


def _closing(ending: RunEnding, causes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The members after the traces. A finding in `together` names its file."""
    run = ending.conclusion
    over_all = {
        name: {
            "verdict": whole.verdict.value,
            "reason": whole.reason.value,
            "findings": [
                {
                    **_present(file=file, verdict=None if finding.verdict is whole.verdict else finding.verdict.value),
                    **_finding(finding),
                }
                for file, finding in evidence_of(run.judged, whole)
            ],
        }
        for name, whole in run.judgements.items()
    }
    traces = [each.trace for each in run.judged]
    return {
        "contract": run.contract,
        **_present(run=to_builtins(run.identity), played=[asdict(host) for host in played(traces)]),
        "together": over_all,
        "causes": causes,
        **_present(skipped=dict(run.skipped), warnings=list(ending.notes), remarks=remarks(traces)),
        **({} if run.coverage is None else {"coverage": _coverage(run.coverage)}),
        **({} if run.newer is None else {"newer": to_builtins(run.newer)}),
        **({} if run.reach is None else {"unreached": _unreached(run.reach)}),
        **({} if run.generated is None else {"generated": _generated(run.generated)}),
        **({} if ending.time_spent is None else {"time_spent": _time_spent(ending.time_spent)}),
        "exit": ending.status,
        "lacks": to_builtins(ending.lacks),
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "requirement": cause.requirement,
        **_present(says=cause.says or None),
        "verdict": cause.verdict.value,
        "known": cause.is_known,
        "also": [{"requirement": other.requirement, "verdict": other.verdict.value} for other in cause.also],
        "traces": cause.traces,
        "of": cause.of,
        "sessions": cause.sessions,
        "calls": dict(cause.calls.most_common()),
        "problems": [
            {
                "what": breach.what,
                **_present(file=breach.path or None, exchange=breach.seq, line=breach.line),
                "pointer": breach.pointer,
                "expected": breach.expected,
                "received": breach.received,
                **_present(sources=to_builtins(breach.sources)),
                "times": breach.times,
            }
            for breach in cause.breaches
        ],
    }


def _time_spent(spent: TimeSpent) -> dict[str, Any]:
    return {
        "wall_s": round(spent.wall_s, 3),
        "phases": {name: round(seconds, 3) for name, seconds in spent.phases.items()},
        "workers": spent.workers,
        "parts": [
            {"part": part.value, "of": part.group, "s": round(seconds, 3), "times": times}
            for part, (seconds, times) in spent.parts.items()
        ],
        "cpu_s": {name: round(seconds, 3) for name, seconds in spent.cpu_s.items()},
    }


def _generated(summary: GeneratedSummary) -> dict[str, Any]:
    counts = {"seed": summary.seed, "performed": summary.performed, "outages": summary.outages}
    gaps, lost = _present(gaps=summary.tally.gaps), [shorten(loss) for loss in summary.lost]
    return {**counts, "skipped": summary.skipped, **gaps, "lost": lost}


def _coverage(coverage: Coverage) -> dict[str, Any]:
    parts = {part.name: {"exercised": list(part.exercised), "missed": list(part.missed)} for part in coverage.parts}
    return {"percent": round(coverage.percent, 1), "parts": parts}


def _unreached(reach: UnreachableParts) -> dict[str, Any]:
    fields = {tool: list(names) for tool, names in reach.fields.items()}
    later = reach.later if reach.later is not None and reach.later.points else None
    return {
        "tools": list(reach.tools),
        "fields": fields,
        "unfillable": list(reach.unfillable),
        **({} if later is None else {"later": {"contract": reach.version, **_unreached(later)}}),
    }


def trace_entry(judged: JudgedTrace) -> dict[str, Any]:
    """One judged trace as the document's object: file, what is declared, the verdict of every requirement."""
    trace = judged.trace
    about_model_alone = judged.harness and not judged.judgements
    return {
        "file": trace.path or "-",
        **_present(scenario=shorten(scenario_of(judged)), target=shorten(trace.header.target)),
        "declared": trace.header.declared.to_json(),
        "operations": dict(sorted(_operations(judged).items())),
        "daemon_version": judged.daemon_version,
        **_present(gaps=_gaps(judged), warnings=list(trace.warnings), remarks=remarks([trace])),
        "verdicts": {name: _judgement(judgement, judged) for name, judgement in judged.judgements.items()},
        "daemon": {name: _judgement(judgement, judged) for name, judgement in judged.daemon.items()},
        **({"model": _model(judged)} if trace.model is not None or about_model_alone else {}),
    }


def _gaps(judged: JudgedTrace) -> list[dict[str, Any]]:
    return [{"lack": at.lack.value, "route": shorten(at.route), "times": n} for at, n in lacks_of(judged).items()]


def _model(judged: JudgedTrace) -> dict[str, Any]:
    trace = judged.trace.model
    return {
        "file": "-" if trace is None else trace.path or "-",
        **_present(played=True if trace is not None and trace.header.played else None),
        "verdicts": {name: _judgement(judgement, judged) for name, judgement in judged.harness.items()},
    }


def _operations(judged: JudgedTrace) -> Counter[str]:
    """How often each operation of the contract was called, or asked about by HEAD or OPTIONS."""
    # By calls, because the exchanges of a large recording would be read from its file.
    names = (call.operation or _probed_operation(call) for call in judged.recording.calls)
    return Counter(name for name in names if name is not None)


def _probed_operation(call: Call) -> str | None:
    if call.method not in ("HEAD", "OPTIONS"):
        return None
    route = operation_table().find(call.method, call.exchange.request.path)
    return None if route is None else route.operation


def _judgement(judgement: Judgement, judged: JudgedTrace) -> dict[str, Any]:
    requirement, listed = known_requirement(judgement.requirement), _findings_to_list(judgement.findings)
    breached = judgement.verdict in BREACHES and requirement is not None
    law = {}
    if requirement is not None:
        law = {"level": requirement.level_at(judged.daemon_version), "title": requirement.title}
    return {
        "verdict": judgement.verdict.value,
        "reason": judgement.reason.value,
        "message": judgement.message,
        **law,
        **_present(explain=explain_command(judgement.requirement) if breached else None),
        "subjects": judgement.subjects,
        "found": len(judgement.findings),
        "listed": len(listed),
        "findings": [_finding(finding, judged.recording) for finding in listed],
    }


def _findings_to_list(findings: Sequence[Finding]) -> Sequence[Finding]:
    """The first findings, then the first of each kind that is not among them."""
    first = findings[:MAX_FINDINGS]
    kinds = {finding.fold for finding in first}
    further = {finding.fold: finding for finding in reversed(findings[MAX_FINDINGS:]) if finding.fold not in kinds}
    return [*first, *reversed([finding for fold, finding in further.items() if fold])]


def _finding(finding: Finding, recording: Recording | None = None) -> dict[str, Any]:
    call = None if recording is None or not finding.exchanges else recording.by_seq.get(finding.exchanges[0])
    return {
        "exchanges": list(finding.exchanges),
        **_present(model=list(finding.model)),
        "side": finding.side.value,
        "pointer": finding.pointer,
        "expected": finding.expected,
        "received": shorten(finding.received),
        "message": finding.message,
        "kind": finding.kind,
        **_present(operation=None if call is None else call.operation, elements=list(finding.elements)),
        "fold": finding.group,
    }
