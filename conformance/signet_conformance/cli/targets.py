"""`signet-conformance targets`: the connectors that the kit knows by name."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from signet_conformance import targets
from signet_conformance.cli.output import terminal_width
from signet_conformance.errors import printable
from signet_conformance.reports.layout import paragraph, usable_width
from signet_conformance.targets.doctor import Need, examine
from signet_conformance.trace import Declared


@click.command("targets", help="List the known targets and what each declares.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object, target name to what it declares.")
@click.option("--doctor", metavar="NAME", help="Say what driving this target takes and what is missing (exit 2).")
def command(as_json: bool, doctor: str | None) -> int:
    """Print the list, or what one target needs."""
    if doctor is not None:
        needs = list(examine(targets.load(doctor, option="--doctor")))
        print(*_needs(needs), sep="\n")
        return 2 if any(need.found is None for need in needs) else 0
    declared: dict[str, Declared] = {name: targets.load(name).declared for name in targets.known()}
    if as_json:
        print(json.dumps({name: one.to_json() for name, one in declared.items()}, indent=2))
    else:
        print(*_list(declared), sep="\n")
    return 0


def _needs(needs: list[Need]) -> Iterator[str]:
    for need in needs:
        label = "missing" if need.found is None else "note" if need.note else "found"
        said = f"{label:<9}{need.what}: {need.remedy if need.found is None else need.found}"
        yield from paragraph(said, usable_width(terminal_width()), "", " " * 9)


def _list(declared: dict[str, Declared]) -> Iterator[str]:
    shown = {printable(name, 60): one for name, one in declared.items()}
    width = max(map(len, shown), default=0)
    for name, one in shown.items():
        facts = [
            f"harness {one.harness}" if one.harness else "",
            f"agents {', '.join(one.agents)}" if one.agents else "",
            "gives up after " + ", ".join(f"{k} {v:g} s" for k, v in one.bounds_s.items()) if one.bounds_s else "",
            f"{len(one.capabilities)} operations declared" if one.capabilities is not None else "",
        ]
        said = printable("; ".join(fact for fact in facts if fact) or "declares nothing", 2000)
        yield from paragraph(f"{name:<{width}}  {said}", usable_width(terminal_width()), "", " " * (width + 2))
