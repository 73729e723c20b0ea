"""The report for a browser: one file with verdicts, breaches, sessions as diagrams, every exchange, and coverage.

The parts about the run as a whole are plain HTML. Sessions and exchanges are data that the page's script draws on
demand, so that a run of many thousand exchanges opens at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Self, TextIO
from urllib.parse import quote

from msgspec import Struct

from signet_conformance import __version__
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import counted, first_of, printable
from signet_conformance.facts.steps import skipped_words
from signet_conformance.files import shown_path
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Judgement, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.outcome.coverage import Coverage, Dimension
from signet_conformance.outcome.next_contract import NewerContract
from signet_conformance.outcome.reach import UnreachableParts
from signet_conformance.reports.cause_text import MAX_PROBLEMS, cause_rows, known_words, replay_words
from signet_conformance.reports.causes import Cause, CauseReport
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.ending import RunEnding
from signet_conformance.reports.evidence import SENT_BY, Evidence, known_requirement
from signet_conformance.reports.html import kill_matrix
from signet_conformance.reports.html.exchange_data import Budget, exchange_data, linked_sources
from signet_conformance.reports.html.page import (
    Markup,
    element,
    facts,
    filter_form,
    joined,
    more_about,
    requirement_page,
    row,
    table,
    verdict_tag,
    write_page,
)
from signet_conformance.reports.remarks import played, remarks
from signet_conformance.reports.values import cell

_SCRIPTS = tuple(
    f"{name}.js"
    for name in ("address", "sessions", "diagram", "waterfall", "body", "copying", "exchange", "breach", "find", "walk")
)
"""In the order in which they run: the last one begins."""
MAX_TRACES = 1000
"""Traces that the page lists; the others are counted."""
MAX_NAMES = 4
"""How many targets and daemons the head of the page names; of more, only their number."""


class HtmlReport(CauseReport):
    """Gathers what the page shows, in bounded memory, and writes it at the end.

    `live` is the number of its state if the page is served while its recordings grow.
    """

    def __init__(self, stream: TextIO, live: int | None = None) -> None:
        super().__init__(stream)
        self._live = live
        self._budget = Budget()
        self._rows: list[_Row] = []
        self._data: list[tuple[str, str]] = []
        self._more = 0
        self._names: dict[str, str] = {}
        """The name of each trace in addresses of this page, by its file."""

    def add(self, judged: JudgedTrace, known: Mapping[str, str]) -> None:
        """Add one trace."""
        super().add(judged, known)
        if len(self._rows) == MAX_TRACES:
            self._more += 1
            return
        number = len(self._rows)
        self._data.append((f"trace-{number}", exchange_data(judged, self._budget)))
        self._rows.append(_Row.of(judged, self._name(judged)))

    def _name(self, judged: JudgedTrace) -> str:
        """A short name for a trace, which no other trace has."""
        file = printable(judged.trace.path or "trace", 400)
        name = PurePath(file).stem
        if name in self._names.values() or file in self._names:
            name = f"{name}~{len(self._rows) + 1}"
        self._names.setdefault(file, name)
        return name

    def close(self, ending: RunEnding) -> None:
        """Write the page."""
        run = ending.conclusion
        self._causes.end(run)
        broken = self._causes.connector()
        hosts = (("played", host.words) for host in played(each.trace for each in run.judged))
        header = (
            element("p", ending.closing_line, class_="lead"),
            facts(
                (
                    ("target", _names_once(each.trace.header.target or "" for each in run.judged)),
                    ("daemon", _names_once(each.daemon_version for each in run.judged)),
                    ("contract", run.contract),
                    ("kit", __version__),
                    ("run", run.identity.words()),
                    *hosts,
                    ("skipped", skipped_words(run.skipped)),
                )
            ),
        )
        sections = []
        if broken:
            sections.append(("breaches", "What is broken", _causes(broken, ending.options, self._names)))
        if harness_notes := remarks(each.trace for each in run.judged):
            sections.append(("noticed", "Noticed in the harness", _note_list(harness_notes)))
        sections.append(
            ("verdicts", "Verdicts", _verdicts(run, {name for cause in broken for name in cause.requirements}))
        )
        sections.append(("sessions", "Sessions and exchanges", self._sessions()))
        if daemon := self._causes.daemon():
            sections.append(("daemon", "On the daemon's side", self._section_apart(daemon, ending)))
        if harness := self._causes.harness():
            sections.append(("model", "What reached the model", self._section_apart(harness, ending)))
        if run.coverage is not None:
            sections.append(("coverage", "Coverage", _coverage(run.coverage)))
        if run.newer is not None and run.newer.words:
            sections.append(("newer", f"Would breach {run.newer.version}", _newer(run.newer)))
        if run.reach is not None and run.reach.words:
            sections.append(("unreached", "What the model cannot reach", _unreached(run.reach)))
        if ending.selftest is not None:
            sections.append(("kill-matrix", "Kill matrix", kill_matrix.section(ending.selftest)))
        if ending.notes:
            sections.append(("notes", "Notes", _note_list(ending.notes)))
        write_page(self._stream, "Signet conformance", header, sections, _SCRIPTS, self._data, self._live)

    def _section_apart(self, causes: Sequence[Cause], ending: RunEnding) -> Markup:
        lead = element("p", "Apart from the connector's verdicts and the exit status.")
        return joined([lead, _causes(causes, ending.options, self._names)])

    def _sessions(self) -> Markup:
        parts = [
            table(
                "The traces that were judged", ("Trace", "FAIL", "WARN", "Exchanges", "Daemon"), _trace_rows(self._rows)
            )
        ]
        if self._more:
            left_out = counted(self._more, "more trace")
            parts.append(element("p", f"not in this page: {left_out}; the JSON report has all."))
        keys = (element("kbd", key) for key in "jknp")
        words = (" next and ", " previous exchange, ", " next and ", " previous with a finding")
        parts.append(
            element(
                "p", "Keys: ", *(part for pair in zip(keys, words, strict=True) for part in pair), class_="quiet keys"
            )
        )
        # What the script draws goes here, in the order in which it is read.
        parts += (element("div", id=name) for name in ("find", "session-list", "session-view", "exchange-view"))
        return joined(parts)


def _note_list(notes: Sequence[str]) -> Markup:
    return element("ul", (element("li", printable(note, 600)) for note in notes), class_="plain")


class _Row(Struct, frozen=True):
    """A trace in the list of them; `place` is its name in addresses of the page."""

    path: str
    place: str
    cells: tuple[str, ...]

    @classmethod
    def of(cls, judged: JudgedTrace, place: str) -> Self:
        tally = Counter(judgement.verdict for judgement in judged.judgements.values())
        counts = (tally[Verdict.FAIL], tally[Verdict.WARN], len(judged.trace.exchanges))
        return cls(
            shown_path(judged.trace.path or "trace"), place, (*map(str, counts), cell(judged.daemon_version, 40))
        )


def _trace_rows(traces: Sequence[_Row]) -> Iterator[Markup]:
    """The traces by their paths, without the folder that they share."""
    folders = {PurePath(trace.path).parent for trace in traces}
    common = next(iter(folders)) if len(folders) == 1 else None
    for number, trace in enumerate(traces):
        name = cell(trace.path if common is None else PurePath(trace.path).name, 400)
        open_it = element("button", element("bdi", name), type="button", data_trace=number, data_name=trace.place)
        yield row(open_it, *trace.cells)


def _names_once(names: Iterable[str]) -> str:
    return printable(first_of(dict.fromkeys(filter(None, names)), MAX_NAMES), 400)


def _verdicts(run: Conclusion, broken: set[str]) -> Markup:
    tally = Counter(judgement.verdict for judgement in run.judgements.values())
    kinds = ((verdict.value, verdict_tag(verdict.value), tally[verdict]) for verdict in FOLDING_ORDER)
    # In a run with a breach, its reader looks for that first.
    form = filter_form(kinds, BREACHES if any(tally[verdict] for verdict in BREACHES) else None)
    rows = (_verdict_row(each, run, linked=name in broken) for name, each in run.judgements.items())
    heads = ("Requirement", "What it says")
    return joined((form, table("The verdict of each requirement over the whole run", heads, rows)))


def _verdict_row(judgement: Judgement, run: Conclusion, *, linked: bool) -> Markup:
    name, verdict = judgement.requirement, judgement.verdict
    requirement = known_requirement(name)
    version = run.judged[0].daemon_version if run.judged else ""
    says: list[str | Markup] = [requirement.title] if requirement is not None else ["a rule of this repository's own"]
    if requirement is not None:
        more = (("why", requirement.why), ("change", requirement.fix), ("page", requirement_page(name)))
        says.append(more_about(name, more))
    level = requirement.level_at(version) if requirement is not None and version else ""
    head = (
        element("span", verdict_tag(verdict.value), " ", element("span", level, class_="quiet"), class_="line"),
        element("a", name, href=f"#{name}") if linked else name,
    )
    return row(joined(head), joined(says), data_kind=verdict.value)


def _causes(causes: Sequence[Cause], options: Sequence[str], names: Mapping[str, str]) -> Markup:
    """The causes.

    The name of each requirement is the address of the cause that it leads, or of the first that it is in.
    """
    leading = {cause.requirement for cause in causes}
    shown = []
    for cause in causes:
        addressed = {name for name in cause.requirements if name not in leading}
        leading |= addressed
        shown.append(_cause(cause, options, addressed, names))
    return joined(shown)


def _cause(cause: Cause, options: Sequence[str], addressed: set[str], names: Mapping[str, str]) -> Markup:
    known = (" ", element("span", "known", class_="known")) if cause.is_known else ()
    head = element("h3", verdict_tag(cause.verdict.value), " ", cause.requirement, f" {cause.level}", *known)
    parts: list[Markup] = [head]
    if cause.sentence:
        parts.append(element("p", cause.sentence))
    parts += [
        element("div", *_example(breach, names.get(breach.file), around=breach is cause.first), class_="shown")
        for breach in cause.breaches[:MAX_PROBLEMS]
    ]
    rows = [*cause_rows(cause, (_other(other, other.requirement in addressed) for other in cause.also))]
    if known_requirement(cause.requirement) is not None:
        rows.append(("page", requirement_page(cause.requirement)))
    words = replay_words(cause, options) if cause.first.file else ()
    rows.append(("replay", element("code", shell_command(words)) if words else ""))
    parts.append(facts(rows))
    return element("article", *parts, id=cause.requirement)


def _other(other: Evidence, addressed: bool) -> Markup:
    name = other.requirement
    words = f" {name}{known_words(other)}: {other.what} ("
    verdict, page = verdict_tag(other.verdict.value), requirement_page(name)
    return element("span", verdict, words, page, ")", id=name if addressed else None)


def _example(breach: Evidence, name: str | None, *, around: bool) -> Iterator[Markup]:
    """One problem; `name` is that of its trace in addresses of the page, None if the page does not show the trace."""
    links = {SENT_BY: linked_sources(breach.sources)}
    if name is not None and breach.seq is not None:
        at = f"&at={quote(breach.pointer, '')}" if breach.pointer else ""
        links["where"] = element("a", breach.where, href=f"#trace={quote(name, '')}&exchange={breach.seq}{at}")
    rows: list[tuple[str, str | Markup]] = [(label, links.get(label, text)) for label, text in breach.facts]
    rows += [("again", breach.repeated)] if breach.repeats else []
    excerpt = Markup()
    if breach.around and around:
        lines = (element("li", line, class_="it" if breaching else None) for breaching, line in breach.around)
        excerpt = element("ol", lines, class_="excerpt", aria_label="The exchanges around it")
    yield element("div", facts(rows), excerpt)
    if name is not None and breach.where:
        # What the script draws there is the request itself, with the member marked; a mark carries nothing.
        yield element(
            "div",
            class_="request",
            data_of=breach.requirement,
            data_trace=name,
            data_exchange=breach.seq,
            data_at=breach.pointer or None,
        )


def _newer(newer: NewerContract) -> Markup:
    lead = (
        "The release lies between two contracts; this is the later one's. Apart from the verdicts and the exit status."
    )
    cells = (
        row(name, each.verdict.value, f"{each.traces} of {newer.of}", printable(each.message, 400))
        for name, each in newer.breaches.items()
    )
    heads = ("Requirement", "Verdict", "Traces", "What")
    return joined((element("p", lead), table(f"What contract {newer.version} would breach", heads, cells)))


def _unreached(reach: UnreachableParts) -> Markup:
    rows = [(tool, ", ".join(names)) for tool, names in reach.fields.items()]
    rows += [(tool, "the whole tool: no operation of it was called, and none is offered") for tool in reach.tools]
    rows += [(tool, "what it needs: its schema has no member for it") for tool in reach.unfillable]
    if reach.later is not None:
        rows += [
            (tool, f"{', '.join(names)} of contract {reach.version}") for tool, names in reach.later.fields.items()
        ]
        rows += [(tool, f"the whole tool, of contract {reach.version}") for tool in reach.later.tools]
    lead = element("p", "For information: no requirement asks for it, and no verdict rests on it.")
    listed = (row(tool, what) for tool, what in rows)
    return joined((lead, table("Fields and tools that no step could make it send", ("Tool", "Not reachable"), listed)))


def _coverage(coverage: Coverage) -> Markup:
    rows = (row(part.name, _meter(part), _missed(part.name, part.missed)) for part in coverage.parts)
    lead = element("p", f"{coverage.percent:.0f} % of the contract was exercised.")
    return joined((lead, table("What the run exercised", ("Part", "Seen", "Not seen"), rows)))


def _meter(part: Dimension) -> Markup:
    count = len(part.exercised)
    label = element("span", f"{count} of {part.total}", class_="line")
    return joined((label, element("meter", min=0, max=part.total or 1, value=count, aria_label=part.name)))


def _missed(name: str, missed: tuple[str, ...]) -> Markup:
    if not missed:
        return Markup("nothing")
    points = element("ul", (element("li", element("code", point)) for point in missed), class_="plain")
    return element("details", element("summary", str(len(missed)), aria_label=f"{len(missed)} {name} not seen"), points)
