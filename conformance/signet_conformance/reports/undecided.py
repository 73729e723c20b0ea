"""The requirements that a run leaves open, and what would settle each: gathered as traces come, told once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from signet_conformance.engine import Judged
from signet_conformance.errors import counted, printable
from signet_conformance.finding import Judgement, Verdict
from signet_conformance.reports.cause_words import MAX_PAGES
from signet_conformance.reports.evidence import known_requirement
from signet_conformance.reports.settling import settled_by
from signet_conformance.reports.terminal import Paragraph, drawn, labelled_command, verdict_text


class Undecided:
    """Why each requirement stays open, and what would settle it, by the first trace that leaves it open."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, str]] = {}
        self._traces: dict[str, int] = {}

    def add(self, judged: Judged) -> None:
        """Take one trace."""
        for name, judgement in judged.judgements.items():
            if judgement.verdict is Verdict.INCONCLUSIVE:
                self._traces[name] = self._traces.get(name, 0) + 1
                if name not in self._first:
                    self._first[name] = (judgement.message, settled_by(judged, judgement))

    def lines(
        self, judgements: Mapping[str, Judgement], width: int, colour: bool = False, *, short: bool = False
    ) -> list[str]:
        """The undecided among `judgements`, those of a run; what has one reason and one way out is one paragraph.

        `short` leaves the reasons out: what is breached is read first. Requirements that another trace decided are
        only named.
        """
        alike: dict[tuple[str, str], list[str]] = {}
        for name, judgement in judgements.items():
            if judgement.verdict is Verdict.INCONCLUSIVE:
                why, way_out = self._first.get(name, ("", ""))
                # What a run says of its own, such as a breach that showed only once, is not what a trace says.
                why = why if why and judgement.message.startswith(why) else judgement.message
                key = ("", way_out) if short and way_out else (printable(why, 300), way_out)
                alike.setdefault(key, []).append(name)
        things: list[RenderableType] = [_paragraph(names, why, way_out) for (why, way_out), names in alike.items()]
        known = [name for names in alike.values() for name in names if known_requirement(name) is not None]
        if known and not short:
            things.append(labelled_command("page", ["signet-conformance", "explain", *known[:MAX_PAGES]]))
        elsewhere = [
            f"{name} in {counted(number, 'trace')}"
            for name, number in self._traces.items()
            if name in judgements and judgements[name].verdict is not Verdict.INCONCLUSIVE
        ]
        if elsewhere:
            things.append(Paragraph(f"undecided, and decided by other traces: {', '.join(elsewhere)}", 0, 4))
        return drawn(things, width, colour)


def _paragraph(names: Sequence[str], why: str, way_out: str) -> Paragraph:
    it = "it" if len(names) == 1 else "them"
    settling = f". To settle {it}: {way_out}." if why else f"; to settle {it}: {way_out}"
    said = f"{f' {why}' if why else ''}{settling if way_out else ''}"
    return Paragraph(Text.assemble(verdict_text(Verdict.INCONCLUSIVE), f" {', '.join(names)}{said}"), 0, 4)
