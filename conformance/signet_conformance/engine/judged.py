"""What came of judging: one trace, or the traces of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from signet_conformance.facts import Recording
from signet_conformance.finding import Judgement, Verdict
from signet_conformance.trace import Trace


class Judged(Struct, frozen=True, dict=True):
    """One trace with a judgement for every requirement of the catalogue, in its order.

    `daemon` and `harness` hold the judgements of these sides, apart: they make no verdict of the connector's worse.
    The harness's are drawn from what reached its model.
    """

    trace: Trace
    daemon_version: str
    judgements: Mapping[str, Judgement]
    daemon: Mapping[str, Judgement] = field(default_factory=dict)
    harness: Mapping[str, Judgement] = field(default_factory=dict)

    # No field, so that `replace` does not hand it on: a trace that was replaced has its own.
    @cached_property
    def recording(self) -> Recording:
        """The trace as rules read it, built once: the one that was judged."""
        return Recording(self.trace, self.daemon_version)

    @classmethod
    def of(
        cls,
        recording: Recording,
        judgements: Mapping[str, Judgement],
        daemon: Mapping[str, Judgement],
        harness: Mapping[str, Judgement],
    ) -> Judged:
        """What came of judging a recording."""
        recording.memo.clear()  # what rules remembered: only they read it
        judged = cls(recording.trace, recording.daemon_version, judgements, daemon, harness)
        judged.__dict__["recording"] = recording
        return judged

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict of each requirement on the connector."""
        return {name: judgement.verdict for name, judgement in self.judgements.items()}


class JudgedRun(Struct, frozen=True):
    """Several traces judged, and the judgement of each requirement over all of them."""

    traces: Sequence[Judged]
    together: Mapping[str, Judgement]
