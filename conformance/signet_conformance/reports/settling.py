"""What to do so that an INCONCLUSIVE gets a verdict, in one clause."""

from __future__ import annotations

from signet_conformance.contract import requirements
from signet_conformance.engine import Judged
from signet_conformance.finding import Judgement

_WHOLE_SESSION = "record the whole session, from its start to its end"


def settled_by(judged: Judged, judgement: Judgement) -> str:
    """What to record or declare so that the requirement can be decided."""
    for finding in judgement.findings:
        call = judged.recording.by_seq.get(finding.exchanges[0]) if finding.exchanges else None
        if call is not None and call.exchange.request.body is not None and call.exchange.request.body.kind == "cut":
            return "record with a larger --body-limit, so that the body is kept whole"
    requirement = requirements().get(judgement.requirement)
    return (requirement and requirement.settled_by) or _WHOLE_SESSION
