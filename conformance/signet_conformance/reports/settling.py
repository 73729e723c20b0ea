"""What would turn an INCONCLUSIVE into a verdict, in one clause."""

from __future__ import annotations

from signet_conformance.engine import Judged
from signet_conformance.finding import Judgement
from signet_conformance.reports.excerpt import exchange_numbered

_STEP_MARKS = "drive the connector with the kit, whose step marks say what the user did"
_WHOLE_SESSION = "record the whole session, from its start to its end"
_DECLARED_AGENT = "declare the agent with --agent ID"

_SETTLED_BY = {
    "SIG-START-006": _STEP_MARKS,
    "SIG-START-007": _DECLARED_AGENT,
    "SIG-PROMPT-003": _STEP_MARKS,
    "SIG-PROMPT-010": _STEP_MARKS,
    "SIG-END-012": "record a second transcript of the session",
    "SIG-SEC-002": "record until the job's id is polled to its end",
    "SIG-SEC-003": "plant a secret and record with --canary-env NAME",
    "SIG-AGENT-002": _DECLARED_AGENT,
    "SIG-AGENT-006": _DECLARED_AGENT,
    "SIG-SESS-001": "record two sessions or more",
    "SIG-FAIL-001": "record on until the next user turn",
    "SIG-FAIL-002": "let the fault last longer than the declared bound",
    "SIG-FAIL-003": "record on until the next hook",
    "SIG-FAIL-005": "record on until the next request",
    "SIG-COV-001": "declare the operations with --capability and judge a whole run of the kit",
}


def settled_by(judged: Judged, judgement: Judgement) -> str:
    """What to record or declare so that the requirement can be decided."""
    for finding in judgement.findings:
        exchange = exchange_numbered(judged.trace, finding.exchanges[0]) if finding.exchanges else None
        if exchange is not None and exchange.request.body is not None and exchange.request.body.kind == "cut":
            return "record with a larger --body-limit, so that the body is kept whole"
    return _SETTLED_BY.get(judgement.requirement, _WHOLE_SESSION)
