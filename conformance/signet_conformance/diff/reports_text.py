"""Two reports compared, for a person: in a terminal, and as a comment that shows only what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from signet_conformance.contract import catalogue
from signet_conformance.diff.difference import Difference, DifferenceKind, place, texts
from signet_conformance.diff.reports import BreachGroup, Change, ReportComparison
from signet_conformance.errors import KitError, UsageError, counted, first_of, printable
from signet_conformance.outcome.identity import Identity
from signet_conformance.reports import terminal
from signet_conformance.reports.markdown import code, inline, page_link
from signet_conformance.reports.report_document import Report

MAX_NEW = 20
"""New breaches that are shown in full; of more, only the line."""
MAX_SCENARIOS = 4


def identity_words(report: Report) -> str:
    """Describe the run of a report."""
    run = report.run
    words = "" if run is None else Identity(**run.model_dump()).words()
    parts = [words] if words else []
    parts += [f"{host.host} {host.release}" for host in report.played]
    parts += ["not judged whole"] if report.exit in (UsageError.exit_status, KitError.exit_status) else []
    parts += [counted(len(report.traces), "trace"), f"contract {report.contract}", f"kit {report.kit}"]
    return printable(", ".join(parts), 400)


def closing_words(compared: ReportComparison) -> str:
    """Count the breaches of each group."""
    counts = {became: len(compared.of(became)) for became in BreachGroup}
    always = (BreachGroup.FRESH, BreachGroup.FIXED, BreachGroup.STILL)
    groups = [*always, *(became for became in BreachGroup if counts[became] and became not in always)]
    return ", ".join(f"{counts[became]} {became.value}" for became in groups)


def why_words(difference: Difference) -> str:
    """A difference of the requests in one line."""
    where = place(difference, "old", "new")
    if difference.kind is DifferenceKind.CHANGED:
        ours, theirs = texts(difference.first, difference.second)
        return f"{difference.member or 'the exchange'}: {ours} became {theirs}, {where}"
    return f"{difference.kind.value}: {printable(difference.member, 120)} {where}".replace("  ", " ")


def _reasons(change: Change) -> Iterator[str]:
    """Describe what changed in the requests, once for each member of an operation."""
    alike: dict[tuple[DifferenceKind, str, str], list[Difference]] = {}
    for difference in change.why:
        alike.setdefault((difference.kind, difference.call, difference.member), []).append(difference)
    for first, *more in alike.values():
        yield why_words(first) + (", and others like it" if more else "")


def _fold(changes: Sequence[Change]) -> Sequence[Sequence[Change]]:
    """The changes, those together that differ in nothing but the operation."""
    alike: dict[object, list[Change]] = {}
    for change in changes:
        breach = change.now
        words = breach.what.replace(breach.key.operation or " ", " ")
        same = breach.verdict, breach.requirement, breach.pointer, breach.key.element, words, change.before
        alike.setdefault((same, *change.scenarios, *map(why_words, change.why)), []).append(change)
    return [*alike.values()]


def _operations(changes: Sequence[Change]) -> str:
    """Name the operations of some changes, each with the exchange that shows it first."""
    named = (f"{printable(change.now.key.operation, 60)}{_exchange(change)}" for change in changes)
    return first_of(named, MAX_SCENARIOS)


def _exchange(change: Change) -> str:
    finding = change.now.finding
    return f" #{finding.exchanges[0]}" if finding is not None and finding.exchanges else ""


def lines(compared: ReportComparison, width: int, colour: bool = False) -> list[str]:
    """Show new breaches in full, and the others in a line each."""
    return terminal.draw([*_things(compared)], width, colour)


def _things(compared: ReportComparison) -> Iterator[RenderableType]:
    yield terminal.labelled("old", identity_words(compared.old))
    yield terminal.labelled("new", identity_words(compared.new))
    for number, changes in enumerate(_fold(compared.of(BreachGroup.FRESH))):
        yield Text()
        yield from _fresh(*changes, in_full=number < MAX_NEW)
    if missing := [*_missing(compared)]:
        yield Text()
        yield from (terminal.Paragraph(line, 0, 4) for line in missing)
    for became in (BreachGroup.FIRST, BreachGroup.GENERATED, BreachGroup.FIXED, BreachGroup.UNSEEN):
        changes = compared.of(became)
        if changes:
            yield Text()
        yield from map(_line, changes)
    if still := compared.of(BreachGroup.STILL):
        yield Text()
        names = dict.fromkeys(change.now.requirement for change in still)
        yield terminal.Paragraph(f"{BreachGroup.STILL.value}: {', '.join(names)}", 0, 4)
    yield from (terminal.Paragraph(line, 0, 4) for line in _information(compared))
    yield Text()


def _missing(compared: ReportComparison) -> Iterator[str]:
    """The gaps that only the new run has."""
    yield from (f"could not be read: {name}" for name in compared.unread[:MAX_NEW])
    yield from (f"not judged any more: {text}" for text in compared.lacks[:MAX_NEW])
    if (more := len(compared.lacks) - MAX_NEW) > 0:
        yield f"and {more} more"


def _information(compared: ReportComparison) -> Iterator[str]:
    """Describe the breaches of the next contract and the change in reach; neither changes the exit status."""
    if compared.later:
        by_group: dict[BreachGroup, list[str]] = {}
        for name, became in compared.later:
            by_group.setdefault(became, []).append(name)
        newer = compared.new.newer or compared.old.newer
        groups = "; ".join(f"{became.value}: {', '.join(names)}" for became, names in by_group.items())
        yield f"would breach {newer.contract if newer is not None else 'the next contract'}: {groups}"
    if compared.became_reachable:
        yield f"became reachable: {', '.join(compared.became_reachable)}"
    if compared.became_unreachable:
        yield f"not reachable any more: {', '.join(compared.became_unreachable)}"


def _fresh(change: Change, *more: Change, in_full: bool) -> Iterator[RenderableType]:
    breach = change.now
    was = "" if change.before is None else f", {change.before.value} before"
    yield Text.assemble(("new ", terminal.STRONG), terminal.verdict_text(breach.verdict), f" {breach.requirement}{was}")
    requirement, finding = catalogue().get(breach.requirement), breach.finding
    yield terminal.labelled("what", printable(breach.what, 400))
    if more:
        yield terminal.labelled("also", _operations(more))
    if not in_full:
        return
    if breach.file:
        yield terminal.labelled_line("where", f"{printable(breach.file, 400)}{_exchange(change)}")
    if len(change.scenarios) > 1:
        yield terminal.labelled("seen", _places(change))
    if finding is not None and finding.pointer:
        yield terminal.labelled("at", printable(finding.pointer, 300))
    for reason in _reasons(change):
        yield terminal.labelled("because", reason)
    if requirement is not None:
        yield terminal.labelled("change", requirement.fix)
        yield terminal.labelled_command("page", ["signet-conformance", "explain", breach.requirement])


def _line(change: Change) -> terminal.Paragraph:
    breach = change.now
    verdict = f"{breach.verdict.value} " if change.became in (BreachGroup.FIRST, BreachGroup.GENERATED) else ""
    where = f", {_places(change)}" if change.scenarios and change.became is not BreachGroup.GENERATED else ""
    aside = change.reason or (why_words(change.why[0]) if change.why else "")
    because = f" ({aside})" if aside else ""
    text = f"{change.became.value}: {verdict}{breach.requirement} {printable(breach.what, 200)}{where}{because}"
    return terminal.Paragraph(text, 0, 4)


def _places(change: Change) -> str:
    """Name the scenarios of a change; of many, the first."""
    return f"in {first_of((printable(name, 60) for name in change.scenarios), MAX_SCENARIOS)}"


def markdown(compared: ReportComparison) -> str:
    """A comment for a pull request: what is new, with the reason, and the rest as numbers."""
    blocks = [f"## Signet conformance: {closing_words(compared)}", ""]
    fresh = _fold(compared.of(BreachGroup.FRESH))
    if not fresh:
        blocks += ["Nothing new is breached.", ""]
    for changes in fresh[:MAX_NEW]:
        blocks += _block(*changes)
    if (more := fresh[MAX_NEW:]) and (names := dict.fromkeys(changes[0].now.requirement for changes in more)):
        blocks += [f"And {len(more)} more: {', '.join(map(inline, names))}.", ""]
    blocks += [f"- {inline(line)}" for line in _missing(compared)]
    blocks += [""] if compared.unread or compared.lacks else []
    blocks.append(f"Old: {inline(identity_words(compared.old))}. New: {inline(identity_words(compared.new))}.")
    return "\n".join(blocks) + "\n"


def _block(change: Change, *more: Change) -> Sequence[str]:
    breach = change.now
    requirement = catalogue().get(breach.requirement)
    was = "" if change.before is None else f", {change.before.value} before"
    block = [f"### {breach.verdict.value} {inline(breach.requirement)}{was}", ""]
    block += [f"- **what**: {inline(printable(breach.what, 400))}"]
    block += [f"- **also**: {inline(_operations(more))}"] if more else []
    if breach.file:
        seen = f", {inline(_places(change))}" if len(change.scenarios) > 1 else ""
        block.append(f"- **where**: {code(printable(breach.file, 400) + _exchange(change))}{seen}")
    block += [f"- **because**: {inline(printable(reason, 600))}" for reason in _reasons(change)]
    if requirement is not None:
        block.append(f"- **change**: {inline(requirement.fix)}")
        block.append(f"- **page**: {page_link(breach.requirement)}")
    return [*block, ""]
