"""What verdicts over several traces need: the essence of each trace, the evidence of a verdict, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from signet_conformance.engine import JudgedTrace
from signet_conformance.facts import PROMPT
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Finding, Judgement, Verdict
from signet_conformance.rules.submission import turns_to_submit
from signet_conformance.trace import Exchange, Request
from signet_conformance.trace.model import NOT_CARRIED

MAX_KINDS = 20
"""Kinds of breach of one requirement that the essence of one trace keeps."""
MAX_PATHS = 2000
"""Paths that the essence of one trace keeps: a connector that never repeats one must not fill the memory."""


def essence(judged: JudgedTrace) -> JudgedTrace:
    """The part of a judged trace that verdicts over several traces need: small enough to keep thousands.

    It has one finding per requirement and kind, and one exchange per method and path, without bodies.
    """
    trace = judged.trace
    first: dict[tuple[str, str, bool], Exchange] = {}
    latest: dict[tuple[str, str, bool], int] = {}
    # Calls are in memory, while the exchanges of a large recording would have to be read from its file.
    for place, call in enumerate(judged.recording.calls):
        route = call.method, call.path, call.incomplete
        if route not in first:
            first[route] = _bare(call.exchange)
        latest[route] = place
    bare = tuple(first[route] for route in sorted(latest, key=latest.__getitem__, reverse=True)[:MAX_PATHS])
    model = trace.model
    if model is not None:
        # None is left out: reports count them.
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


def evidence_of(judged: Sequence[JudgedTrace], judgement: Judgement) -> Iterator[tuple[str | None, Finding]]:
    """The findings behind a judgement over all traces, each with its file: the first of each kind in each trace.

    Those of the judgement's verdict come first; for a breach, those of other breaches follow. If no trace shows the
    verdict, because the run as a whole or its generated sessions decide it, yield only the judgement's own findings.
    """
    in_traces = [(trace.trace.path, trace.judgements.get(judgement.requirement)) for trace in judged]
    by_file = [(file, each) for file, each in in_traces if each is not None]
    if min((each.verdict for _, each in by_file), key=FOLDING_ORDER.index, default=None) is not judgement.verdict:
        yield from ((None, finding) for finding in judgement.findings)
        return
    for verdict in dict.fromkeys((judgement.verdict, *(BREACHES if judgement.verdict in BREACHES else ()))):
        for file, each in by_file:
            if each.verdict is verdict:
                yield from ((file, finding) for finding in _kinds(each.findings))


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
        """The requirements with a warning in every session."""
        return [name for name, count in self._touched.items() if count and count == self._sessions]


class PromptMeter:
    """Counts the turns of users until a recording shows that a prompt was submitted."""

    def __init__(self) -> None:
        self._turns = 0
        self._submitted = False

    def add(self, judged: JudgedTrace) -> None:
        """Add one judged recording; it does not count if its target does not declare prompts."""
        recording = judged.recording
        if self._submitted or PROMPT not in (recording.declared.capabilities or ()):
            return
        self._submitted = bool(recording.of(PROMPT, cut=True))
        self._turns += turns_to_submit(recording)

    @property
    def unsubmitted(self) -> int:
        """The number of the user's turns if no prompt at all was submitted; else 0."""
        return 0 if self._submitted else self._turns
