"""After a compaction: whether the model goes on from the summary that the daemon keeps."""

from __future__ import annotations

from collections.abc import Iterator

from signet_conformance.facts import COMPLETE, Recording
from signet_conformance.rules.model.given import heard_by
from signet_conformance.rules.model.outcomes import breach, unclear
from signet_conformance.rules.model.turns import turns_of
from signet_conformance.rules.model.wording import marker_lines, plain, presence, says, shortened
from signet_conformance.rules.outcome import PASS, Outcome
from signet_conformance.rules.steps import session_of, step_before
from signet_conformance.trace.marks import StepMark, StepName


def model_works_with_the_told_summary(recording: Recording) -> Iterator[Outcome]:
    """After a compaction the model is given the summary that the daemon was told."""
    for call in recording.of(COMPLETE):
        summary = call.body.get("summary")
        step = step_before(recording, call.seq)
        session = session_of(recording, call.key) or (None if step is None else step.session)
        lines = marker_lines(summary) if isinstance(summary, str) and session is not None else ()
        # What the daemon has said itself is before the model without the summary.
        lines = tuple(line for line in lines if not says(line, heard_by(recording, str(session))))
        turn = next((turn for turn in turns_of(recording, session) if turn.high > call.seq), None)
        if not lines or session is None or turn is None or _taken_away(recording, session, call.seq, turn.low):
            continue
        main = [request for request in turn.main if request.t0 >= call.t0]
        if not main or main[0].chained:
            yield unclear(call, asked=turn.asked, message="what the model was asked after the compaction is not known")
            continue
        here = presence(lines, main[0].everything)
        if here.mostly or (not here.absent and shortened(part.text for part in main[0].parts)):
            yield PASS
        elif not here.absent or turn.unread:
            message = f"only {here.present} of {here.total} lines of the summary are before the model"
            yield unclear(call, asked=main[:1], message=message)
        elif any(
            says(plain(said.text), main[0].users) for said in turns_of(recording, session) if said.high <= call.seq
        ):
            yield unclear(call, asked=main[:1], message="what was said before the compaction is still before the model")
        else:
            yield breach(
                call,
                asked=main[:1],
                message="after the compaction the model goes on without the summary that the daemon was told",
                expected=f"a request that holds {str(summary).strip()[:200]!r}",
                received=main[0].excerpt,
                fold="without the summary",
            )


def _taken_away(recording: Recording, session: str, low: int, high: int) -> bool:
    """Whether the user cleared the context, or opened the session anew, before the turn."""
    opening = (StepName.CLEAR, StepName.START, StepName.COMPACT, StepName.COMPACTION_COMPLETE)
    return any(
        mark.session == session and low < mark.seq < high and mark.step in opening for mark in recording.marks(StepMark)
    )
