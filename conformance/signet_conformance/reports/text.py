"""The report for people, except its causes: what was judged, what is undecided or known, counts, the closing line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from signet_conformance.contract import MUST, catalogue, requirements
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import KitError, NothingTestedError, counted, first_of, printable
from signet_conformance.facts.steps import skipped_words
from signet_conformance.files import shown_path
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Judgement, Verdict
from signet_conformance.outcome.broken_off import broke_off
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.outcome.coverage import Coverage
from signet_conformance.outcome.known_failures import KnownInRun
from signet_conformance.reports.command_lines import explain_note, explain_words
from signet_conformance.reports.remarks import remarks
from signet_conformance.reports.terminal import (
    MAX_WIDTH,
    STRONG,
    VERDICT_STYLES,
    Paragraph,
    draw,
    labelled,
    labelled_command,
    one_line,
    usable_width,
    verdict_text,
)
from signet_conformance.trace.marks import StepMark, marks_of

_SHORT = {Verdict.INCONCLUSIVE: "INC", Verdict.NOT_APPLICABLE: "N/A"}
_COLUMNS = {verdict: _SHORT.get(verdict, verdict.value) for verdict in FOLDING_ORDER}
_COLUMN_WIDTH = 6
_DIMENSION_WIDTH = 13
_LEAST_NAME_WIDTH = 16
MAX_ROWS = 5
"""How many traces get a line each; more are counted together."""


_APART = "separate from the connector's verdicts and the exit status"


def daemon_side_lines(width: int) -> list[str]:
    """The heading of the daemon's breaches, which change no verdict of the connector."""
    return draw([Paragraph(f"On the daemon's side, {_APART}:")], width)


def model_side_lines(
    judged: Sequence[JudgedTrace], at_model: Mapping[str, Judgement], width: int, colour: bool
) -> list[str]:
    """Counts of what reached the harness's model, and what stays open of it; empty if nothing was recorded there."""
    models = [each.trace.model for each in judged if each.trace.model is not None]
    if not models:
        return []
    asked = counted(sum(len(model.exchanges) for model in models), "exchange")
    if all(model.header.played for model in models):
        asked += ", written by the host that the kit plays; --harness real asks the real one"
    undecided = (
        _requirement_paragraph(judgement, f"{printable(judgement.message, 200)}.{explain_note(judgement.requirement)}")
        for judgement in at_model.values()
        if judgement.verdict is Verdict.INCONCLUSIVE
    )
    remarked = (
        _requirement_paragraph(judgement, judgement.message)
        for judgement in at_model.values()
        if judgement.verdict is Verdict.PASS and ";" in judgement.message
    )
    counts = _verdict_counts(judgement.verdict for judgement in at_model.values())
    head = Paragraph(f"What reached the model ({asked}), {_APART}: {counts}")
    return draw([head, *remarked, *undecided], width, colour)


def _model_closing_line(conclusion: Conclusion, status: int) -> str:
    """The verdict, in one line, of a run that judged only what reached the model."""
    where = counted(len(conclusion.judged), "trace")
    if status == NothingTestedError.exit_status:
        why = next((judgement.message for judgement in conclusion.at_model.values()), "no trace was judged")
        return f"nothing was tested in {where}: {printable(why, 200)} (exit {status})"
    counts = _verdict_counts(judgement.verdict for judgement in conclusion.at_model.values())
    return f"at the model: {counts} in {where}, {_APART} (exit {status})"


def _verdict_counts(verdicts: Iterable[Verdict], counted_ones: Sequence[Verdict] = FOLDING_ORDER) -> str:
    tally = Counter(verdicts)
    return ", ".join(f"{tally[verdict]} {verdict}" for verdict in counted_ones if tally[verdict])


def side_summary_lines(judged: Sequence[JudgedTrace], width: int = 80) -> list[str]:
    """The breaches of daemon and harness over several traces, one paragraph per requirement."""
    paragraphs = []
    for name, requirement in catalogue().items():
        sides = [trace.harness if requirement.side == "harness" else trace.daemon for trace in judged]
        judgements = [side[name] for side in sides if name in side]
        breaches = [judgement for judgement in judgements if judgement.verdict in BREACHES]
        if breaches:
            where = counted(len(breaches), "trace")
            message = printable(breaches[0].message, 200)
            whose = "at the model" if requirement.side == "harness" else "on the daemon's side"
            text = f"{whose}: {breaches[0].verdict} {name} {message} ({where}){explain_note(name)}"
            paragraphs.append(Paragraph(text, 0, 4))
    return draw(paragraphs, width)


def skipped_lines(skipped: Mapping[str, int], width: int) -> list[str]:
    """The steps that the driver skipped, whose effects were not tested. Empty if it skipped none."""
    words = skipped_words(skipped)
    return draw([Paragraph(words, 0, 2)], width) if words else []


def settled_lines(judgements: Mapping[str, Judgement], width: int, colour: bool) -> list[str]:
    """The requirements that are met, or that apply to nothing in the run: one paragraph each."""
    known = requirements()
    paragraphs = []
    for verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE):
        for name, judgement in judgements.items():
            if judgement.verdict is verdict:
                sentence = known[name].title if name in known else ""
                text = f"{sentence} ({printable(judgement.message, 120)}){explain_note(name)}".strip()
                paragraphs.append(_requirement_paragraph(judgement, text))
    return draw(paragraphs, width, colour)


def _requirement_paragraph(judgement: Judgement, text: str) -> Paragraph:
    head = verdict_text(judgement.verdict)
    return Paragraph(Text.assemble(head, f" {judgement.requirement} {text}"), 0, 4)


def summary_lines(
    rows: Sequence[tuple[str, Mapping[str, Verdict]]],
    together: Mapping[str, Verdict] | None = None,
    width: int = 80,
    colour: bool = False,
) -> list[str]:
    """Counts of verdicts: a line for each (name, verdicts) of `rows`, and one for all `together`.

    INC counts INCONCLUSIVE, N/A counts NOT-APPLICABLE. Of more than MAX_ROWS rows, only `together` is shown. A narrow
    terminal gets sentences, not columns.
    """
    tallies = [(printable(name, 400), Counter(verdicts.values())) for name, verdicts in rows]
    if together is not None and len(tallies) > 1:
        whole = (
            f"{len(tallies)} traces together" if len(tallies) > MAX_ROWS else "together",
            Counter(together.values()),
        )
        tallies = [*tallies, whole] if len(tallies) <= MAX_ROWS else [whole]
    room = usable_width(width) - _COLUMN_WIDTH * len(_COLUMNS)
    if room < _LEAST_NAME_WIDTH:
        sentences = (
            f"{name}: "
            + ", ".join(f"{tally[verdict]} {title}" for verdict, title in _COLUMNS.items() if tally[verdict])
            for name, tally in tallies
        )
        return draw([Paragraph(sentence, 0, 2) for sentence in sentences], width, colour)
    table = Table.grid()
    table.add_column(width=min(room, max([8, *(cell_len(name) for name, _ in tallies)])))
    for _ in _COLUMNS:
        table.add_column(justify="right", width=_COLUMN_WIDTH)
    table.add_row("", *_COLUMNS.values())
    for name, tally in tallies:
        counts = (Text.assemble((str(tally[v]), VERDICT_STYLES[v] if tally[v] else "")) for v in _COLUMNS)
        table.add_row(Text(_tail(name, room), no_wrap=True), *counts)
    return draw([table], width, colour)


def _tail(name: str, width: int) -> str:
    """The end of a name that is too wide, because files differ at their ends."""
    if cell_len(name) <= width:
        return name
    while cell_len(name) >= width:
        name = name[1:]
    return f"…{name}"


def coverage_lines(coverage: Coverage, width: int, colour: bool, *, missed: bool = False) -> list[str]:
    """How much of the contract was exercised, one line per dimension; with `missed`, the missed points below it."""
    lines = []
    for part in coverage.parts:
        lines.append(Paragraph(f"{len(part.exercised):>4} of {part.total}", _DIMENSION_WIDTH, beside=part.name))
        if missed:
            lines += [Paragraph(f"not seen: {point}", 4, 8) for point in part.missed]
    lines.append(Paragraph(f"{coverage.percent:>6.1f} %", _DIMENSION_WIDTH, beside="contract"))
    return draw(lines, width, colour)


def closing_line(conclusion: Conclusion, status: int, colour: bool = False) -> str:
    """The verdict of a run in one line.

    `status` is the exit status; with 3 nothing was tested, even if requirements that no request breaks pass. A run that
    judged only the model gets that verdict, unless something else fails it.
    """
    because, unread = conclusion.because, len(conclusion.unread)
    if conclusion.is_about_model and not unread and not because:
        return _model_closing_line(conclusion, status)
    verdicts = conclusion.verdicts.values()
    tested = sum(verdict in (*BREACHES, Verdict.PASS) for verdict in verdicts)
    where = counted(len(conclusion.judged), "trace") + (f", {unread} not readable" if unread else "")
    if tested == 0:
        return f"nothing was tested in {where}{f', failed by {because}' if because else ''} (exit {status})"
    if status == NothingTestedError.exit_status:
        return f"nothing was tested: no hook or memory request was accepted in {where} (exit {status})"
    tallied = _verdict_counts(verdicts, BREACHES)
    worst = min(verdicts, key=FOLDING_ORDER.index)
    with_counted = f", with {tallied}" if tallied else ""
    if because and status == 1:
        text, worst = f"failed by {because}{with_counted}", Verdict.FAIL
    elif because and status == KitError.exit_status and worst is not Verdict.ERROR:
        text, worst = f"incomplete: {because}{with_counted}", Verdict.ERROR
    elif status:
        text = tallied or "nothing is breached"
    else:
        known = _verdict_counts(verdicts, BREACHES[:-1])
        text = f"conforming{f', with {known}' if known else ''}{_broken_shoulds(conclusion)}"
    tail = f"; {counted(tested, 'requirement')} tested in {where} (exit {status})"
    (line,) = draw([one_line(Text.assemble((text, VERDICT_STYLES[worst]), tail))], MAX_WIDTH, colour)
    return line


def _broken_shoulds(conclusion: Conclusion) -> str:
    """How many requirements only warn, by level, with the names of those that every session breaks."""
    warned = [name for name, verdict in conclusion.verdicts.items() if verdict is Verdict.WARN]
    always = [name for name in warned if name in conclusion.in_every_session]
    if not warned:
        return ""
    musts = [name for name in warned if name in requirements() and requirements()[name].level == MUST]
    counts = {"SHOULD": len(warned) - len(musts), "MUST (in a part that only warns)": len(musts)}
    broken = " and ".join(f"{count} {level}" for level, count in counts.items() if count)
    each = f", {len(always)} of them in every session ({first_of(always, MAX_ALWAYS_BROKEN)})" if always else ""
    return f"; {broken} broken{each}"


MAX_ALWAYS_BROKEN = 3
MAX_NAMES = 6
MAX_NOTES = 20


class Headings:
    """Gathers what a run judged, and the notes about its traces: each note once, with its first traces."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._exchanges = 0
        self._daemons: dict[str, None] = {}
        self._harnesses: dict[str, None] = {}
        self._agents: dict[str, None] = {}
        self._notes: dict[str, list[str]] = {}
        self._broken_off: str | None = None

    def add(self, judged: JudgedTrace) -> None:
        """Add one trace."""
        trace = judged.trace
        declared = trace.header.declared
        file = printable(trace.path or "trace", 400)
        self._files.append(file)
        self._exchanges += len(trace.exchanges)
        self._daemons[printable(judged.daemon_version, 40)] = None
        if declared.harness is not None:
            self._harnesses[printable(declared.harness, 60)] = None
        self._agents.update(dict.fromkeys(printable(agent, 60) for agent in declared.agents))
        for note in (*trace.warnings, *remarks([trace])):
            self._notes.setdefault(f"note: {printable(note, 600)}", []).append(file)
        if (why := broke_off(trace)) is not None:
            note = f"the scenario was broken off, so its trace decides nothing: {printable(why, 600)}"
            self._notes.setdefault(note, []).append(file)
            self._broken_off = self._broken_off or trace.path

    def lines(self, width: int, colour: bool = False) -> list[str]:
        """The heading; empty where nothing was judged."""
        if not self._files:
            return []
        alone = len(self._files) == 1
        what = self._files[0] if alone else counted(len(self._files), "trace")
        facts = [
            f"daemon {first_of(self._daemons, MAX_NAMES)}",
            counted(self._exchanges, "exchange"),
            *([f"harness {first_of(self._harnesses, MAX_NAMES)}"] if self._harnesses else []),
            f"agents {first_of(self._agents, MAX_NAMES)}" if self._agents else "no agent declared",
        ]
        block: list[RenderableType] = [one_line(Text.assemble((what, STRONG))), Paragraph(", ".join(facts), 2)]
        for note, files in list(self._notes.items())[:MAX_NOTES]:
            block.append(Paragraph(note if alone else f"{note} ({first_of(files, 3)})", 2, 4))
        if (more := len(self._notes) - MAX_NOTES) > 0:
            block.append(Paragraph(f"{counted(more, 'more note')}: --json lists them", 2))
        if self._broken_off is not None:
            block.append(labelled_command("so far", ["signet-conformance", "show", self._broken_off]))
        return draw(block, width, colour)


class OpenRequirements:
    """Why each requirement stays open, and what would settle it, by the first trace in which it is open."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, str]] = {}
        self._traces: dict[str, int] = {}

    def add(self, judged: JudgedTrace) -> None:
        """Add one trace."""
        for name, judgement in judged.judgements.items():
            if judgement.verdict is Verdict.INCONCLUSIVE:
                self._traces[name] = self._traces.get(name, 0) + 1
                if name not in self._first:
                    self._first[name] = (judgement.message, settled_by(judged, judgement))

    def lines(
        self,
        judgements: Mapping[str, Judgement],
        width: int,
        colour: bool = False,
        *,
        short: bool = False,
        elsewhere: bool = True,
    ) -> list[str]:
        """The undecided among a run's `judgements`, those with the same reason and remedy in one paragraph.

        `short` leaves the reasons out, because breaches are read first. `elsewhere` also names the requirements that
        are open in some trace, but decided by another.
        """
        alike: dict[tuple[str, str], list[str]] = {}
        for name, judgement in judgements.items():
            if judgement.verdict is Verdict.INCONCLUSIVE:
                why, way_out = self._first.get(name, ("", ""))
                # A run may have a reason of its own, such as a breach that showed only once.
                why = why if why and judgement.message.startswith(why) else judgement.message
                key = ("", way_out) if short and way_out else (printable(why, 300), way_out)
                alike.setdefault(key, []).append(name)
        things: list[RenderableType] = [_paragraph(names, why, way_out) for (why, way_out), names in alike.items()]
        if not short and (words := explain_words(chain.from_iterable(alike.values()))):
            things.append(labelled_command("page", words))
        decided = [
            f"{name} in {counted(number, 'trace')}"
            for name, number in self._traces.items()
            if name in judgements and judgements[name].verdict is not Verdict.INCONCLUSIVE
        ]
        if decided and elsewhere:
            things.append(Paragraph(f"undecided, and decided by other traces: {', '.join(decided)}", 0, 4))
        return draw(things, width, colour)


def _paragraph(names: Sequence[str], why: str, way_out: str) -> Paragraph:
    it = "it" if len(names) == 1 else "them"
    settling = f". To settle {it}: {way_out}." if why else f"; to settle {it}: {way_out}"
    rest = f"{f' {why}' if why else ''}{settling if way_out else ''}"
    return Paragraph(Text.assemble(verdict_text(Verdict.INCONCLUSIVE), f" {', '.join(names)}{rest}"), 0, 4)


_BY_MARKS = "whose step marks say what the user did"
_BY_A_WHOLE_RUN = "a whole run of the kit"
_WITHOUT_KIT = ("record ", "continue the recording", "let the kit drive the connector")
"""The beginning of advice that helps if the kit has not driven the connector; other advice follows a `;`."""
_WHOLE_SESSION = "record the whole session, from its start to its end"


def settled_by(judged: JudgedTrace, judgement: Judgement) -> str:
    """What to record or declare so that the requirement can be decided."""
    for finding in judgement.findings:
        call = judged.recording.by_seq.get(finding.exchanges[0]) if finding.exchanges else None
        if call is not None and call.exchange.request.body is not None and call.exchange.request.body.kind == "cut":
            return "record with a larger --body-limit, so that the body is kept whole"
    requirement = requirements().get(judgement.requirement)
    way_out = (requirement and requirement.settled_by) or _WHOLE_SESSION
    # The kit has driven it already, so something else is missing.
    if any(marks_of(judged.trace, StepMark)):
        if way_out.endswith(_BY_MARKS):
            return "fix what else the request breaches, and drive it again"
        if way_out.startswith(_WITHOUT_KIT):
            return way_out.partition("; ")[2]
    if way_out.endswith(_BY_A_WHOLE_RUN) and judged.trace.part:
        return "let every scenario be performed to its end, without -k"
    return way_out


if TYPE_CHECKING:
    from signet_conformance.outcome.baseline_documents import Entry


def known_lines(known: KnownInRun, width: int, colour: bool) -> Sequence[str]:
    """List known failures, and the entries that fail the run with the next step."""
    return draw([*_blocks(known)], width, colour)


def _blocks(known: KnownInRun) -> Iterator[RenderableType]:
    for (requirement, target), (_, entry) in known.covered.items():
        yield _head("KNOWN", requirement, target)
        whose = f"{printable(entry.owner, 80)}, until {entry.expires.isoformat()}: {printable(entry.reason, 300)}"
        yield labelled("by", whose)
        yield labelled_command("explain", ["signet-conformance", "explain", requirement])
    for word, entries, what in (
        ("STALE", known.stale, "it no longer fails: remove the entry"),
        ("EXPIRED", known.expired, "fix the connector and remove the entry, or agree on a later date with its owner"),
    ):
        for file, entry in entries:
            yield _head(word, entry.requirement, entry.target)
            yield labelled("in", f"{printable(shown_path(file.path), 400)}, {_since(entry)}")
            yield labelled("change", what)
            yield labelled_command("explain", ["signet-conformance", "explain", entry.requirement])


def _head(word: str, requirement: str, target: str) -> Text:
    return one_line(Text.assemble((word, STRONG), f" {requirement} at {printable(target, 60)}"))


def _since(entry: Entry) -> str:
    days = f"{entry.created.isoformat()} to {entry.expires.isoformat()}"
    return f"by {printable(entry.owner, 80)}, {days}"
