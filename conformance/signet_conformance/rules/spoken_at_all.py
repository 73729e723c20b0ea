"""Whether a recording tests a connector at all."""

from __future__ import annotations

from signet_conformance.facts import Recording
from signet_conformance.rules.transport import FIRST_CALLS
from signet_conformance.trace.marks import StepMark


def was_tested(recording: Recording) -> bool:
    """Whether a recording holds a lifecycle hook or a memory operation.

    Where the kit drove the connector, one of them was accepted with nothing in its way: of a connector that the
    daemon always refuses, nothing is known but that.
    """
    asked = [call for call in recording.calls if call.operation in FIRST_CALLS]
    if not recording.marks(StepMark):
        return bool(asked)
    return any(call.accepted and not recording.timeline.is_disturbed(call) for call in asked)
