"""Greets a target's own program once, as a run would, and tells what it answers."""

from __future__ import annotations

from dataclasses import replace

from signet_conformance.children.environment import clean_environment
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.errors import SignetConformanceError, printable
from signet_conformance.targets import Target
from signet_conformance.targets.needs import Need

_TIMEOUT_S = 60.0
_UNHEARD = "http://127.0.0.1:9"
"""Where no daemon is: nothing may be sent before the first step."""


def handshake(target: Target) -> Need:
    """Whether the program answers the kit, and the steps that it performs."""
    # Imported here: a list of targets launches nothing.
    from signet_conformance.drivers.launch import command_line
    from signet_conformance.drivers.process import DriverProcess

    what = "the program's answer to the kit"
    try:
        with temporary_folder("signet-doctor-") as home:
            agents = {"SIGNET_AGENT_ID": target.declared.agents[0]} if target.declared.agents else {}
            env = clean_environment(home, SIGNET_DAEMON_URL=_UNHEARD, SIGNET_PATH=str(home), **agents, **target.env)
            process = DriverProcess(replace(target, command=command_line(target)), env, str(home), _TIMEOUT_S)
            try:
                about = process.hello()
            finally:
                process.close()
    except SignetConformanceError as failure:
        # The remedy may quote the end of standard error, which is read line by line.
        remedy = "\n".join(printable(line, 600) for line in (failure.remedy or "").split("\n"))
        return Need(what, None, f"{printable(failure.message, 600)}. {remedy}".strip())
    steps = about.get("steps")
    named = ", ".join(printable(str(step), 60) for step in steps) if isinstance(steps, list) else ""
    return Need(what, f"it performs {named}" if named else "it does not say which steps it performs")
