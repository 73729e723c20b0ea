"""The report for people: a block for each breach that can be acted on alone, then what stayed open, then counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from signet_conformance.contract import requirements
from signet_conformance.engine import Judged
from signet_conformance.errors import NothingTestedError, printable
from signet_conformance.finding import FOLDING_ORDER, Finding, Judgement, Verdict
from signet_conformance.outcome.broken_off import warnings_of
from signet_conformance.reports.evidence import BREACHES, MAX_KINDS, evidence, kinds
from signet_conformance.reports.layout import (
    LABEL_WIDTH,
    command_line,
    faint,
    labelled,
    painted,
    paragraph,
    strong,
    usable_width,
)
from signet_conformance.reports.remarks import remarks
from signet_conformance.reports.requirement_pages import explain_note
from signet_conformance.reports.settling import settled_by
from signet_conformance.rules.daemon import daemon_requirements

_COLUMNS = {
    Verdict.ERROR: "ERROR",
    Verdict.FAIL: "FAIL",
    Verdict.WARN: "WARN",
    Verdict.PASS: "PASS",
    Verdict.INCONCLUSIVE: "INC",
    Verdict.NOT_APPLICABLE: "N/A",
}


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
    width = usable_width(width)
    judgement = judged.judgements[name]
    requirement = requirements().get(name)
    level = f" {requirement.level_at(judged.daemon_version)}" if requirement is not None else ""
    lines = [f"{painted(judgement.verdict, judgement.verdict, colour)} {strong(name, colour)}{level}"]
    if requirement is not None:
        lines += paragraph(requirement.title, width, "  ")
    if not judgement.findings:
        lines += labelled("what", printable(judgement.message, 400), width, colour)
    found = kinds(judgement.findings)
    for number, kind in enumerate(found[:MAX_KINDS]):
        lines += [""] * (number > 0) + list(_kind_lines(judged, kind, width, colour))
    if rest := found[MAX_KINDS:]:
        count = sum(len(kind) for kind in rest)
        lines += ["", *labelled("more", f"{len(rest)} other kinds, {count} findings: --json lists them", width, colour)]
    if requirement is not None and explained:
        lines += labelled("why", requirement.why, width, colour)
        lines += labelled("change", requirement.fix, width, colour)
    files = replayed or [judged.trace.path or "TRACE"]
    lines.append(command_line("replay", ["signet-conformance", "check", *files, *options, "-k", name], colour))
    if requirement is not None:
        lines.append(command_line("page", ["signet-conformance", "explain", name], colour))
    return "\n".join(lines)


def daemon_text(judged: Judged, width: int, colour: bool) -> str | None:
    """What the daemon breaches, as one block; None when it breaches nothing. No verdict changes by it."""
    breaches = [found for found in judged.daemon.values() if found.verdict in BREACHES]
    if not breaches:
        return None
    width = usable_width(width)
    lines = paragraph("On the daemon's side, apart from the connector's verdicts and the exit status:", width)
    for judgement in breaches:
        requirement = daemon_requirements()[judgement.requirement]
        head = f"{painted(judgement.verdict, judgement.verdict, colour)} {strong(requirement.id, colour)}"
        lines += ["", f"{head} {requirement.level}", *paragraph(requirement.title, width, "  ")]
        if not judgement.findings:
            lines += labelled("what", printable(judgement.message, 400), width, colour)
        for kind in kinds(judgement.findings)[:MAX_KINDS]:
            lines += _kind_lines(judged, kind, width, colour)
        lines += labelled("why", requirement.why, width, colour)
        lines.append(command_line("page", ["signet-conformance", "explain", requirement.id], colour))
    return "\n".join(lines)


def daemon_summary_lines(judged: Sequence[Judged], width: int = 80) -> list[str]:
    """What the daemon breaches over several traces, one paragraph a requirement."""
    lines: list[str] = []
    for name in daemon_requirements():
        breaches = [
            found for one in judged if (found := one.daemon.get(name)) is not None and found.verdict in BREACHES
        ]
        if breaches:
            where = _count(len(breaches), "trace")
            message = printable(breaches[0].message, 200)
            text = f"on the daemon's side: {breaches[0].verdict} {name} {message} ({where}){explain_note(name)}"
            lines += paragraph(text, usable_width(width), "", "    ")
    return lines


def _kind_lines(judged: Judged, kind: Sequence[Finding], width: int, colour: bool) -> Iterator[str]:
    found = evidence(judged, kind)
    for label, text in (
        ("what", found.what),
        ("where", found.where),
        *(("with", other) for other in found.others),
        ("at", found.pointer),
        ("expected", found.expected),
        ("received", found.received),
    ):
        if text:
            yield from labelled(label, text, width, colour)
    yield from _excerpt_lines(found.around, width, colour)
    if found.repeats:
        yield from labelled("again", found.repeated, width, colour)


def _excerpt_lines(around: Sequence[tuple[bool, str]], width: int, colour: bool) -> Iterator[str]:
    label = "trace"
    for breaching, line in around:
        first, *rest = paragraph(f"{'>' if breaching else ' '} {line}", width - LABEL_WIDTH - 2, "", "    ")
        yield f"  {faint(f'{label:<{LABEL_WIDTH}}', colour)}{strong(first, colour) if breaching else first}"
        for more in rest:
            yield f"  {' ' * LABEL_WIDTH}{strong(more, colour) if breaching else more}"
        label = ""


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
    lines = [strong(printable(trace.path or "trace", 400), colour)]
    lines += paragraph(", ".join(facts), usable_width(width), "  ")
    for warning in (*warnings_of(trace), *remarks([trace])):
        lines += paragraph(f"note: {printable(warning, 600)}", usable_width(width), "  ")
    return lines


def breach_names(judged: Judged) -> list[str]:
    """The requirements to show in full: errors of the kit first, then FAIL, then WARN."""
    return [name for verdict in BREACHES for name, found in judged.judgements.items() if found.verdict is verdict]


def undecided_lines(judged: Judged, width: int, colour: bool) -> list[str]:
    """The requirements that the trace leaves open, each with what would settle it."""
    lines = []
    for name, judgement in judged.judgements.items():
        if judgement.verdict is Verdict.INCONCLUSIVE:
            why = printable(judgement.message, 200)
            text = f"{why}. To settle it: {settled_by(judged, judgement)}.{explain_note(name)}"
            lines += _listed(judgement, text, name, width, colour)
    return lines


def settled_lines(judged: Judged, width: int, colour: bool) -> list[str]:
    """The requirements that are met, or that nothing in the trace is subject to: one line each."""
    known = requirements()
    lines = []
    for verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE):
        for name, judgement in judged.judgements.items():
            if judgement.verdict is verdict:
                sentence = known[name].title if name in known else ""
                text = f"{sentence} ({printable(judgement.message, 120)}){explain_note(name)}".strip()
                lines += _listed(judgement, text, name, width, colour)
    return lines


def _listed(judgement: Judgement, text: str, name: str, width: int, colour: bool) -> list[str]:
    first, *rest = paragraph(f"{judgement.verdict} {name} {text}", usable_width(width), "", "    ")
    return [first.replace(judgement.verdict, painted(judgement.verdict, judgement.verdict, colour), 1), *rest]


def summary_lines(
    rows: Sequence[tuple[str, Mapping[str, Verdict]]], width: int = 80, colour: bool = False
) -> list[str]:
    """How many requirements got which verdict, a line for each (name, verdicts) of `rows`.

    INC counts INCONCLUSIVE, N/A counts NOT-APPLICABLE. Too narrow a terminal gets sentences, not columns.
    """
    width = usable_width(width)
    tallies = [(name, Counter(verdicts.values())) for name, verdicts in rows]
    room = width - 6 * len(_COLUMNS)
    if room < 16:
        return [
            line
            for name, tally in tallies
            for line in paragraph(
                f"{printable(name, 400)}: "
                + ", ".join(f"{tally[verdict]} {title}" for verdict, title in _COLUMNS.items() if tally[verdict]),
                width,
                "",
                "  ",
            )
        ]
    wide = min(room, max([8, *(len(printable(name, 400)) for name, _ in tallies)]))
    lines = [" " * wide + "".join(f"{title:>6}" for title in _COLUMNS.values())]
    for name, tally in tallies:
        cells = "".join(_cell(verdict, tally[verdict], colour) for verdict in _COLUMNS)
        lines.append(f"{_tail(printable(name, 400), wide):<{wide}}{cells}")
    return lines


def _cell(verdict: Verdict, count: int, colour: bool) -> str:
    return painted(f"{count:>6}", verdict, colour and count > 0)


def _tail(name: str, width: int) -> str:
    return name if len(name) <= width else f"…{name[1 - width :]}"


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
    the exit status, which is 3 where nothing was recorded, whatever was met by silence. `because` says in words
    what fails the run beside its verdicts.
    """
    tally = Counter(verdicts.values())
    tested = sum(tally[verdict] for verdict in BREACHES) + tally[Verdict.PASS]
    where = _count(traces, "trace") + (f", {unread} not readable" if unread else "")
    if tested == 0:
        return f"nothing was tested in {where}{f', failed by {because}' if because else ''} (exit {status})"
    if status == NothingTestedError.exit_status:
        return f"nothing was tested: no request in {where} (exit {status})"
    counted = ", ".join(f"{tally[verdict]} {verdict}" for verdict in BREACHES if tally[verdict])
    worst = next(verdict for verdict in FOLDING_ORDER if tally[verdict])
    with_counted = f", with {counted}" if counted else ""
    if because and status == 1:
        text, worst = f"failed by {because}{with_counted}", Verdict.FAIL
    elif status:
        text = counted or "nothing is breached"
    else:
        text = f"conforming{with_counted}"
    return f"{painted(text, worst, colour)}; {_count(tested, 'requirement')} tested in {where} (exit {status})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
