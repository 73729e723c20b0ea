"""Options that several commands share: the declaration of a connector, known failures, reports, requirements.

A requirement is named whole, as a family such as SIG-AGENT, or as a glob; SIG- may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import wraps
from math import isfinite
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
from msgspec import Struct

from signet_conformance.cli.output import report_stream
from signet_conformance.errors import UsageError, printable
from signet_conformance.outcome.options import DEFAULT_DAYS, Declarations, KnownOptions
from signet_conformance.reports import FORMATS, Format
from signet_conformance.trace import BOUNDS, Declared

if TYPE_CHECKING:
    from signet_conformance.reports.ending import ReportWriter

BYPASSES = ("connector", "application")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _with_options(command: _Command, *options: Callable[[_Command], _Command]) -> _Command:
    """Add options, which the help lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def declared_options(command: _Command) -> _Command:
    """Add the options that declare agents, harness, bounds, capabilities, a token, cut texts and the bypass."""
    return _with_options(
        command,
        click.option(
            "--agent", "agents", multiple=True, metavar="ID", help="An agent id the connector acts as; repeatable."
        ),
        click.option("--harness", metavar="NAME", help="The harness the connector names."),
        click.option(
            "--bound",
            "bounds",
            multiple=True,
            metavar="NAME=SECONDS",
            help="When the connector gives up, such as start=15 or prompt=5; repeatable.",
        ),
        click.option(
            "--capability",
            "capabilities",
            multiple=True,
            metavar="OPERATION",
            help="An operation the connector declares; repeatable.",
        ),
        click.option("--token", is_flag=True, help="The connector was given a token."),
        click.option(
            "--prompt-chars",
            type=click.IntRange(1),
            metavar="N",
            help="Number of characters to which the connector cuts the user's text.",
        ),
        click.option(
            "--bypass", type=click.Choice(BYPASSES), help="Who applies the user's bypass (default: the connector)."
        ),
    )


strict_option = click.option("--strict", is_flag=True, help="Let a WARN fail too (exit 1).")
target_option = click.option("--target", metavar="NAME", help="Declare what the profile of this target declares.")


def parse_declared(
    agents: Sequence[str],
    harness: str | None,
    bounds: Sequence[str],
    capabilities: Sequence[str],
    token: bool,
    prompt_chars: int | None,
    bypass: str | None,
) -> Declared:
    """Read the options of a declaration. Raises UsageError, which names the option and the wrong value."""
    for option, values in (("--agent", agents), ("--harness", () if harness is None else (harness,))):
        if not all(value.strip() for value in values):
            raise UsageError("the value is blank", where=option, remedy=f"leave {option} out, or give a name")
    for name in capabilities:
        _check_operation(name)
    return Declared(
        agents=tuple(agent.strip() for agent in agents),
        harness=harness,
        bounds_s=dict(map(_bound, bounds)),
        capabilities=tuple(capabilities) or None,
        token=token,
        prompt_chars=prompt_chars,
        bypass=bypass,
    )


def parse_declarations(target: str | None, **declared: Any) -> Declarations:
    """Read the options of a declaration, and the profile of the target that they name."""
    options = parse_declared(**declared)
    if target is None:
        return Declarations(options)
    # Profiles take a while to import, and few recordings need one.
    from signet_conformance import targets

    return Declarations(options, targets.load(target).declared_of_recordings, target)


def _bound(text: str) -> tuple[str, float]:
    name, _, seconds = text.partition("=")
    try:
        value = float(seconds)
    except ValueError:
        value = 0.0
    if name not in BOUNDS or not isfinite(value) or value <= 0:
        raise UsageError(
            f"{printable(text, 60)!r} is not a bound",
            where="--bound",
            remedy=f"write --bound start=15: a name of {', '.join(BOUNDS)}, then seconds above zero",
        )
    return name, value


def _check_operation(name: str) -> None:
    # Not at the top: few recordings need it, and it takes a while to import.
    from signet_conformance.contract import document

    known = document("operations.json")["operations"]
    if name not in known:
        near = get_close_matches(name, known, 3)
        raise UsageError(
            f"there is no operation {printable(name, 60)!r}",
            where="--capability",
            remedy=f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(known)}",
        )


def known_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that name, and write, files of known failures; the command gets a KnownOptions, `known`."""

    @wraps(command)
    def with_known(**options: Any) -> int:
        known = KnownOptions(**{name: options.pop(name) for name in KnownOptions.__struct_fields__})
        return command(known=known, **options)

    return _with_options(
        with_known,
        click.option("--baseline", metavar="FILE", help="Known failures, which do not fail the run."),
        click.option("--flaky", metavar="FILE", help="Requirements that fail now and then (signet-flaky/1)."),
        click.option("--write-baseline", metavar="FILE", help="Write what fails now into FILE, which must not exist."),
        click.option("--owner", metavar="NAME", help="Owner of the entries that are written (default: you)."),
        click.option("--reason", metavar="TEXT", help="Reason of the entries that are written."),
        click.option(
            "--expires", metavar="DAY", help=f"Last day of a written entry (default: in {DEFAULT_DAYS} days)."
        ),
    )


def report_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that ask for reports, and --output; the command gets them as `reports`, a ReportFiles."""

    @wraps(command)
    def with_reports(*, output: str | None, selftest_file: str | None, **options: Any) -> int:
        values = {name: options.pop(_variable(name)) for name in FORMATS}
        return command(reports=ReportFiles.parse(values, output, selftest_file), **options)

    return _with_options(
        with_reports,
        click.option("--output", "-o", metavar="FILE", help="Write the report to FILE, which must not exist."),
        *map(_option, FORMATS.values()),
        click.option(
            "--selftest",
            "selftest_file",
            metavar="FILE",
            help="Show the kill matrix of FILE (signet-selftest/1) in --html.",
        ),
    )


def _option(kind: Format) -> Callable[[Any], Any]:
    if kind.in_place_of_text:
        return click.option(f"--{kind.name}", _variable(kind.name), is_flag=True, help=kind.help)
    return click.option(f"--{kind.name}", _variable(kind.name), metavar="FILE", help=kind.help)


def _variable(name: str) -> str:
    return f"{name}_report"


class ReportFiles(Struct, frozen=True):
    """Which reports are written where.

    `document` is the format that is written in place of the text, to `output` or stdout. `beside` are the other
    formats that were asked for, each with its file. `selftest` is the kill matrix to show in them, read from
    `selftest_file`.
    """

    document: Format | None
    output: str | None
    beside: Mapping[Format, str]
    selftest: Mapping[str, Any] | None
    selftest_file: str | None

    @classmethod
    def parse(cls, values: Mapping[str, Any], output: str | None, selftest: str | None) -> ReportFiles:
        """Read the options; `values` are by name of format. Raises UsageError if they do not go together."""
        kinds = [kind for name, kind in FORMATS.items() if values[name] not in (None, False)]
        instead = [kind for kind in kinds if kind.in_place_of_text]
        if len(instead) > 1:
            raise UsageError(
                "only one of them can replace the text",
                where=", ".join(f"--{kind.name}" for kind in instead),
                remedy=f"leave --{instead[1].name} out",
            )
        beside = {kind: values[kind.name] for kind in kinds if not kind.in_place_of_text}
        matrix = None
        if selftest is not None:
            if not any("selftest" in kind.shows for kind in kinds):
                raise UsageError("is only shown in a page", where="--selftest", remedy="add --html FILE")
            from signet_conformance.reports.html import kill_matrix

            matrix = kill_matrix.read_kill_matrix(selftest)
        return cls(instead[0] if instead else None, output, beside, matrix, selftest)

    @property
    def files(self) -> Sequence[str]:
        """All files that the run writes reports to, that of --output first."""
        return [*([] if self.output is None else [self.output]), *self.beside.values()]

    @property
    def shows_coverage(self) -> bool:
        """Whether coverage is to be measured for a report, whatever else was asked for."""
        return any("coverage" in kind.shows for kind in (*self.beside, *([self.document] if self.document else [])))

    def open(self, stream: TextIO, stack: ExitStack, force: bool) -> list[ReportWriter]:
        """Open the reports. The one in place of the text writes to `stream`; `stack` closes the files of the others.

        Raises UsageError for a file that cannot be written.
        """
        reports = [
            kind.open(stack.enter_context(report_stream(file, force, private=kind.private)))
            for kind, file in self.beside.items()
        ]
        return reports if self.document is None else [*reports, self.document.open(stream)]


_PREFIX = "SIG-"


def requirement_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a requirement in a shell: families while the family is typed, then ids."""
    from signet_conformance.contract import catalogue

    known = catalogue()
    wanted = incomplete.strip().upper()
    families = [name for name in dict.fromkeys(each.rpartition("-")[0] for each in known) if name.startswith(wanted)]
    return [*families, *(name for name in known if name.startswith(wanted))]


def only_option(help_text: str) -> Callable[[_Command], _Command]:
    """An option that names the only requirements to judge."""
    return click.option(
        "--only", "-k", "only", shell_complete=requirement_names, multiple=True, metavar="REQUIREMENT", help=help_text
    )


def select_requirements(patterns: Iterable[str], option: str) -> frozenset[str] | None:
    """The requirements on connector and harness that the patterns of an option name; None without a pattern.

    Raises UsageError for a pattern that names no requirement.
    """
    from signet_conformance.contract import harness_requirements
    from signet_conformance.rules import rules

    known = [*rules(), *harness_requirements()]
    ids: set[str] = set()
    for pattern in patterns:
        ids.update(matching(pattern, known, option))
    return frozenset(ids) or None


def matching(pattern: str, known: Sequence[str], option: str | None = None) -> list[str]:
    """The known ids that a pattern names, in their order. Raises UsageError if it names no id.

    `agent-002` and `agent` mean SIG-AGENT-002 and SIG-AGENT; `compaction` is the area of SIG-CMP.
    """
    wanted = pattern.strip().upper()
    for word in (wanted, f"{_PREFIX}{wanted}"):
        if ids := [name for name in known if fnmatchcase(name, word) or fnmatchcase(name, f"{word}-*")]:
            return ids
    from signet_conformance.contract import catalogue

    area = wanted.lower()
    if ids := [name for name in known if name in catalogue() and catalogue()[name].area == area]:
        return ids
    raise _unknown_requirement(pattern, known, option)


def _unknown_requirement(name: str, known: Sequence[str], where: str | None) -> UsageError:
    """The error for an unknown id, with the nearest known ones."""
    families = dict.fromkeys(each.rpartition("-")[0] for each in known)
    wanted = name.strip().upper()
    near = get_close_matches(wanted, [*families, *known], 5, 0.5)
    # Without its prefix a short name is too far from everything.
    near = near or get_close_matches(f"{_PREFIX}{wanted}", [*families, *known], 5, 0.5)
    return UsageError(
        f"no requirement is called {printable(name, 60)!r}" + (f"; did you mean {', '.join(near)}?" if near else ""),
        where=where,
        remedy=f"signet-conformance explain {near[0]}" if near else "signet-conformance explain",
    )
