"""Which rules look at one session after the other, so that a large recording can be judged session by session by them.

Over a recording of exchanges alone such a rule yields what it yields over pieces of it that hold sessions whole, in the
order of the pieces where these follow each other. What it needs of the whole it asks for by `Recording.whole`, and then
it is asked again over the whole: mostly when something went wrong, which other sessions may have to do with.

A rule that is asked again looks at one exchange after the other, once it is known what all sessions hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from signet_conformance.facts import Recording
from signet_conformance.rules import builtin_rules, injected, rules
from signet_conformance.rules.daemon import DAEMON_RULES
from signet_conformance.rules.outcome import Rule
from signet_conformance.rules.prompt import answered_before

_BY_SESSION = frozenset(
    {
        "SIG-HTTP-007", "SIG-HTTP-010", "SIG-HTTP-011", "SIG-HTTP-012", "SIG-HTTP-014", "SIG-HTTP-015", "SIG-START-004",
        "SIG-START-005", "SIG-START-006", "SIG-START-007", "SIG-START-008", "SIG-PROMPT-006", "SIG-END-002",
        "SIG-END-004", "SIG-END-005", "SIG-END-006", "SIG-END-007", "SIG-END-008", "SIG-END-009", "SIG-END-012",
        "SIG-CKPT-001", "SIG-CMP-002", "SIG-CMP-003", "SIG-CMP-004", "SIG-CMP-007", "SIG-CMP-008", "SIG-MEM-005",
        "SIG-SEC-002", "SIG-AGENT-001", "SIG-AGENT-002", "SIG-AGENT-006", "SIG-FAIL-001", "SIG-FAIL-002",
        "SIG-FAIL-003", "SIG-FAIL-005",
    }
)  # fmt: skip
_DAEMON_BY_SESSION = (
    "SIG-DAEMON-003", "SIG-DAEMON-004", "SIG-DAEMON-005", "SIG-DAEMON-006", "SIG-DAEMON-010", "SIG-DAEMON-011",
)  # fmt: skip
ASKED_AGAIN: Mapping[str, Rule] = {"SIG-PROMPT-007": injected.injected_text_stays_out}
"""The rules that are asked again, where what a piece noted does not tell that they have nothing to say of it."""


def session_rules() -> Mapping[str, Rule]:
    """The rules that look at one session after the other, on the connector and on the daemon, by requirement id."""
    built_in = builtin_rules()
    of_connector = {name: rule for name, rule in rules().items() if name in _BY_SESSION and rule is built_in.get(name)}
    return {**of_connector, **{name: DAEMON_RULES[name] for name in _DAEMON_BY_SESSION}}


class Noted(NamedTuple):
    """What rules over the whole recording need of the bodies in a piece of it.

    `answered` are prompts that a transcript shows answered, by numbers; `injected` is what its answers inject and its
    requests may repeat.
    """

    answered: Sequence[tuple[int, int, bool]]
    injected: injected.Noted


def noted_of(piece: Recording) -> Noted:
    """What a piece of whole sessions notes for the rules over the whole."""
    answered = [(prompt.seq, transcript.seq, newer) for prompt, transcript, newer in answered_before(piece)]
    return Noted(answered, injected.noted(piece))


def remember(recording: Recording, pieces: Iterable[Noted]) -> None:
    """Let the rules over a recording have what its pieces noted."""
    notes = list(pieces)
    by_seq = recording.by_seq
    turn = {key: place for place, key in enumerate(recording.hooks_of)} if any(note.answered for note in notes) else {}
    answered = [(by_seq[prompt], by_seq[shown], newer) for note in notes for prompt, shown, newer in note.answered]
    answered.sort(key=lambda known: turn[str(known[0].key)])
    recording.memo[answered_before] = tuple(answered)
    firsts = [note.injected.since for note in notes if note.injected.since is not None]
    texts = merge(*(note.injected.texts for note in notes), key=attrgetter("place"))
    recording.memo[injected.injects_of] = injected.injects_noted(recording, min(firsts, default=None), texts)


def settled(whole: Recording, piece: Noted) -> int | None:
    """How many subjects of a rule that is asked again conform in a piece; None where it has to be asked."""
    injects: injected.Injects | None = whole.memo[injected.injects_of]
    if injects is None:
        return 0
    if piece.injected.may_repeat(injects):
        return None
    return sum(seq > injects.since for seq in piece.injected.subjects)


def recalling(piece: Recording, whole: Recording) -> Recording:
    """A piece whose rules have what the whole recording holds."""
    for fact in (answered_before, injected.injects_of):
        piece.memo[fact] = whole.memo[fact]
    return piece
