"""After a compaction: whether the model goes on from the summary that the daemon keeps."""

from __future__ import annotations

from collections.abc import Iterator

from signet_conformance.facts import COMPLETE, Call, Recording
from signet_conformance.rules.model.given import heard_by
from signet_conformance.rules.model.outcomes import breach, unclear
from signet_conformance.rules.model.standing import Standing, sought
from signet_conformance.rules.model.turns import Turn, turns_of
from signet_conformance.rules.model.wording import marker_lines, plain, says
from signet_conformance.rules.outcome import PASS, Outcome
from signet_conformance.trace.marks import StepMark, StepName


def model_works_with_the_told_summary(recording: Recording) -> Iterator[Outcome]:
    """After a compaction the model is given the summary that the daemon was told."""
    for call in recording.of(COMPLETE):
        summary = call.body.get("summary")
        step = recording.timeline.step_at(call.seq)
        session = recording.timeline.session_of(call.key) or (None if step is None else step.session)
        lines = marker_lines(summary) if isinstance(summary, str) and session is not None else ()
        turn = next((turn for turn in turns_of(recording, session) if turn.high > call.seq), None)
        if turn is None or session is None:
            continue
        # What the daemon has said itself is before the model without the summary.
        heard = heard_by(recording, session, turn.began)
        lines = tuple(line for line in lines if not says(line, heard))
        if lines and not _taken_away(recording, session, call.seq, turn.low):
            yield from _judged(recording, call, session, turn, lines)


def _judged(recording: Recording, call: Call, session: str, turn: Turn, lines: tuple[str, ...]) -> Iterator[Outcome]:
    summary = str(call.body.get("summary"))
    main = [request for request in turn.main if request.t0 >= call.t0]
    if not main or main[0].chained:
        yield unclear(call, asked=turn.asked, message="what the model was asked after the compaction is not known")
        return
    first = main[0]
    wanted = sought(recording, session, call, summary, lines)
    here = wanted.standing_in(first)
    said_before = (said for said in turns_of(recording, session) if said.high <= call.seq)
    if here is Standing.HELD:
        yield PASS
    elif here is not Standing.UNKNOWABLE and (here is not Standing.LACKED or turn.unread):
        yield unclear(call, asked=[first], message=wanted.in_words(first, "the summary"))
    elif here is Standing.LACKED and any(says(plain(said.text), first.users) for said in said_before):
        yield unclear(call, asked=[first], message="what was said before the compaction is still before the model")
    elif here is Standing.LACKED:
        yield breach(
            call,
            asked=[first],
            message="after the compaction the model goes on without the summary that the daemon was told",
            expected=f"a request that holds {summary.strip()[:200]!r}",
            received=first.excerpt,
            fold="without the summary",
        )


def _taken_away(recording: Recording, session: str, low: int, high: int) -> bool:
    """Whether the user cleared the context, or opened the session anew, before the turn."""
    opening = (StepName.CLEAR, StepName.START, StepName.COMPACT, StepName.COMPACTION_COMPLETE)
    return any(
        mark.session == session and low < mark.seq < high and mark.step in opening for mark in recording.marks(StepMark)
    )
