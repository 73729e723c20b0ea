"""Whether a text stands in a request to the model, by those of its lines that can have come from nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from math import inf

from msgspec import Struct

from signet_conformance.facts import START, Call, Recording
from signet_conformance.rules.model.asked import Asked
from signet_conformance.rules.model.given import heard_by
from signet_conformance.rules.model.turns import TOLERANCE_S, model_requests, session_asking, turns, turns_of
from signet_conformance.rules.model.wording import presence, says, says_left_out
from signet_conformance.trace.marks import StepMark, StepName

_DROPPING = frozenset({StepName.COMPACT, StepName.COMPACTION_COMPLETE, StepName.CLEAR, StepName.START})
"""Steps after which the history of a session is gone from its requests."""


class Standing(Enum):
    """How much of a text a request holds."""

    HELD = auto()
    PARTLY = auto()
    UNTOLD = auto()
    """The lines that it holds may have come from elsewhere."""
    LACKED = auto()
    UNKNOWABLE = auto()
    """It would hold each of the text's lines without it, too."""


class Sought(Struct, frozen=True):
    """A text that a request should hold.

    `lines` are those that it is known by, `telling` those of them that come from nowhere else, `memories` those of
    them that matter most, if there are any.
    """

    text: str
    lines: tuple[str, ...]
    telling: tuple[str, ...]
    memories: tuple[str, ...] = ()

    def standing_in(self, request: Asked) -> Standing:
        """How much of the text a request holds; half of its lines are enough, and one where it says what it lacks."""
        if not self.telling and self._holds(request, self.lines):
            return Standing.UNKNOWABLE
        here = presence(self.telling, request.everything)
        if here.absent:
            return Standing.UNTOLD if self._may_stand_there(request) else Standing.LACKED
        if self._is_shortened_in(request):
            return Standing.HELD
        if not here.mostly:
            return Standing.PARTLY
        return Standing.HELD if not self.memories or self._holds(request, self.memories) else Standing.UNTOLD

    def in_words(self, request: Asked, what: str) -> str:
        """Why it is left open whether a request holds the text, `what` by name."""
        here = presence(self.telling, request.everything)
        if here.mostly:
            return f"of {what} only lines are before the model that a program may know by itself, and no memory"
        return f"only {here.present} of {here.total} lines of {what} are before the model"

    def _may_stand_there(self, request: Asked) -> bool:
        """Whether lines of it stand in a request, and it is not plain that those which tell should."""
        if not self._holds(request, self.lines):
            return False
        decisive = any(line in self.telling for line in self.memories) or 2 * len(self.telling) >= len(self.lines)
        return not decisive or self._is_shortened_in(request)

    def _is_shortened_in(self, request: Asked) -> bool:
        return any(says_left_out(part.text, self.lines, self.text) for part in request.parts)

    @staticmethod
    def _holds(request: Asked, lines: Sequence[str]) -> bool:
        return any(says(line, request.everything) for line in lines)


def sought(
    recording: Recording, session: str, call: Call, text: str, lines: tuple[str, ...], memories: tuple[str, ...] = ()
) -> Sought:
    """A text that came with a call. A line that stood before the model without that call tells nothing.

    What the system text of each session holds, a program may know by itself; but where nothing else is left, what the
    daemon had given to each of them does tell, unless it is identity.
    """
    before = _stood_before(recording, session, call)
    new = [line for line in lines if not any(says(line, request.everything) for request in before)]
    telling = [line for line in new if not _is_common(recording, line)]
    if not telling:
        told = memories if call.operation == START else new
        telling = [line for line in new if line in told and _was_given(recording, line)]
    return Sought(text, lines, tuple(telling), memories)


def _stood_before(recording: Recording, session: str, call: Call) -> Sequence[Asked]:
    """The newest request of a session's turns before a call, those after it, and those that came before any step."""
    times = {mark.seq: mark.t for mark in recording.trace.marks}
    steps = (mark for mark in recording.marks(StepMark) if mark.session == session and mark.step in _DROPPING)
    dropped = max((times[mark.seq] for mark in steps if mark.seq < call.seq), default=-inf)
    early = [each for each in model_requests(recording) if each.t0 < call.t0]
    of_none = [each for each in early if session_asking(recording, each) is None]
    own = [each for each in early if session_asking(recording, each) == session and each.t0 >= dropped]
    main = {each.seq for turn in turns_of(recording, session) for each in turn.main}
    newest = max((each.t0 for each in own if each.seq in main), default=-inf)
    return [*of_none, *(each for each in own if each.t0 >= newest)]


def _is_common(recording: Recording, line: str) -> bool:
    """Whether a line stands in the system text of each session, of which there are several."""
    sessions = _main_requests(recording).values()
    return len(sessions) > 1 and all(any(says(line, each.system) for each in requests) for requests in sessions)


def _was_given(recording: Recording, line: str) -> bool:
    """Whether the daemon had said a line to each session when it stood in its system text."""
    for session, requests in _main_requests(recording).items():
        first = next(each for each in requests if says(line, each.system))
        if not says(line, heard_by(recording, session, first.t0 + TOLERANCE_S)):
            return False
    return True


def _main_requests(recording: Recording) -> Mapping[str, Sequence[Asked]]:
    """The requests of each session's turns."""
    known: dict[str, list[Asked]] | None = recording.memo.get(_main_requests)
    if known is None:
        known = {}
        for turn in turns(recording):
            if turn.session is not None and turn.main:
                known.setdefault(turn.session, []).extend(turn.main)
        recording.memo[_main_requests] = known
    return known
