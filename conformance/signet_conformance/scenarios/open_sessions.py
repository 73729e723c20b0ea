"""Whether each step of a scenario has an open session to take place in."""

from __future__ import annotations

from signet_conformance.errors import UsageError, printable
from signet_conformance.scenarios.script import Scenario
from signet_conformance.scenarios.steps import ConnectorStep, End, Resume, SessionlessPrompt, Start


def demand_open_sessions(scenario: Scenario, where: str) -> None:
    """Raise UsageError for a step in a session that is not open: no harness could perform it."""
    opened: set[str] = set()
    for index, step in enumerate(scenario.steps):
        if not isinstance(step, ConnectorStep) or isinstance(step, SessionlessPrompt):
            continue
        if isinstance(step, Start | Resume):
            opened.add(step.session)
        elif step.session not in opened:
            name = printable(step.session, 60)
            raise UsageError(
                f"scenario {scenario.name}, step {index}: a {step.step} in session {name}, which is not open",
                where=where,
                remedy=f'put {{"step": "start", "session": "{name}"}} before it',
            )
        elif isinstance(step, End):
            opened.discard(step.session)
