"""A breach as every report for people shows it: what, where, expected, received, and the exchanges around it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from signet_conformance.contract import Requirement, catalogue
from signet_conformance.engine import Judged
from signet_conformance.errors import printable
from signet_conformance.finding import Finding
from signet_conformance.reports.excerpt import call_line, excerpt
from signet_conformance.reports.sources import Source, source_of
from signet_conformance.reports.values import received_text


class Evidence(Struct, frozen=True):
    """One kind of breach. Every text is one printable line of bounded length; an empty one says nothing.

    `seq` and `line` are the number and the line of the exchange it begins at, None where no exchange shows it.
    `sources` are the places in the connector's code that sent it, the innermost first, where its driver can tell.
    `around` are the exchanges near it, as (is it this exchange, line); `again` the numbers of its repeats.
    """

    what: str
    seq: int | None = None
    line: int | None = None
    where: str = ""
    others: tuple[str, ...] = ()
    pointer: str = ""
    expected: str = ""
    received: str = ""
    sources: tuple[Source, ...] = ()
    around: tuple[tuple[bool, str], ...] = ()
    repeats: int = 0
    again: tuple[int, ...] = ()

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """What is known of it beside what and where, each with its label; what says nothing is left out."""
        sent_by = ", called at ".join(source.words for source in self.sources)
        facts = [*(("with", other) for other in self.others), ("at", self.pointer)]
        facts += [("expected", self.expected), ("received", self.received), ("sent by", sent_by)]
        return [(label, text) for label, text in facts if text]

    @property
    def repeated(self) -> str:
        """How often it occurs beside the first time, and where."""
        shown = ", ".join(f"#{seq}" for seq in self.again[:8]) + (", …" if len(self.again) > 8 else "")
        return f"{self.repeats} more like it" + (f": {shown}" if shown else "")


def model_line(judged: Judged, seq: int) -> str:
    """One line about an exchange with the model, told apart from those with the daemon: its number and its path."""
    exchanges = () if judged.trace.model is None else judged.trace.model.exchanges
    exchange = next((each for each in exchanges if each.seq == seq), None)
    return f"model #{seq}" + ("" if exchange is None else f" {printable(exchange.request.path, 200)}")


def known_requirement(name: str) -> Requirement | None:
    """A requirement of any side; None for a rule of somebody's own."""
    return catalogue().get(name)


def kinds(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings grouped by defect."""
    by_defect: dict[str, list[Finding]] = {}
    for finding in findings:
        by_defect.setdefault(finding.group, []).append(finding)
    return list(by_defect.values())


def evidence(judged: Judged, kind: Sequence[Finding]) -> Evidence:
    """The evidence for one kind of breach in a judged trace."""
    finding, *repeats = kind
    recording = judged.recording
    # A finding may begin at a mark, whose number belongs to no call.
    calls = [recording.by_seq.get(seq) for seq in finding.exchanges[:3]]
    first = calls[0].exchange if calls and calls[0] is not None else None
    return Evidence(
        what=printable(finding.message, 400),
        seq=finding.exchanges[0] if finding.exchanges else None,
        line=None if first is None else first.line,
        where=""
        if first is None
        else f"#{first.seq} {printable(first.request.method, 16)} {printable(first.request.path, 200)},"
        f" on the {finding.side.value}'s side",
        others=(
            *(call_line(other) for other in calls[1:] if other is not None),
            *(model_line(judged, seq) for seq in finding.model[:3]),
        ),
        pointer=printable(finding.pointer, 300),
        expected=printable(finding.expected, 300),
        received=received_text(finding, first),
        sources=() if first is None else source_of(recording, first.seq),
        around=tuple(excerpt(recording, finding.exchanges[0])) if finding.exchanges else (),
        repeats=len(repeats),
        again=tuple(repeat.exchanges[0] for repeat in repeats if repeat.exchanges),
    )
