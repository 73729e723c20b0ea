"""Several judged traces together: the verdict of each requirement over all of them, with each kind of evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.engine import JudgedTrace, fold_verdicts, run_judgements
from signet_conformance.facts import PROMPT
from signet_conformance.finding import BREACHES, Finding, Judgement, Reason, Verdict
from signet_conformance.rules.user_words import turns_to_submit
from signet_conformance.trace import Exchange, Request, Trace
from signet_conformance.trace.model import NOT_CARRIED

MAX_KINDS = 20
"""Kinds of breach of one requirement that the essence of one trace keeps."""
MAX_PATHS = 2000
"""Paths that the essence of one trace keeps: a connector that never repeats one must not fill the memory."""


class CombinedVerdict(Struct, frozen=True):
    """One requirement over several traces.

    `evidence` is (file, finding): of each trace the first finding of each kind, those of the worst verdict first.
    """

    verdict: Verdict
    reason: Reason
    evidence: Sequence[tuple[str | None, Finding]]


def essence(judged: JudgedTrace) -> JudgedTrace:
    """The part of a judged trace that verdicts over several traces need: small enough to keep thousands.

    It has one finding a requirement and kind, and of the exchanges one for each method and path, without what they
    carried.
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
    e = exchange
    request = Request(method=e.request.method, path=e.request.path, incomplete=e.is_unhandled)
    error = e.error if e.error == NOT_CARRIED else None
    return Exchange(seq=e.seq, t0=e.t0, t1=e.t1, request=request, error=error, line=e.line)


def _first_findings(judgements: Mapping[str, Judgement]) -> Mapping[str, Judgement]:
    return {name: replace(judgement, findings=_kinds(judgement.findings)) for name, judgement in judgements.items()}


def _kinds(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    first: dict[str, Finding] = {}
    for finding in findings:
        if len(first) < MAX_KINDS:
            first.setdefault(finding.kind, finding)
    return tuple(first.values())


def together(judged: Sequence[JudgedTrace]) -> Mapping[str, CombinedVerdict]:
    """Each requirement over all traces, in the catalogue's order."""
    result = {}
    for name, verdict in fold_verdicts(judged):
        shown = [verdict, *(other for other in BREACHES if verdict in BREACHES and other is not verdict)]
        by_verdict: dict[Verdict, list[tuple[str | None, Judgement]]] = {each: [] for each in shown}
        for each in judged:
            judgement = each.judgements.get(name)
            if judgement is not None and judgement.verdict in by_verdict:
                by_verdict[judgement.verdict].append((each.trace.path, judgement))
        evidence = [
            (file, finding)
            for deciding in by_verdict.values()
            for file, judgement in deciding
            for finding in _kinds(judgement.findings)
        ]
        result[name] = CombinedVerdict(verdict, by_verdict[verdict][0][1].reason, evidence)
    for name, judgement in run_judgements(judged).items():
        evidence = [(None, finding) for finding in judgement.findings]
        result[name] = CombinedVerdict(judgement.verdict, judgement.reason, evidence)
    return result


def run_level_breaches(judged: Sequence[JudgedTrace]) -> JudgedTrace | None:
    """What only the run as a whole breaches, as one more judged trace without exchanges; None when nothing is."""
    breached = {
        name: judgement for name, judgement in run_judgements(judged).items() if judgement.verdict is not Verdict.PASS
    }
    if not breached:
        return None
    return JudgedTrace(Trace(judged[0].trace.header, (), ()), judged[0].daemon_version, breached)


class SessionMeter:
    """Counts the sessions with a prompt, and those of them that each warning touches, trace by trace."""

    def __init__(self) -> None:
        self._sessions = 0
        self._touched: Counter[str] = Counter()

    def add(self, judged: JudgedTrace) -> None:
        """Take one judged trace into account."""
        warned = [judgement for judgement in judged.judgements.values() if judgement.verdict is Verdict.WARN]
        keys = {call.key for call in judged.recording.of(PROMPT, cut=True) if call.key is not None}
        self._sessions += len(keys)
        for judgement in warned:
            numbers = {number for finding in judgement.findings for number in finding.exchanges}
            calls = (judged.recording.by_seq.get(number) for number in numbers)
            self._touched[judgement.requirement] += len(keys & {call.key for call in calls if call is not None})

    def in_every_session(self) -> Sequence[str]:
        """The requirements that are broken in each session."""
        return [name for name, count in self._touched.items() if count and count == self._sessions]


class PromptMeter:
    """Counts what the user said and what was submitted, recording by recording."""

    def __init__(self) -> None:
        self._turns = 0
        self._submitted = False

    def add(self, judged: JudgedTrace) -> None:
        """Take in one judged recording; those whose target does not declare prompts do not count."""
        recording = judged.recording
        if self._submitted or PROMPT not in (recording.declared.capabilities or ()):
            return
        self._submitted = bool(recording.of(PROMPT, cut=True))
        self._turns += turns_to_submit(recording)

    @property
    def unsubmitted(self) -> int:
        """The number of the user's turns where no prompt at all was submitted; 0 where one was."""
        return 0 if self._submitted else self._turns
