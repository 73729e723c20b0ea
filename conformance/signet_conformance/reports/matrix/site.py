"""The matrix as a page, and as a small static site: which connector may ship with which daemon, histories, badges.

The files link to each other by relative addresses, so any web server can serve them, and a browser can open the folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from hashlib import sha256
from html import escape
from typing import TextIO

from msgspec import Struct

from signet_conformance import __version__
from signet_conformance.contract import contract_versions, document
from signet_conformance.errors import UsageError, first_of, printable, printable_json
from signet_conformance.finding import Verdict
from signet_conformance.reports import matrix
from signet_conformance.reports.evidence import known_requirement
from signet_conformance.reports.html.page import (
    Markup,
    asset,
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
from signet_conformance.reports.matrix import Column
from signet_conformance.reports.values import cell

INDEX = "index.html"
_SIDE_BY_SIDE = "side-by-side.html"
DATA = "matrix.json"
MAX_NAMED = 5
"""How many broken requirements an answer names; it counts the others."""


class Compatibility(StrEnum):
    """Whether a connector may ship with a daemon of a contract version."""

    YES = "yes"
    NO = "no"
    NOT_SHOWN = "not shown"


class Shipping(Struct, frozen=True):
    """Whether a run allows shipping; `why` says why not, and is empty for yes."""

    may: Compatibility
    why: str


class HistoryKey(Struct, frozen=True, order=True):
    """A connector in the real program, or in the harness that the kit plays."""

    name: str
    real: bool

    @property
    def words(self) -> str:
        """The connector's name, and whether it ran in the real program."""
        return f"{self.name}, in the real program" if self.real else self.name


def shipping_of(column: Column) -> Shipping:
    """Whether one run allows shipping. Part of a run can show a breach, but only a whole run shows conformance."""
    failed = [name for name, verdict in column.verdicts.items() if verdict is Verdict.FAIL]
    if failed:
        return Shipping(Compatibility.NO, f"breaks {first_of(failed, MAX_NAMED)}")
    missing = column.full_set
    return Shipping(Compatibility.YES, "") if missing is None else Shipping(Compatibility.NOT_SHOWN, missing)


def histories(columns: Iterable[Column]) -> Mapping[HistoryKey, Sequence[Column]]:
    """The runs of each connector, the newest first; a run without a time counts as the oldest."""
    runs: dict[HistoryKey, list[Column]] = {}
    for column in columns:
        runs.setdefault(HistoryKey(column.name, column.harness is not None), []).append(column)
    return {
        connector: sorted(runs[connector], key=lambda column: (column.created, column.report), reverse=True)
        for connector in sorted(runs)
    }


def newest_by_contract(history: Sequence[Column]) -> Mapping[str, Column]:
    """By contract version, the newest version first, the newest run. `history` begins with the newest run."""
    known = {version: number for number, version in enumerate(contract_versions())}
    first: dict[str, Column] = {}
    for column in history:
        first.setdefault(column.contract, column)
    return {version: first[version] for version in sorted(first, key=lambda version: -known[version])}


def previous_run(history: Sequence[Column], number: int) -> Column | None:
    """The previous run by the contract version of the run at `number`."""
    contract = history[number].contract
    return next((column for column in history[number + 1 :] if column.contract == contract), None)


def changes(old: Column, new: Column) -> tuple[list[str], list[str]]:
    """The requirements that a later run newly fails, and those that it passes again."""
    failed, passed = (
        [name for name, verdict in new.verdicts.items() if verdict is wanted] for wanted in (Verdict.FAIL, Verdict.PASS)
    )
    broken = [name for name in failed if old.verdicts.get(name) is not Verdict.FAIL]
    fixed = [name for name in passed if old.verdicts.get(name) is Verdict.FAIL]
    return broken, fixed


_MEANINGS = (
    (Compatibility.YES, "a whole run by this contract version broke no requirement"),
    (Compatibility.NO, "the newest run broke at least one"),
    (Compatibility.NOT_SHOWN, "nothing broke, but the newest run was not a whole one"),
    ("-", "no run by this contract version"),
)

Histories = Mapping[HistoryKey, Sequence[Column]]
Write = Callable[[TextIO], None]


def files(columns: Iterable[Column]) -> Iterator[tuple[str, Write]]:
    """The name of each file of the site, with the function that writes it; the start page comes last."""
    runs = histories(columns)
    names = _names(runs)
    for connector, history in runs.items():
        badges = dict(_badges(names[connector], history))
        for name, text in badges.items():
            yield name, partial(_write, text)
        yield _page_of(names[connector]), partial(_connector_page, connector, history, names[connector], badges)
    shown = [column for history in runs.values() for column in newest_by_contract(history).values()]
    yield DATA, partial(_write, printable_json(json.dumps(matrix.to_json(shown), indent=2)) + "\n")
    yield _SIDE_BY_SIDE, lambda stream: write_side_by_side(shown, stream, (_link("All connectors", INDEX),))
    yield INDEX, partial(_index, runs, names)


def _write(text: str, stream: TextIO) -> None:
    stream.write(text)


def _names(connectors: Iterable[HistoryKey]) -> Mapping[HistoryKey, str]:
    """A file name for each connector: its own name if that is safe and free, else one with a hash."""
    names: dict[HistoryKey, str] = {}
    for connector in connectors:
        plain = re.sub(r"[^a-z0-9]+", "-", connector.name.lower()).strip("-")[:60]
        name = f"{plain}-real" if connector.real else plain
        taken = name in names.values() or _page_of(name) in (INDEX, _SIDE_BY_SIDE)
        if plain != connector.name or taken:
            name = f"{name}-{sha256(repr(connector).encode()).hexdigest()[:8]}"
        names[connector] = name
    return names


def _page_of(name: str) -> str:
    return f"{name}.html"


def _badges(name: str, history: Sequence[Column]) -> Iterator[tuple[str, str]]:
    """For each contract version with a whole run, a badge as a picture, and as a document for a badge service."""
    for contract, column in newest_by_contract(history).items():
        if column.full_set is None:
            release = column.release or column.commit[:9] or column.created[:10] or "unreleased"
            yield f"{name}-{contract}.svg", svg_badge(column, release)
            yield f"{name}-{contract}.json", json_badge(column, release)


def _index(runs: Histories, names: Mapping[HistoryKey, str], stream: TextIO) -> None:
    contracts = list(newest_by_contract([column for history in runs.values() for column in history]))
    heads = ("Connector", *(f"Daemon {contract}" for contract in contracts))
    may = table("May this connector ship with this daemon?", heads, _index_rows(runs, names, contracts))
    every = [(connector, column) for connector, history in runs.items() for column in history]
    every.sort(key=lambda run: run[1].created, reverse=True)
    answers = [shipping_of(column) for _, column in every]
    kinds = ((each, each, sum(said.may is each for said in answers)) for each in Compatibility)
    rows = (
        _run_row(column, shipping_of(column), _link(connector.words, _page_of(names[connector])))
        for connector, column in every
    )
    listed = table("Runs, the newest first", ("Connector", *_RUN_HEADS), rows)
    header = (
        facts((("connectors", str(len(runs))), ("runs", str(len(every))), ("kit", __version__))),
        element("p", _link("Operations and requirements side by side", _SIDE_BY_SIDE), ", ", _link("as JSON", DATA)),
    )
    sections = [
        ("ships", "Which connector may ship with which daemon", joined((facts(_MEANINGS), may))),
        ("runs", "Runs", joined((filter_form(kinds), listed))),
    ]
    write_page(stream, "Signet conformance: connectors", header, sections)


def _index_rows(runs: Histories, names: Mapping[HistoryKey, str], contracts: Sequence[str]) -> Iterator[Markup]:
    for connector, history in runs.items():
        by_contract = newest_by_contract(history)
        cells = (_may_cell(by_contract.get(contract)) for contract in contracts)
        yield row(_link(connector.words, _page_of(names[connector])), *cells)


def _may_cell(column: Column | None) -> str | Markup:
    if column is None:
        return "-"
    return joined((_may(shipping_of(column)), element("span", _version(column), class_="line quiet")))


def _may(shipping: Shipping) -> Markup:
    return element("span", shipping.may, data_may=shipping.may)


_RUN_HEADS = ("Began", "Contract", "Version", "Ships", "Why")


def _run_row(column: Column, shipping: Shipping, head: Markup | None = None, more: Sequence[str] = ()) -> Markup:
    """A run as a row: `head` names the connector in a table of several; `more` are further cells."""
    first = [] if head is None else [element("th", head, scope="row")]
    began = element("span", _when(column), class_="whole")
    shown = (began, column.contract, _version(column), _may(shipping), cell(shipping.why, 400), *more)
    return element("tr", *first, *(element("td", each) for each in shown), data_kind=shipping.may)


def _connector_page(
    connector: HistoryKey, history: Sequence[Column], name: str, badges: Mapping[str, str], stream: TextIO
) -> None:
    current = newest_by_contract(history)
    states = element("ul", (_state(column, name, badges) for column in current.values()), class_="plain")
    kinds = ((each, each, sum(shipping_of(column).may is each for column in history)) for each in Compatibility)
    heads = (*_RUN_HEADS, "Newly broken", "Fixed")
    listed = table("Runs, the newest first", heads, _history_rows(history))
    header = (
        facts((("runs", str(len(history))), ("harness", cell(history[0].harness or "", 80)), ("kit", __version__))),
        element("p", _link("All connectors", INDEX)),
    )
    sections = [
        ("now", "By contract version", states),
        ("history", "History", joined((filter_form(kinds), listed))),
    ]
    write_page(stream, f"Signet conformance: {cell(connector.words, 80)}", header, sections)


def _state(column: Column, name: str, badges: Mapping[str, str]) -> Markup:
    shipping = shipping_of(column)
    picture = f"{name}-{column.contract}.svg"
    broken = (requirement for requirement, verdict in column.verdicts.items() if verdict is Verdict.FAIL)
    pages = element("ul", (element("li", f"{each}: ", requirement_page(each)) for each in broken), class_="plain")
    rows: list[tuple[str, str | Markup]] = [
        ("ships", _may(shipping)),
        ("why", cell(shipping.why, 400)),
        ("broken", pages if shipping.may is Compatibility.NO else ""),
        ("version", _version(column)),
        ("began", _when(column)),
        ("commit", element("code", column.commit) if column.commit else ""),
        ("parity", matrix.parity_line(column)),
        ("badge", _link(picture, picture) if picture in badges else ""),
    ]
    return element("li", element("h3", f"Daemon {column.contract}"), facts(rows), id=f"daemon-{column.contract}")


def _history_rows(history: Sequence[Column]) -> Iterator[Markup]:
    for number, column in enumerate(history):
        earlier = previous_run(history, number)
        changed = ([], []) if earlier is None else changes(earlier, column)
        yield _run_row(column, shipping_of(column), more=[cell(", ".join(names), 400) for names in changed])


def _when(column: Column) -> str:
    return column.created[:16].replace("T", " ") or "not known"


def _version(column: Column) -> str:
    return cell(column.release, 40) or column.commit[:9] or "not known"


def _link(words: str, address: str) -> Markup:
    return element("a", element("bdi", printable(words, 80)), href=address)


_COLOURS = {"brightgreen": "#3c1", "green": "#781", "red": "#c43"}
_CHARACTER, _MARGIN = 6.6, 12


def _badge(column: Column, connector_version: str) -> tuple[str, str, str]:
    """Label, message and colour. Raises UsageError if the report is not that of a whole run."""
    missing = column.full_set
    if missing is not None:
        raise UsageError(
            f"makes no badge: {missing}",
            where=column.report,
            remedy="pytest --signet-conformance --target NAME --signet-report DIR, without -k; then DIR/report.json",
        )
    failed = sum(verdict is Verdict.FAIL for verdict in column.verdicts.values())
    rows, of = len(column.rows), len(matrix.surface())
    colour = "red" if failed else "brightgreen" if rows == of else "green"
    words = f"{failed} broken" if failed else "conforming"
    name = f"{printable(column.name, 40)} {printable(connector_version, 30)}"
    return f"Signet {column.contract}", f"{words}, {rows}/{of} | {name} | kit {column.kit}", colour


def json_badge(column: Column, connector_version: str) -> str:
    """The badge as the answer of a badge service's endpoint."""
    label, message, colour = _badge(column, connector_version)
    return json.dumps({"schemaVersion": 1, "label": label, "message": message, "color": colour}) + "\n"


def svg_badge(column: Column, connector_version: str) -> str:
    """The badge as a picture without network or script, with a title for screen readers."""
    label, message, colour = _badge(column, connector_version)
    left, right = (round(len(text) * _CHARACTER + _MARGIN) for text in (label, message))
    return asset("badge.svg").format(
        title=escape(f"{label}: {message}"),
        label=escape(label),
        message=escape(message),
        label_x=left / 2,
        message_x=left + right / 2,
        width=left + right,
        left=left,
        right=right,
        colour=_COLOURS[colour],
    )


_CELL_MEANINGS = (
    (matrix.USED, "declared and observed"),
    (matrix.UNUSED, "declared, not observed"),
    (matrix.DRIFT, "observed, not declared"),
    (matrix.SEEN, "observed, and nothing is declared"),
    (matrix.ABSENT, "neither"),
)


def write_side_by_side(columns: Sequence[Column], stream: TextIO, lead: Iterable[Markup] = ()) -> None:
    """Write one page with a column for each connector and contract version; `lead` comes first in its header."""
    named = list(zip(matrix.headings(columns, 200), columns, strict=True))
    parity = element("ul", (element("li", matrix.parity_line(column, name)) for name, column in named), class_="plain")
    meaning = facts(_CELL_MEANINGS)
    heads = [_head(name, column) for name, column in named]
    by_operation = table("Connector by operation", ("Operation", *heads), _operation_rows(columns))
    by_requirement = table("Connector by requirement", ("Requirement", *heads), _requirement_rows(columns))
    sections = [
        ("parity", "Parity with the integration surface", parity),
        ("operations", "Operations", joined((meaning, by_operation))),
        ("requirements", "Requirements", by_requirement),
    ]
    if later := [element("li", f"{name}: {column.later}") for name, column in named if column.later]:
        sections.insert(1, ("later", "Would breach the next contract", element("ul", later, class_="plain")))
    if differing := matrix.differences(columns):
        listed = element("ul", (element("li", each.words) for each in differing), class_="plain")
        sections.insert(1, ("lanes", "Breached only in the played or only in the real harness", listed))
    header = (*lead, facts((("connectors", str(len(columns))), ("kit", __version__))))
    write_page(stream, "Signet conformance: connectors side by side", header, sections)


def _head(name: str, column: Column) -> Markup:
    return joined((element("bdi", name), element("span", f"contract {column.contract}", class_="line quiet")))


def _operation_rows(columns: Sequence[Column]) -> Iterator[Markup]:
    rows = document("operations.json")["operations"]
    for name in matrix.operations(columns):
        number = f"row {rows[name]['row']}" if name in matrix.surface() else "beside the surface"
        head = joined((name, element("span", number, class_="line quiet")))
        cells = (column.operation(name) for column in columns)
        yield row(head, *(element("span", shown, data_cell=shown) for shown in cells))


def _requirement_rows(columns: Sequence[Column]) -> Iterator[Markup]:
    for name in dict.fromkeys(name for column in columns for name in column.verdicts):
        requirement = known_requirement(name)
        about: list[Markup] = []
        if requirement is not None:
            rows = (("says", requirement.title), ("change", requirement.fix), ("page", requirement_page(name)))
            about = [more_about(name, rows)]
        verdicts = (column.verdicts.get(name) for column in columns)
        cells = ("" if verdict is None else verdict_tag(verdict.value) for verdict in verdicts)
        yield row(joined((name, *about)), *cells)
