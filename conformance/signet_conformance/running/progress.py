"""The progress of a run, by its events."""

from __future__ import annotations

from signet_conformance.running.events import (
    Event,
    FollowingUp,
    RunFinished,
    RunStarted,
    ScenarioBrokeOff,
    ScenarioPerformed,
    SessionPerformed,
)


class Progress:
    """Counts what was performed of a run. `doing` says in words what it is at, where that is not plain performing."""

    def __init__(self) -> None:
        self.scenarios = 0
        self.of_scenarios = 0
        self.sessions = 0
        self.of_sessions = 0
        self.broken = 0
        self.reasons: dict[str, int] = {}
        """How many scenarios broke off for each reason, the first line of its error."""
        self.doing = ""
        self.last = ""
        """The name of the scenario that was performed last."""

    def take(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case RunStarted():
                self.of_scenarios, self.of_sessions = event.scenarios, event.sessions
            case ScenarioPerformed():
                self.scenarios += 1
                self.last = event.name
            case ScenarioBrokeOff():
                self.scenarios += 1
                self.broken += 1
                self.reasons[event.reason] = self.reasons.get(event.reason, 0) + 1
                self.last = event.name
            case SessionPerformed():
                self.sessions += 1
            case FollowingUp():
                self.doing = _following_up(event)
            case RunFinished():
                self.doing = ""

    def words(self) -> str:
        """What the run is at: `13/21 scenarios, 20/60 generated sessions`, or what is followed up."""
        if self.doing:
            return self.doing
        sessions = f", {self.sessions}/{self.of_sessions} generated sessions" if self.of_sessions else ""
        broken = f", {self.broken} broke off" if self.broken else ""
        return f"{self.scenarios}/{self.of_scenarios} scenarios{broken}{sessions}"


def _following_up(event: FollowingUp) -> str:
    if event.daemon:
        return f"performing again what showed {event.verdict} {event.requirement} on the daemon's side"
    how = "shrinking" if event.shrinks else "confirming"
    return f"{how} {event.verdict} {event.requirement}, found by a generated session"
