"""The price of conforming: what should be and is not, and which of it touches every session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from signet_conformance.engine import Judged
from signet_conformance.facts import PROMPT
from signet_conformance.finding import Verdict


class PriceMeter:
    """Counts the sessions with a prompt, and those of them that each warning touches, trace by trace."""

    def __init__(self) -> None:
        self._sessions = 0
        self._touched: Counter[str] = Counter()

    def add(self, judged: Judged) -> None:
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
