"""Several judged traces together: the verdict of each requirement over all of them, with first evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.engine import Judged, fold_verdicts, run_judgements
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.trace import Exchange, Request, Trace

MAX_PATHS = 2000
"""Paths that the essence of one trace keeps: a connector that never repeats one must not fill the memory."""


class Together(Struct, frozen=True):
    """One requirement over several traces. `evidence` is (file, finding): the first of each trace that decided."""

    verdict: Verdict
    reason: Reason
    evidence: Sequence[tuple[str | None, Finding]]


def essence(judged: Judged) -> Judged:
    """The part of a judged trace that verdicts over several traces need: small enough to keep thousands.

    It has one finding a requirement, and of the exchanges one for each method and path, without what they carried.
    """
    trace = judged.trace
    first: dict[tuple[str, str, bool], Exchange] = {}
    latest: dict[tuple[str, str, bool], int] = {}
    # By its calls: the exchanges of a large recording would be read from its file for this.
    for place, call in enumerate(judged.recording.calls):
        route = call.method, call.path, call.incomplete
        if route not in first:
            first[route] = _bare(call.exchange)
        latest[route] = place
    bare = tuple(first[route] for route in sorted(latest, key=latest.__getitem__, reverse=True)[:MAX_PATHS])
    model = trace.model
    if model is not None:
        # Reports count them all.
        model = replace(model, exchanges=tuple(map(_bare, model.exchanges)))
    return replace(
        judged,
        trace=replace(trace, exchanges=bare, model=model),
        judgements=_first_findings(judged.judgements),
        daemon=_first_findings(judged.daemon),
        harness=_first_findings(judged.harness),
    )


def _bare(exchange: Exchange) -> Exchange:
    """An exchange without what it carried."""
    e = exchange
    request = Request(method=e.request.method, path=e.request.path, incomplete=e.is_unhandled)
    return Exchange(seq=e.seq, t0=e.t0, t1=e.t1, request=request, line=e.line)


def _first_findings(judgements: Mapping[str, Judgement]) -> Mapping[str, Judgement]:
    return {name: replace(judgement, findings=judgement.findings[:1]) for name, judgement in judgements.items()}


def together(judged: Sequence[Judged]) -> Mapping[str, Together]:
    """Each requirement over all traces, in the catalogue's order."""
    result = {}
    for name, verdict in fold_verdicts(judged):
        deciding = [each for each in judged if name in each.judgements and each.judgements[name].verdict is verdict]
        evidence = [(each.trace.path, finding) for each in deciding for finding in each.judgements[name].findings[:1]]
        result[name] = Together(verdict, deciding[0].judgements[name].reason, evidence)
    for name, judgement in run_judgements(judged).items():
        evidence = [(None, finding) for finding in judgement.findings]
        result[name] = Together(judgement.verdict, judgement.reason, evidence)
    return result


def verdicts_of(judged: Sequence[Judged]) -> Mapping[str, Verdict]:
    """The verdict of each requirement over all traces, in the catalogue's order."""
    return {name: whole.verdict for name, whole in together(judged).items()}


def run_level_breaches(judged: Sequence[Judged]) -> Judged | None:
    """What only the run as a whole breaches, as one more judged trace without exchanges; None when nothing is."""
    breached = {
        name: judgement for name, judgement in run_judgements(judged).items() if judgement.verdict is not Verdict.PASS
    }
    if not breached:
        return None
    return Judged(Trace(judged[0].trace.header, (), ()), judged[0].daemon_version, breached)
