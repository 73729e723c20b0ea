"""`signet-conformance targets`: the connectors that the kit, or the settings of a repository, define."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import click
from rich.table import Table
from rich.text import Text

from signet_conformance import targets
from signet_conformance.children.environment import clean_environment
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.errors import SignetConformanceError, UsageError, printable
from signet_conformance.facts.steps import steps_for
from signet_conformance.finding import Verdict
from signet_conformance.reports.terminal import VERDICT_STYLES, grid, print_drawn
from signet_conformance.scenarios.features import listed_steps, possible_steps
from signet_conformance.targets import Target
from signet_conformance.targets.doctor import Prerequisite, examine
from signet_conformance.trace import Declared


@click.command("targets", help="List the known targets and what each declares.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object, target name to what it declares.")
@click.option(
    "--doctor", metavar="NAME", help="Show what driving this target needs, and what is missing (then exit 2)."
)
def command(as_json: bool, doctor: str | None) -> int:
    """Print the list, or what one target needs."""
    if doctor is not None:
        if as_json:
            raise UsageError("has no JSON form", where="--doctor", remedy="leave out --json")
        target = targets.load(doctor, option="--doctor")
        needs = list(examine(target))
        if target.kind.own_program and all(need.found is not None for need in needs):
            needs += handshake(target)
        print_drawn([_needs(needs)])
        return 2 if any(need.found is None for need in needs) else 0
    declared: dict[str, Declared] = {name: targets.load(name).declared for name in targets.known_names()}
    if as_json:
        print(json.dumps({name: declaration.to_json() for name, declaration in declared.items()}, indent=2))
    else:
        print_drawn([_list(declared)])
    return 0


def _needs(needs: list[Prerequisite]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=len("missing"))
    table.add_column()
    for need in needs:
        verdict, word = (Verdict.WARN, "note") if need.note else (Verdict.PASS, "found")
        if need.found is None:
            verdict, word = Verdict.FAIL, "missing"
        text = f"{need.what}: {need.remedy if need.found is None else need.found}"
        table.add_row(Text.assemble((word, VERDICT_STYLES[verdict])), Text(text))
    return table


def _list(declared: dict[str, Declared]) -> Table:
    rows = []
    for name, declaration in declared.items():
        bounds = ", ".join(f"{kind} {bound:g} s" for kind, bound in declaration.bounds_s.items())
        facts = [
            f"harness {declaration.harness}" if declaration.harness else "",
            f"agents {', '.join(declaration.agents)}" if declaration.agents else "",
            f"gives up after {bounds}" if bounds else "",
            f"{len(declaration.capabilities)} operations declared" if declaration.capabilities is not None else "",
        ]
        text = printable("; ".join(fact for fact in facts if fact) or "declares nothing", 2000)
        rows.append((printable(name, 60), text))
    return grid(rows)


_TIMEOUT_S = 60.0
_NO_DAEMON_URL = "http://127.0.0.1:9"
"""An address where nothing listens: a driver must send nothing before its first step."""


def handshake(target: Target) -> Iterator[Prerequisite]:
    """Whether the program answers the kit, which steps it performs, and which declared operations no step can cause."""
    # Imported here: a list of targets launches nothing.
    from signet_conformance.drivers.launch import command_line
    from signet_conformance.drivers.process import DriverProcess

    subject = "the program's answer to the kit"
    try:
        with temporary_folder("signet-doctor-") as home:
            agents = {"SIGNET_AGENT_ID": target.declared.agents[0]} if target.declared.agents else {}
            own = {"SIGNET_DAEMON_URL": _NO_DAEMON_URL, "SIGNET_PATH": str(home), **agents}
            env = clean_environment(home, **{**own, **target.env})
            process = DriverProcess(replace(target, command=command_line(target)), env, str(home), _TIMEOUT_S)
            try:
                about = process.hello()
            finally:
                process.close()
    except SignetConformanceError as failure:
        # The remedy may quote the end of standard error, which is read line by line.
        remedy = "\n".join(printable(line, 600) for line in (failure.remedy or "").split("\n"))
        yield Prerequisite(subject, None, f"{printable(failure.message, 600)}. {remedy}".strip())
        return
    steps = listed_steps(about)
    if not steps:
        yield Prerequisite(subject, "it does not say which steps it performs")
        return
    yield Prerequisite(subject, f"it performs {_join(about['steps'])}")
    if skips := possible_steps(target.declared) - steps:
        yield Prerequisite("what the driver skips", f"{_join(sorted(skips))}: it does not list them", note=True)
    for operation in target.declared.capabilities or ():
        causing = steps_for(operation)
        if causing and causing.isdisjoint(steps):
            missing = _join(sorted(causing), " or ")
            problem = f"{printable(operation, 60)}: add {missing} to the driver's steps, or do not declare it"
            yield Prerequisite("declared, but no step can cause it", problem, note=True)


def _join(steps: Iterable[object], between: str = ", ") -> str:
    return between.join(printable(str(step), 60) for step in steps)
