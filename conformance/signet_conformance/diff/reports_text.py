"""Two reports compared, as a person reads it: in a terminal, and as a comment that says only what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from signet_conformance.contract import catalogue
from signet_conformance.diff.difference import Difference, Kind
from signet_conformance.diff.folding import texts
from signet_conformance.diff.reports import Compared, Step
from signet_conformance.errors import printable
from signet_conformance.reports.cause_words import counted
from signet_conformance.reports.markdown import code, inline
from signet_conformance.reports.report_document import Report
from signet_conformance.reports.requirement_pages import explain_command, page_address
from signet_conformance.reports.terminal import (
    STRONG,
    Paragraph,
    drawn,
    labelled,
    labelled_command,
    labelled_line,
    verdict_text,
)

MAX_NEW = 20
"""New breaches that are told in full; of more, only the line."""


def identity_words(report: Report) -> str:
    """Which run a report is of."""
    run = report.run
    told = [] if run is None else [f"recorded {run.created}"] if run.created else []
    if run is not None:
        told += [f"commit {run.commit[:12]}" + (f" ({run.branch})" if run.branch else "")] if run.commit else []
        told += [f"connector {run.connector}"] if run.connector else []
        told += [f"seed {run.seed}"] if run.seed is not None else []
    told += [f"{host.host} {host.release}" for host in report.played]
    told += [counted(len(report.traces), "trace"), f"contract {report.contract}", f"kit {report.kit}"]
    return printable(", ".join(told), 400)


def closing_words(compared: Compared) -> str:
    """What became of the breaches, counted."""
    parts = [f"{len(compared.fresh)} new", f"{len(compared.mended)} mended", f"{len(compared.still)} still there"]
    parts += [f"{len(compared.unseen)} not tested any more"] if compared.unseen else []
    return ", ".join(parts)


def why_words(difference: Difference) -> str:
    """A difference of the requests in one line."""
    sides = (("old", difference.first), ("new", difference.second))
    numbers = (f"{name} #{side.exchange}" for name, side in sides if side.exchange is not None)
    where = " ".join([printable(difference.call, 200), *numbers])
    if difference.kind is Kind.CHANGED:
        ours, theirs = texts(difference.first, difference.second)
        return f"{difference.member or 'the exchange'}: {ours} became {theirs}, {where}"
    return f"{difference.kind.value}: {printable(difference.member, 120)} {where}".replace("  ", " ")


def _reasons(step: Step) -> Iterator[str]:
    """The changes of the requests, one member of one operation once however many calls show it."""
    alike: dict[tuple[Kind, str, str], list[Difference]] = {}
    for difference in step.why:
        alike.setdefault((difference.kind, difference.call, difference.member), []).append(difference)
    for first, *more in alike.values():
        yield why_words(first) + (", and others like it" if more else "")


def lines(compared: Compared, width: int, colour: bool = False) -> list[str]:
    """What is new in full, what is mended and what is still there in a line each."""
    return drawn([*_things(compared)], width, colour)


def _things(compared: Compared) -> Iterator[RenderableType]:
    yield labelled("old", identity_words(compared.old))
    yield labelled("new", identity_words(compared.new))
    for number, step in enumerate(compared.fresh):
        yield Text()
        yield from _fresh(step, in_full=number < MAX_NEW)
    for word, steps in (("mended", compared.mended), ("not tested any more", compared.unseen)):
        if steps:
            yield Text()
        yield from (_line(word, step) for step in steps)
    if compared.still:
        yield Text()
        names = dict.fromkeys(step.now.requirement for step in compared.still)
        yield Paragraph(f"still there: {', '.join(names)}", 0, 4)
    yield Text()


def _fresh(step: Step, *, in_full: bool) -> Iterator[RenderableType]:
    breach = step.now
    was = "" if step.old is None else f", {step.old.verdict.value} before"
    yield Text.assemble(("new ", STRONG), verdict_text(breach.verdict), f" {breach.requirement}{was}")
    requirement, finding = catalogue().get(breach.requirement), breach.finding
    yield labelled("what", printable(breach.kind if finding is None else finding.message, 400))
    if not in_full:
        return
    if breach.file:
        exchange = f" #{finding.exchanges[0]}" if finding is not None and finding.exchanges else ""
        yield labelled_line("where", f"{printable(breach.file, 400)}{exchange}")
    if breach.traces > 1:
        yield labelled("seen", f"in {counted(breach.traces, 'trace')}")
    if finding is not None and finding.pointer:
        yield labelled("at", printable(finding.pointer, 300))
    for reason in _reasons(step):
        yield labelled("because", reason)
    if requirement is not None:
        yield labelled("change", requirement.fix)
        yield labelled_command("page", ["signet-conformance", "explain", breach.requirement])


def _line(word: str, step: Step) -> Paragraph:
    told = step.now.kind if step.now.finding is None else step.now.finding.message
    because = f" ({why_words(step.why[0])})" if step.why else ""
    return Paragraph(f"{word}: {step.now.requirement} {printable(told, 200)}{because}", 0, 4)


def markdown(compared: Compared) -> str:
    """A comment for a pull request: what is new, with the reason, and the rest as numbers."""
    blocks = [f"## Signet conformance: {closing_words(compared)}", ""]
    if not compared.fresh:
        blocks += ["Nothing new is breached.", ""]
    for step in compared.fresh[:MAX_NEW]:
        blocks += _block(step)
    if (more := compared.fresh[MAX_NEW:]) and (names := dict.fromkeys(step.now.requirement for step in more)):
        blocks += [f"And {len(more)} more: {', '.join(map(inline, names))}.", ""]
    blocks.append(f"Old: {inline(identity_words(compared.old))}. New: {inline(identity_words(compared.new))}.")
    return "\n".join(blocks) + "\n"


def _block(step: Step) -> Sequence[str]:
    breach = step.now
    requirement, finding = catalogue().get(breach.requirement), breach.finding
    was = "" if step.old is None else f", {step.old.verdict.value} before"
    block = [f"### {breach.verdict.value} {inline(breach.requirement)}{was}", ""]
    block += [f"- **what**: {inline(printable(breach.kind if finding is None else finding.message, 400))}"]
    if breach.file:
        exchange = f" #{finding.exchanges[0]}" if finding is not None and finding.exchanges else ""
        seen = f", in {counted(breach.traces, 'trace')}" if breach.traces > 1 else ""
        block.append(f"- **where**: {code(printable(breach.file, 400) + exchange)}{seen}")
    block += [f"- **because**: {inline(printable(reason, 600))}" for reason in _reasons(step)]
    if requirement is not None:
        block.append(f"- **change**: {inline(requirement.fix)}")
        address = page_address(breach.requirement)
        page = f"[{inline(breach.requirement)}]({address})" if address else code(explain_command(breach.requirement))
        block.append(f"- **page**: {page}")
    return [*block, ""]
