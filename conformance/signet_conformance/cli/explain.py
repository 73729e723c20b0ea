"""`signet-conformance explain`: what one requirement asks, why, and how it is breached and met.

Examples:
  signet-conformance explain
  signet-conformance explain SIG-AGENT-002
  signet-conformance explain SIG-AGENT-002 --json
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from rich.console import RenderableType
from rich.highlighter import JSONHighlighter
from rich.text import Text

from signet_conformance import contract
from signet_conformance.cli.commands import epilog_of
from signet_conformance.cli.shared_options import matching, requirement_names
from signet_conformance.reports import terminal
from signet_conformance.reports.command_lines import page_address


@click.command(
    "explain",
    help="Explain requirement ID, or each of a family (SIG-AGENT): sentence, source, subject, verdicts, a breach, the"
    " remedy. Without ID, list all.",
    epilog=epilog_of(__doc__),
)
@click.argument("named", nargs=-1, metavar="[ID]...", shell_complete=requirement_names)
@click.option("--json", "as_json", is_flag=True, help="Write the catalogue's own entry, or a list of entries.")
def command(named: tuple[str, ...], as_json: bool) -> int:
    """Print pages or the list."""
    known = contract.catalogue()
    if not named:
        if as_json:
            _write([entry for name, entry in contract.entries().items() if name in contract.requirements()])
        else:
            first, *_, last = contract.daemon_requirements()
            notes = [Text(f"and on the daemon's side {first} to {last}")]
            first, *_, last = contract.harness_requirements()
            notes.append(Text(f"and on what reaches the model {first} to {last}"))
            table = terminal.grid((name, each.level, each.title) for name, each in contract.requirements().items())
            terminal.print_drawn([table, *notes])
        return 0
    names = list(dict.fromkeys(name for pattern in named for name in matching(pattern, list(known))))
    if as_json:
        entries = [contract.entries()[name] for name in names]
        _write(entries[0] if len(entries) == 1 else entries)
        return 0
    for place, name in enumerate(names):
        terminal.print_drawn([*([Text()] if place else []), *_page(known[name])])
    return 0


def _write(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _page(requirement: contract.Requirement) -> Iterator[RenderableType]:
    yield Text.assemble((requirement.id, terminal.STRONG), f" {_levels(requirement)}")
    yield terminal.Paragraph(requirement.title, 2)
    yield Text()
    since = f"daemon {requirement.since}" if requirement.since else "every daemon version"
    facts = [
        ("since", ". ".join([since, *filter(None, [requirement.since_note])])),
        ("speaks of", ", ".join(requirement.operations) or "any exchange"),
        ("subject", requirement.subject),
        ("verdict", _verdict_rule(requirement)),
        *(("", sentence) for sentence in contract.sentences(requirement.verdict)),
        ("source", requirement.source),
        ("why", requirement.why),
        ("change", requirement.fix),
        ("unseen", requirement.undecided or "nothing: a recording decides it"),
        ("needs", _SIDES.get(requirement.side) or _DECIDES[requirement.decides]),
    ]
    yield from (terminal.labelled(label, text) for label, text in facts)
    yield terminal.labelled("page", _documentation_of(requirement.id))
    yield Text()
    if not requirement.example:
        yield terminal.labelled_command("check", ["signet-conformance", "check", "TRACE"])
        return
    yield Text("  A recording that breaches it:")
    example = Text("\n".join(_example(requirement.example, requirement.example_context)))
    JSONHighlighter().highlight(example)
    yield terminal.VerbatimLines(example.split("\n"), 4)
    yield Text()
    only = ["-k", requirement.id] if requirement.side == "connector" else []
    yield terminal.labelled_command("check", ["signet-conformance", "check", "TRACE", *only])


_SIDES = {
    "daemon": "a recording; it is judged on the daemon's side and changes no verdict of the connector",
    "harness": "a recording with that of the harness's model beside it; it changes no verdict of the connector",
}
_DECIDES = {
    "trace": "a recording, however it was made",
    "marks": "a run driven by the kit, with its step and fault marks",
}


def _documentation_of(name: str) -> str:
    """The address of the requirement's page, or the page's place in the documentation."""
    return page_address(name) or f"requirements/{name} of the documentation, which also names what proves its rule"


def _levels(requirement: contract.Requirement) -> str:
    later = (f"{level} from daemon {version}" for version, level in requirement.level_from.items())
    return ", ".join([requirement.level, *later])


def _verdict_rule(requirement: contract.Requirement) -> str:
    breach = "FAIL" if requirement.level == "MUST" else "WARN"
    return f"PASS when the subject meets the sentence, else {breach}; NOT-APPLICABLE without a subject."


def _example(example: Sequence[Mapping[str, Any]], context: Mapping[str, Any] | None) -> Iterator[str]:
    if context:
        yield json.dumps({"header": context})
    for entry in example:
        yield from json.dumps(entry, indent=2, ensure_ascii=False).split("\n")
