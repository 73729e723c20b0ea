"""The report for people: a block for each breach that can be mended alone, then what is undecided, then counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from signet_conformance.contract import catalogue, requirements
from signet_conformance.engine import Judged
from signet_conformance.errors import NothingTestedError, printable
from signet_conformance.finding import FOLDING_ORDER, Finding, Judgement, Verdict
from signet_conformance.outcome.broken_off import warnings_of
from signet_conformance.outcome.coverage import Coverage
from signet_conformance.reports.evidence import BREACHES, MAX_KINDS, evidence, kinds
from signet_conformance.reports.remarks import remarks
from signet_conformance.reports.requirement_pages import explain_note
from signet_conformance.reports.settling import settled_by
from signet_conformance.reports.terminal import (
    MAX_WIDTH,
    STRONG,
    VERDICT_STYLES,
    Paragraph,
    drawn,
    labelled,
    labelled_command,
    one_line,
    usable_width,
    verdict_text,
)

_COLUMNS = {
    Verdict.ERROR: "ERROR",
    Verdict.FAIL: "FAIL",
    Verdict.WARN: "WARN",
    Verdict.PASS: "PASS",
    Verdict.INCONCLUSIVE: "INC",
    Verdict.NOT_APPLICABLE: "N/A",
}
_COLUMN_WIDTH = 6
_DIMENSION_WIDTH = 13
_LEAST_NAME_WIDTH = 16


def failure_text(
    judged: Judged,
    name: str,
    width: int = 80,
    colour: bool = False,
    *,
    options: Sequence[str] = (),
    explained: bool = True,
    replayed: Sequence[str] = (),
) -> str:
    """One requirement that one trace breaches, as a block of lines that can be acted on alone.

    `width` is in columns, `options` are words of the command line that replays the check, `replayed` its files where
    they are others than the judged trace's own. With `explained` false the reason and the remedy are left out: an
    earlier block has said them.
    """
    judgement = judged.judgements[name]
    requirement = requirements().get(name)
    level = f" {requirement.level_at(judged.daemon_version)}" if requirement is not None else ""
    block: list[RenderableType] = [_head(judgement, level)]
    if requirement is not None:
        block.append(Paragraph(requirement.title, 2))
    if not judgement.findings:
        block.append(labelled("what", printable(judgement.message, 400)))
    groups = kinds(judgement.findings)
    for number, kind in enumerate(groups[:MAX_KINDS]):
        block += [Text()] * (number > 0)
        block += _kind(judged, kind)
    if rest := groups[MAX_KINDS:]:
        count = sum(len(kind) for kind in rest)
        block += [Text(), labelled("more", f"{len(rest)} other kinds, {count} findings: --json lists them")]
    if requirement is not None and explained:
        block += [labelled("why", requirement.why), labelled("change", requirement.fix)]
    files = replayed or [judged.trace.path or "TRACE"]
    block.append(labelled_command("replay", ["signet-conformance", "check", *files, *options, "-k", name]))
    if requirement is not None:
        block.append(labelled_command("page", ["signet-conformance", "explain", name]))
    return "\n".join(drawn(block, width, colour))


_APART = "apart from the connector's verdicts and the exit status"


def daemon_text(judged: Judged, width: int, colour: bool) -> str | None:
    """What the daemon breaches, as one block; None when it breaches nothing. It changes no verdict."""
    breaches = [judgement for judgement in judged.daemon.values() if judgement.verdict in BREACHES]
    if not breaches:
        return None
    return _side_text(judged, breaches, [Paragraph(f"On the daemon's side, {_APART}:")], width, colour)


def harness_text(judged: Judged, width: int, colour: bool) -> str | None:
    """What reached the harness's model, as one block; None where nothing was recorded there. It changes no verdict."""
    if judged.trace.model is None:
        return None
    verdicts = Counter(judgement.verdict for judgement in judged.harness.values())
    counted = ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in FOLDING_ORDER if verdicts[verdict])
    asked = _count(len(judged.trace.model.exchanges), "exchange")
    block: list[RenderableType] = [Paragraph(f"What reached the model ({asked}), {_APART}: {counted}")]
    block += (
        _listed(judgement, f"{printable(judgement.message, 200)}.{explain_note(judgement.requirement)}")
        for judgement in judged.harness.values()
        if judgement.verdict is Verdict.INCONCLUSIVE
    )
    breaches = [judgement for judgement in judged.harness.values() if judgement.verdict in BREACHES]
    return _side_text(judged, breaches, block, width, colour)


def _side_text(
    judged: Judged, breaches: Sequence[Judgement], head: Sequence[RenderableType], width: int, colour: bool
) -> str:
    block = list(head)
    for judgement in breaches:
        requirement = catalogue()[judgement.requirement]
        block += [Text(), _head(judgement, f" {requirement.level}"), Paragraph(requirement.title, 2)]
        if not judgement.findings:
            block.append(labelled("what", printable(judgement.message, 400)))
        for kind in kinds(judgement.findings)[:MAX_KINDS]:
            block += _kind(judged, kind)
        block.append(labelled("why", requirement.why))
        block.append(labelled_command("page", ["signet-conformance", "explain", requirement.id]))
    return "\n".join(drawn(block, width, colour))


def side_summary_lines(judged: Sequence[Judged], width: int = 80) -> list[str]:
    """What daemon and harness breach over several traces, one paragraph a requirement."""
    paragraphs = []
    for name, requirement in catalogue().items():
        sides = [trace.harness if requirement.side == "harness" else trace.daemon for trace in judged]
        judgements = [side[name] for side in sides if name in side]
        breaches = [judgement for judgement in judgements if judgement.verdict in BREACHES]
        if breaches:
            where = _count(len(breaches), "trace")
            message = printable(breaches[0].message, 200)
            whose = "at the model" if requirement.side == "harness" else "on the daemon's side"
            text = f"{whose}: {breaches[0].verdict} {name} {message} ({where}){explain_note(name)}"
            paragraphs.append(Paragraph(text, 0, 4))
    return drawn(paragraphs, width)


def _head(judgement: Judgement, level: str) -> Text:
    return Text.assemble(verdict_text(judgement.verdict), " ", (judgement.requirement, STRONG), level)


def _kind(judged: Judged, kind: Sequence[Finding]) -> Iterator[RenderableType]:
    """One kind of breach: what, where, with, at, expected, received, trace, again."""
    shown = evidence(judged, kind)
    for label, text in (
        ("what", shown.what),
        ("where", shown.where),
        *(("with", other) for other in shown.others),
        ("at", shown.pointer),
        ("expected", shown.expected),
        ("received", shown.received),
    ):
        if text:
            yield labelled(label, text)
    label = "trace"
    for breaching, line in shown.around:
        marked = Text(f"{'>' if breaching else ' '} {line}", STRONG if breaching else "")
        yield labelled(label, marked, hanging=4)
        label = ""
    if shown.repeats:
        yield labelled("again", shown.repeated)


def heading_lines(judged: Judged, width: int, colour: bool) -> list[str]:
    """Which file is judged, against which daemon, and what is declared of the connector."""
    trace = judged.trace
    declared = trace.header.declared
    facts = [f"daemon {printable(judged.daemon_version, 40)}", f"{_count(len(trace.exchanges), 'exchange')}"]
    if declared.harness is not None:
        facts.append(f"harness {printable(declared.harness, 60)}")
    facts.append(
        f"agents {', '.join(printable(a, 60) for a in declared.agents)}" if declared.agents else "no agent declared"
    )
    block: list[RenderableType] = [one_line(Text.assemble((printable(trace.path or "trace", 400), STRONG)))]
    block.append(Paragraph(", ".join(facts), 2))
    notes = (*warnings_of(trace), *remarks([trace]))
    block += [Paragraph(f"note: {printable(note, 600)}", 2) for note in notes]
    return drawn(block, width, colour)


def breach_names(judged: Judged) -> list[str]:
    """The requirements to show in full: errors of the kit first, then FAIL, then WARN."""
    return [
        name for verdict in BREACHES for name, judged_by in judged.judgements.items() if judged_by.verdict is verdict
    ]


def undecided_lines(judged: Judged, width: int, colour: bool) -> list[str]:
    """The requirements that the trace leaves open, each with what would settle it."""
    paragraphs = []
    for name, judgement in judged.judgements.items():
        if judgement.verdict is Verdict.INCONCLUSIVE:
            why = printable(judgement.message, 200)
            text = f"{why}. To settle it: {settled_by(judged, judgement)}.{explain_note(name)}"
            paragraphs.append(_listed(judgement, text))
    return drawn(paragraphs, width, colour)


def settled_lines(judged: Judged, width: int, colour: bool) -> list[str]:
    """The requirements that are met, or that nothing in the trace is subject to: one paragraph each."""
    known = requirements()
    paragraphs = []
    for verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE):
        for name, judgement in judged.judgements.items():
            if judgement.verdict is verdict:
                sentence = known[name].title if name in known else ""
                text = f"{sentence} ({printable(judgement.message, 120)}){explain_note(name)}".strip()
                paragraphs.append(_listed(judgement, text))
    return drawn(paragraphs, width, colour)


def _listed(judgement: Judgement, text: str) -> Paragraph:
    head = verdict_text(judgement.verdict)
    return Paragraph(Text.assemble(head, f" {judgement.requirement} {text}"), 0, 4)


def summary_lines(
    rows: Sequence[tuple[str, Mapping[str, Verdict]]], width: int = 80, colour: bool = False
) -> list[str]:
    """How many requirements got which verdict, a line for each (name, verdicts) of `rows`.

    INC counts INCONCLUSIVE, N/A counts NOT-APPLICABLE. Too narrow a terminal gets sentences, not columns.
    """
    tallies = [(printable(name, 400), Counter(verdicts.values())) for name, verdicts in rows]
    room = usable_width(width) - _COLUMN_WIDTH * len(_COLUMNS)
    if room < _LEAST_NAME_WIDTH:
        sentences = (
            f"{name}: "
            + ", ".join(f"{tally[verdict]} {title}" for verdict, title in _COLUMNS.items() if tally[verdict])
            for name, tally in tallies
        )
        return drawn([Paragraph(sentence, 0, 2) for sentence in sentences], width, colour)
    table = Table.grid()
    table.add_column(width=min(room, max([8, *(cell_len(name) for name, _ in tallies)])))
    for _ in _COLUMNS:
        table.add_column(justify="right", width=_COLUMN_WIDTH)
    table.add_row("", *_COLUMNS.values())
    for name, tally in tallies:
        counts = (Text.assemble((str(tally[v]), VERDICT_STYLES[v] if tally[v] else "")) for v in _COLUMNS)
        table.add_row(Text(_tail(name, room), no_wrap=True), *counts)
    return drawn([table], width, colour)


def _tail(name: str, width: int) -> str:
    """The end of a name that is too wide: files differ by their ends."""
    if cell_len(name) <= width:
        return name
    while cell_len(name) >= width:
        name = name[1:]
    return f"…{name}"


def coverage_lines(coverage: Coverage, width: int, colour: bool, *, missed: bool = False) -> list[str]:
    """How much of the contract was exercised, a line each dimension; the missed points below it when asked for."""
    lines = []
    for part in coverage.parts:
        lines.append(Paragraph(f"{len(part.exercised):>4} of {part.total}", _DIMENSION_WIDTH, beside=part.name))
        if missed:
            lines += [Paragraph(f"not seen: {point}", 4, 8) for point in part.missed]
    lines.append(Paragraph(f"{coverage.percent:>6.1f} %", _DIMENSION_WIDTH, beside="contract"))
    return drawn(lines, width, colour)


def closing_line(
    verdicts: Mapping[str, Verdict],
    traces: int,
    status: int,
    colour: bool = False,
    unread: int = 0,
    because: str = "",
) -> str:
    """The verdict of a run in one line.

    `verdicts` is by requirement, over all `traces`; `unread` counts what could not be read; `status` is
    the exit status, which is 3 where no hook or memory request was accepted, whatever was met by silence.
    `because` says in words what fails the run beside its verdicts.
    """
    tally = Counter(verdicts.values())
    tested = sum(tally[verdict] for verdict in BREACHES) + tally[Verdict.PASS]
    where = _count(traces, "trace") + (f", {unread} not readable" if unread else "")
    if tested == 0:
        return f"nothing was tested in {where}{f', failed by {because}' if because else ''} (exit {status})"
    if status == NothingTestedError.exit_status:
        return f"nothing was tested: no hook or memory request was accepted in {where} (exit {status})"
    counted = ", ".join(f"{tally[verdict]} {verdict}" for verdict in BREACHES if tally[verdict])
    worst = next(verdict for verdict in FOLDING_ORDER if tally[verdict])
    with_counted = f", with {counted}" if counted else ""
    if because and status == 1:
        text, worst = f"failed by {because}{with_counted}", Verdict.FAIL
    elif status:
        text = counted or "nothing is breached"
    else:
        text = f"conforming{with_counted}"
    tail = f"; {_count(tested, 'requirement')} tested in {where} (exit {status})"
    (line,) = drawn([one_line(Text.assemble((text, VERDICT_STYLES[worst]), tail))], MAX_WIDTH, colour)
    return line


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
