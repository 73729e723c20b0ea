"""The requirement on injected text: text that the daemon injected is not sent back as words of the conversation."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from signet_conformance.contract import MUST, requirements
from signet_conformance.facts import LIFECYCLE, SAVES, Call, Recording, once_a_recording
from signet_conformance.rules.needles import Distant, Distants, Needles, hashes_of_pieces
from signet_conformance.rules.outcome import PASS, Outcome, fail, in_body, warn
from signet_conformance.rules.transcripts import said_in_lines
from signet_conformance.trace.marks import StepMark

SHORTEST_INJECT = 40
"""Injected text under this many characters is too common to be recognised when it comes back."""
SHORTEST_TRIMMED = 20
"""What is left of such a text without the white space around it; less would be found everywhere."""
_DATE_HEADING = "# Current Date & Time"
_FIRST_MARKS = ("\n", ".", "x")
"""Where nearly all injected texts are taken to pieces: they have several lines, or sentences, or are long."""
_INJECTABLE = ("userMessage", "userPrompt", "transcript", "summary", "content")


class Injects(NamedTuple):
    """What the answers of a recording inject: the number of the first that does, and how the texts are recognised."""

    since: int
    needles: Needles


class Noted(NamedTuple):
    """What the answers of a piece of a recording inject, and what its requests may repeat, in few words.

    `since` is the first exchange that injects; None where none does. `subjects` are the numbers of the calls that are
    looked at, and `pieces` the hashes of the long pieces of their texts between two marks, by mark.
    """

    since: int | None
    texts: Distants
    subjects: array[int]
    pieces: Mapping[str, array[int]]

    def may_repeat(self, injects: Injects) -> bool:
        """False only where no call of the piece can repeat an injected text."""
        return injects.needles.may_occur(self.pieces)


def injected_text_stays_out(recording: Recording) -> Iterator[Outcome]:
    """Text that the daemon injected is not sent back to it as if the user or the model had said it."""
    must = requirements()["SIG-PROMPT-007"].level_at(recording.daemon_version) == MUST
    injects = injects_of(recording)
    if injects is None:
        return
    in_one_line = _in_one_line(recording)
    for call, fields in _subjects(recording):
        if call.seq <= injects.since:
            continue
        hit = _find_injected(injects.needles, fields, call)
        if hit is None and in_one_line is not None:
            hit = _find_injected(in_one_line, ((name, _one_line(text)) for name, text in fields), call)
        if hit is None:
            yield PASS
        else:
            finding = (fail if must else warn)(
                call,
                message=f"text that the daemon injected comes back in {hit[0]}",
                pointer=in_body(hit[0]),
                expected="the conversation without injected text",
                received=f"the inject of #{hit[1]}",
                fold=hit[0],
            )
            yield replace(finding, exchanges=(call.seq, hit[1]))


def _find_injected(needles: Needles, fields: Iterable[tuple[str, str]], call: Call) -> tuple[str, int] | None:
    """The first text of a call that holds what was injected before, by its name, and the number of the answer."""
    found = ((name, needles.first_in(text, before=call.seq)) for name, text in fields)
    return next(((name, seq) for name, seq in found if seq is not None), None)


def _in_one_line(recording: Recording) -> Needles | None:
    """The injected texts, each in one line, where steps are marked: some connectors write a turn of a transcript so."""
    if not recording.is_held or not recording.marks(StepMark):
        return None
    since: dict[str, int] = {}
    for seq, inject in _injecting(recording):
        for text in map(_one_line, _recognisable(inject)):
            if len(text) >= SHORTEST_INJECT:
                since.setdefault(text, seq)
    return Needles(since)


def _one_line(text: str) -> str:
    return " ".join(text.split())


@once_a_recording
def injects_of(recording: Recording) -> Injects | None:
    """What the answers of a recording inject; None where they inject nothing that can be recognised."""
    since = next((seq for seq, _ in _injecting(recording)), None)
    if recording.is_held:
        return _held_injects(recording, since)
    return injects_noted(recording, since, _texts(_injecting(recording)))


def _subjects(recording: Recording) -> Iterator[tuple[Call, list[tuple[str, str]]]]:
    """The calls that may say what was injected, with their texts by name.

    Where steps are marked, lines of JSON are looked through as what they say: line breaks are escaped in them.
    """
    driven = bool(recording.marks(StepMark))
    for call in recording.calls:
        if call.operation in LIFECYCLE or call.operation in SAVES:
            fields = [(name, v) for name in _INJECTABLE if isinstance(v := call.body.get(name), str)]
            if driven:
                fields += [(name, spoken) for name, v in fields for spoken in said_in_lines(v)]
            if fields:
                yield call, fields


def _inject(source: Call) -> str | None:
    """The text that an answer injects, if it can be recognised when it comes back."""
    inject = source.answer_value("inject") if source.accepted else None
    return inject if isinstance(inject, str) and len(inject) >= SHORTEST_INJECT else None


def _held_injects(recording: Recording, first: int | None) -> Injects | None:
    if first is None:
        return None
    since: dict[str, int] = {}
    for seq, inject in _injecting(recording):
        for text in _recognisable(inject):
            since.setdefault(text, seq)
    return Injects(first, Needles(since))


def noted(piece: Recording) -> Noted:
    """What a piece of a recording injects and says."""
    subjects, pieces = array("q"), {mark: array("q") for mark in _FIRST_MARKS}
    for call, fields in _subjects(piece):
        subjects.append(call.seq)
        for _, text in fields:
            for mark, hashes in pieces.items():
                hashes.extend(hashes_of_pieces(text, mark))
    injecting = list(_injecting(piece))
    return Noted(injecting[0][0] if injecting else None, Distants(_texts(injecting)), subjects, pieces)


def _injecting(recording: Recording) -> Iterator[tuple[int, str]]:
    """The numbers of the exchanges whose answers inject something, each with what."""
    return ((call.seq, inject) for call in recording.calls if (inject := _inject(call)) is not None)


def _texts(injecting: Iterable[tuple[int, str]]) -> Iterator[Distant]:
    """By what the injected texts are recognised, in the order of the exchanges."""
    for seq, inject in injecting:
        for number, text in enumerate(_recognisable(inject)):
            yield Distant.of(text, seq * Needles.PLACES + number)


def injects_noted(recording: Recording, since: int | None, texts: Iterable[Distant]) -> Injects | None:
    """The same of a recording whose `texts` stand in its file, given in the order of their places."""
    if since is None:
        return None

    def fetch(place: int) -> str:
        seq, number = divmod(place, Needles.PLACES)
        return list(_recognisable(_inject(recording.by_seq[seq]) or ""))[number]

    return Injects(since, Needles({}, _first_of_each(texts), fetch))


def _first_of_each(texts: Iterable[Distant]) -> Iterator[Distant]:
    """The texts without those that an earlier answer injected already."""
    seen: set[int] = set()
    for text in texts:
        if text.told not in seen:
            seen.add(text.told)
            yield text


def _recognisable(inject: str) -> Iterator[str]:
    """The trimmed inject, and the whole of it without the date heading and the line after, where long enough.

    What follows a heading at the beginning is part of the whole, so the whole need not be looked for as well.
    """
    whole = inject.strip()
    lines = whole.split("\n")
    heading = next((index for index, line in enumerate(lines) if line.strip() == _DATE_HEADING), None)
    rest = "" if heading is None else "\n".join(lines[:heading] + lines[heading + 2 :]).strip()
    if is_known := len(rest) >= SHORTEST_INJECT:
        yield rest
    if len(whole) >= SHORTEST_TRIMMED and not (is_known and heading == 0):
        yield whole
