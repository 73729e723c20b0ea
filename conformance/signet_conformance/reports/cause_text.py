"""Causes in a terminal: a block for each as long as there is room; in a summary, one line for each kind of breach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from signet_conformance.errors import counted, printable
from signet_conformance.finding import BREACHES, Judgement, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.outcome.generated_summary import breach_lines
from signet_conformance.reports.causes import Cause, Causes
from signet_conformance.reports.command_lines import explain_words
from signet_conformance.reports.evidence import Evidence, known_requirement
from signet_conformance.reports.terminal import (
    MAX_WIDTH,
    MIN_WIDTH,
    STRONG,
    Paragraph,
    draw,
    labelled,
    labelled_command,
    labelled_line,
    one_line,
    verdict_text,
)

MAX_ALSO = 2
"""Other requirements of one cause that are shown with what to change; of more, only the names."""
MOST_LINES = 340
"""Lines of all causes together; if there would be more, the last causes are shortened."""


class Detail(IntEnum):
    """How much of a cause is shown."""

    LINE = 0
    BRIEF = 1
    FULL = 2


class CauseText(Struct, frozen=True):
    """How causes are drawn.

    `width` is in columns, `options` are those of the commands that judge again, and `whole` names all traces.
    `generated` gives the lines about generated sessions that belong below a requirement.
    """

    width: int = 80
    colour: bool = False
    options: Sequence[str] = ()
    whole: Sequence[str] = ()
    generated: Callable[[str], Sequence[str]] = lambda _: ()

    @classmethod
    def of_run(cls, conclusion: Conclusion, folder: str, width: int, *, colour: bool = False) -> CauseText:
        """For a driven run whose traces are in `folder`."""
        breaches = () if conclusion.generated is None else conclusion.generated.breaches
        return cls(width, colour, conclusion.terms.words(), [folder], lambda name: breach_lines(breaches, name))

    def blocks(
        self, causes: Sequence[Cause], detail: Detail = Detail.FULL, most_lines: int = MOST_LINES
    ) -> Sequence[Sequence[str]]:
        """Every cause as a block of lines that is complete by itself, in this detail as far as there is room."""
        drawn_blocks = [self.lines(cause, detail) for cause in causes]
        over = sum(len(lines) + 1 for lines in drawn_blocks) - most_lines
        for less in (Detail.BRIEF, Detail.LINE):
            for number in reversed(range(len(causes))):
                if over <= 0:
                    break
                shorter = self.lines(causes[number], less)
                over -= len(drawn_blocks[number]) - len(shorter)
                drawn_blocks[number] = shorter
        return drawn_blocks

    def of_requirement(self, causes: Sequence[Cause], name: str) -> str:
        """The causes of one requirement, to be read alone: those that it leads, and those that another one leads."""
        leading = [line for cause in causes if cause.requirement == name for line in self.lines(cause)]
        following = (cause for cause in causes if any(other.requirement == name for other in cause.also))
        blocks = ["\n".join(leading)] if leading else []
        blocks += ["\n".join(draw([*self._following(cause, name)], self.width, self.colour)) for cause in following]
        return "\n\n".join(blocks)

    def _following(self, cause: Cause, name: str) -> Iterator[RenderableType]:
        requirement, breach = known_requirement(name), cause.breach_of[name]
        level = f" {breach.level}" if breach.level else ""
        yield Text.assemble(verdict_text(breach.verdict), " ", (name, STRONG), level)
        if requirement is not None:
            yield Paragraph(requirement.title, 2)
        yield from _example(breach, in_file=cause.of > 1, around=False)
        if where := extent(cause):
            yield labelled("seen", where)
        yield labelled("cause", f"that of {cause.requirement}, which shows it with the exchanges around it")
        if requirement is not None:
            yield labelled("change", requirement.fix)
        for line in self.generated(name):
            yield _generated_line(line)
        yield from self._commands(cause)

    def lines(self, cause: Cause, detail: Detail = Detail.FULL) -> list[str]:
        """One cause in this detail."""
        parts = self._in_one_paragraph(cause) if detail is Detail.LINE else self._block(cause, detail)
        return draw([*parts], self.width, self.colour)

    def row(self, cause: Cause) -> str:
        """One cause in one line, cut to the width."""
        where = f"in {cause.traces:,} of {counted(cause.of, _noun(cause))}: " if cause.of > 1 and cause.traces else ""
        line = Text.assemble(_head(cause, level=False), f" {where}{'' if cause.says else cause.first.what}")
        line.truncate(max(MIN_WIDTH, self.width), overflow="ellipsis")
        return draw([one_line(line)], MAX_WIDTH, self.colour)[0]

    def _in_one_paragraph(self, cause: Cause) -> Iterator[RenderableType]:
        shown = cause.first
        place = shown.place or (shown.where if cause.of == 1 else "")
        parts = [shown.what, shown.expected and f"expected {shown.expected}", extent(cause), place]
        yield Paragraph(Text.assemble(_head(cause), f" {', '.join(filter(None, parts))}"), 0, 4)
        if (requirement := known_requirement(cause.requirement)) is not None:
            yield labelled("change", requirement.fix)
        yield from self._commands(cause, page=False)

    def _block(self, cause: Cause, detail: Detail) -> Iterator[RenderableType]:
        requirement, first = known_requirement(cause.requirement), cause.first
        yield _head(cause)
        if requirement is not None and not cause.says:
            yield Paragraph(requirement.title, 2)
        breaches = cause.breaches[: MAX_PROBLEMS if detail is Detail.FULL and not cause.says else 1]
        for breach in breaches:
            yield from [Text()] * (breach is not first)
            yield from _example(breach, in_file=cause.of > 1, around=breach is first and detail is Detail.FULL)
        for label, text in cause_rows(cause, self._also(cause, detail), len(breaches)):
            if label != "why" or detail is Detail.FULL:
                yield labelled(label, text)
        for line in self._generated(cause):
            yield _generated_line(line)
        yield from self._commands(cause)

    def _also(self, cause: Cause, detail: Detail) -> Iterator[Text]:
        if len(cause.also) > MAX_ALSO or detail is not Detail.FULL or cause.says:
            for verdict in BREACHES:
                names = [f"{other.requirement}{known_words(other)}" for other in cause.also if other.verdict is verdict]
                if names:
                    yield Text.assemble(verdict_text(verdict), f" {', '.join(names)}")
            return
        for other in cause.also:
            known = known_requirement(other.requirement)
            level = f" {other.level}" if other.level else ""
            change = f". {known.fix}" if known is not None else ""
            head = f" {other.requirement}{level}{known_words(other)}: {other.what}{change}"
            yield Text.assemble(verdict_text(other.verdict), head)

    def _generated(self, cause: Cause) -> Sequence[str]:
        # For a named mistake, one example is enough.
        names = [cause.requirement] if cause.says else cause.requirements
        return list(dict.fromkeys(line for name in names for line in self.generated(name)))

    def _commands(self, cause: Cause, *, page: bool = True) -> Iterator[RenderableType]:
        if words := replay_words(cause, self.options, self.whole):
            yield labelled_command("replay", words)
        if page and (words := explain_words(cause.requirements)):
            yield labelled_command("page", words)


def _generated_line(line: str) -> RenderableType:
    """A line about a generated session; the command that replays it stays on one line, to be pasted."""
    if line.startswith("replay: "):
        return labelled_line("replay", line.removeprefix("replay: "))
    return labelled("generated", line)


def known_words(shown: Cause | Evidence) -> str:
    """The note after a name if the failure is known."""
    return ", known" if shown.is_known else ""


def _head(cause: Cause, *, level: bool = True) -> Text:
    known = known_words(cause)
    if cause.says:
        names = f" ({cause.requirement}{f' and {len(cause.also)} more' if cause.also else ''})"
        return Text.assemble(verdict_text(cause.verdict), " ", (cause.says, STRONG), names, known)
    aside = f" {cause.level}" if level and cause.level else ""
    return Text.assemble(verdict_text(cause.verdict), " ", (cause.requirement, STRONG), aside, known)


def _example(breach: Evidence, *, in_file: bool, around: bool) -> Iterator[RenderableType]:
    """One problem: what, where, with, at, expected, received, trace; where only one trace is judged, its repeats."""
    for name, text in breach.facts:
        if name != "in":
            yield labelled(name, text)
        elif in_file:
            yield labelled_line(name, text)
    label = "trace"
    for breaching, line in breach.around if around else ():
        marked = Text(f"{'>' if breaching else ' '} {line}", STRONG if breaching else "")
        yield labelled(label, marked, hanging=4)
        label = ""
    if breach.repeats and not in_file:
        yield labelled("again", breach.repeated)


def kind_lines(
    causes: Sequence[Cause],
    judgements: Mapping[str, Judgement],
    known: Container[str],
    width: int | None,
    colour: bool = False,
) -> list[str]:
    """One line for each kind of breach of a requirement, the worst first, and one for each undecided requirement.

    Lines are wrapped at `width` columns unless it is None; nothing is cut.
    """
    kinds: dict[str, list[tuple[Evidence, str]]] = {}
    for cause in causes:
        for problem in cause.problems:
            for name, breach in problem.breaches.items():
                kinds.setdefault(name, []).append((breach, extent_of_kind(cause, breach, problem.calls)))
    lines: list[RenderableType] = []
    for verdict in (*BREACHES, Verdict.INCONCLUSIVE):
        for name, judgement in judgements.items():
            if judgement.verdict is verdict:
                aside = ", known" if name in known else ""
                shown = sorted(kinds.get(name, ()), key=lambda kind: kind[0].rank)
                texts = [(breach.verdict, _kind_line(breach, where)) for breach, where in shown]
                for of_kind, text in texts or [(verdict, printable(judgement.message, 300))]:
                    line = Text.assemble(verdict_text(of_kind), " ", (name, STRONG), f"{aside} {text}")
                    lines.append(one_line(line) if width is None else Paragraph(line, 0, 4))
    return draw(lines, width or MAX_WIDTH, colour)


def run_summary(causes: Causes, conclusion: Conclusion, width: int | None, colour: bool = False) -> list[str]:
    """The lines of `kind_lines` over a run: first the connector's, then those about requests to the model."""
    known = conclusion.known_reasons
    lines = kind_lines(causes.connector(), conclusion.judgements, known, width, colour)
    return lines + kind_lines(causes.harness(), conclusion.at_model, (), width, colour)


def _kind_line(breach: Evidence, where: str) -> str:
    # A received value that no request shows, such as a handler's exception, is only in the finding.
    is_shown = bool(breach.pointer) or breach.received.strip('"') in breach.what
    what = breach.what if is_shown else f"{breach.what} ({breach.received})"
    return f"{what}, {where}" if where else what


MAX_OPERATIONS = 8
"""How many operations are listed with their calls; the others are only counted."""
MAX_PROBLEMS = 3
"""How many problems of one cause are shown with an example; the others are counted."""


_Drawn = TypeVar("_Drawn")


def cause_rows(
    cause: Cause, also: Iterable[_Drawn], examples: int = MAX_PROBLEMS
) -> Iterator[tuple[str, str | _Drawn]]:
    """The labelled rows below the examples of a cause; `also` are its breaches of other requirements, as drawn.

    Kinds of breach beyond the number of `examples` are counted.
    """
    if note := _level_note(cause):
        yield "level", note
    if rest := cause.breaches[examples:]:
        count = counted(sum(breach.times for breach in rest), "finding")
        yield "more", f"{counted(len(rest), 'other kind')}, {count}: --json lists them"
    if where := extent(cause):
        yield "seen", where
    yield from (("also", other) for other in also)
    if (requirement := known_requirement(cause.requirement)) is not None:
        yield "why", requirement.why
        yield "change", requirement.fix
    if reason := cause.known_reason:
        yield "known", f"{'' if cause.is_known else 'in a part of them: '}{reason}"


def extent(cause: Cause) -> str:
    """How widely a cause shows: scenarios, sessions and calls. Empty if it shows once, in the only trace."""
    calls = cause.calls
    if not cause.traces or (cause.of == 1 and calls.total() <= 1):
        return ""
    parts = [f"{cause.traces:,} of {counted(cause.of, _noun(cause))}"] if cause.of > 1 else []
    parts += [counted(cause.sessions, "session")] if cause.sessions else []
    parts += [counted(calls.total(), "call")] if calls else []
    return f"in {', '.join(parts)}{_operations(calls)}"


def _operations(calls: Counter[str]) -> str:
    parts = [f"{name} {count:,}" if len(calls) > 1 else name for name, count in calls.most_common(MAX_OPERATIONS)]
    if (more := len(calls) - MAX_OPERATIONS) > 0:
        parts.append(counted(more, "more operation"))
    return f" ({', '.join(parts)})" if parts else ""


def _level_note(cause: Cause) -> str:
    """Why a breached MUST only warns, in the words of its entry; empty for any other verdict or level."""
    requirement = known_requirement(cause.requirement)
    if requirement is None or cause.verdict is not Verdict.WARN or cause.first.level != "MUST":
        return ""
    warned = [said.strip(" .") for said in requirement.verdict.split(". ") if "WARN" in said]
    return f"a MUST, but its entry says: {'. '.join(warned)}" if warned else "a MUST that only warns here"


def replay_words(cause: Cause, options: Sequence[str], whole: Sequence[str] = ()) -> Sequence[str]:
    """The command that judges the example again; `options` are those of the run, `whole` names all its traces.

    Empty for the daemon's and the harness's requirements, which `check -k` does not take.
    """
    requirement = known_requirement(cause.requirement)
    if requirement is not None and requirement.side != "connector":
        return ()
    files = [cause.first.path] if cause.first.path else list(whole) or ["TRACE"]
    return ["signet-conformance", "check", *files, *options, "-k", cause.requirement]


def extent_of_kind(cause: Cause, breach: Evidence, calls: Counter[str]) -> str:
    """How widely a problem with these calls breaches one of its requirements; empty if once.

    Several operations follow the count, since the example names only one.
    """
    parts = (
        [f"in {len(breach.traces):,} of {counted(cause.of, _noun(cause))}"] if cause.of > 1 and breach.traces else []
    )
    several = len(calls) > 1 and calls.total() == breach.times
    parts += [f"{breach.times:,} times{_operations(calls) if several else ''}"] if breach.times > 1 else []
    return ", ".join(parts)


def _noun(cause: Cause) -> str:
    return "scenario" if cause.scenarios else "trace"
