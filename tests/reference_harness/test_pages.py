"""The examples on the harness's pages run as they stand."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.tools.registry import ToolRegistry

from .recording_daemon import START, Answer, RecordingDaemon
from .sessions import AGENT, PATIENT, session_of

PAGES = Path(__file__).resolve().parents[2] / "docs" / "harness"


def example(page: str) -> dict[str, Any]:
    """What the Python example of a page defines."""
    (code,) = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text("utf-8"), re.DOTALL)
    defined: dict[str, Any] = {}
    exec(code, defined)  # noqa: S102 - the page's own example
    return defined


def test_the_session_of_the_page_runs(daemon: RecordingDaemon, config: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It streams the reply, tells how the turn ended, and ends the session."""
    asyncio.run(example("turn.md")["main"](config))
    assert capsys.readouterr().out == "The port is 50051.end_turn\n"
    assert daemon.paths() == ["session-start", "user-prompt-submit", "recall", "session-end"]


def test_the_tool_of_the_page_runs(hosted: Any) -> None:
    """It is a tool, and knows whose call it is."""

    async def work(host: SessionHost) -> Any:
        session = session_of(host)
        session.is_open = True
        session.tools = ToolRegistry([example("tools.md")["Weather"]()])
        return (await session.use_tool("weather", {"place": "Ulm"})).content

    assert hosted(work) == {"place": "Ulm", "weather": "rain", "asked_by": AGENT}


def test_the_harness_of_the_page_joins(daemon: RecordingDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its model gets what the daemon injected, and the daemon hears of the session, in the harness's name."""
    for name, value in {**PATIENT, "SIGNET_DAEMON_URL": daemon.origin}.items():
        monkeypatch.setenv(name, value)
    daemon.always[START] = Answer({"inject": "Be brief.", "memories": []})
    seen = []

    def model(context: str, prompt: str) -> str:
        seen.append((context, prompt))
        return "Yes."

    asyncio.run(example("join.md")["converse"](model, "/srv/acme", ["Is it so?", "Really?"]))
    assert seen == [("Be brief.\n", "Is it so?"), ("Be brief.\n", "Really?")]
    assert daemon.paths() == ["session-start", "user-prompt-submit", "user-prompt-submit", "session-end"]
    assert {request.body["harness"] for request in daemon.requests[1:]} == {"acme-shell"}
