"""What to do so that an INCONCLUSIVE gets a verdict, in one clause."""

from __future__ import annotations

from signet_conformance.contract import requirements
from signet_conformance.engine import Judged
from signet_conformance.finding import Judgement
from signet_conformance.trace.marks import StepMark, marks_of

_BY_MARKS = "whose step marks say what the user did"
_BY_A_WHOLE_RUN = "a whole run of the kit"
_WHOLE_SESSION = "record the whole session, from its start to its end"


def settled_by(judged: Judged, judgement: Judgement) -> str:
    """What to record or declare so that the requirement can be decided."""
    for finding in judgement.findings:
        call = judged.recording.by_seq.get(finding.exchanges[0]) if finding.exchanges else None
        if call is not None and call.exchange.request.body is not None and call.exchange.request.body.kind == "cut":
            return "record with a larger --body-limit, so that the body is kept whole"
    requirement = requirements().get(judgement.requirement)
    way_out = (requirement and requirement.settled_by) or _WHOLE_SESSION
    # The kit has driven it already: what is missing is something else.
    if way_out.endswith(_BY_MARKS) and next(marks_of(judged.trace, StepMark), None) is not None:
        return "mend what else the request breaches, and drive it again"
    if way_out.endswith(_BY_A_WHOLE_RUN) and judged.trace.part:
        return "let every scenario be performed to its end, without -k"
    return way_out
