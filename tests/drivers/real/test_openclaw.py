"""OpenClaw, driven: against a small program that speaks as its gateway and its bridge do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real import openclaw_acp
from signet_conformance.drivers.hosts.real.conversation import Launch, Refusal
from signet_conformance.drivers.hosts.real.observed import Observed
from signet_conformance.drivers.hosts.real.openclaw_acp import OpenclawAcp
from signet_conformance.drivers.hosts.real.openclaw_gateway import refusal_in

STAND_IN = Path(__file__).with_name("openclaw_stand_in.py")
LOG = "2026-11-23T03:29:53.785+00:00 [gateway] [plugins] "


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of the test's own, in which the stand-in writes down what it was told."""
    from signet_conformance.children.temporary import temporary_folder

    with temporary_folder("openclaw") as folder:
        yield folder


def _launch(home: Path, **env: str) -> Launch:
    command = [sys.executable, str(STAND_IN)]
    known = {"PATH": os.environ["PATH"], "HOME": str(home), "SIGNET_AGENT_ID": "atlas-agent", **env}
    return Launch(command, known, home, "http://127.0.0.1:9", Observed(home))


def _told(home: Path) -> list[str]:
    return (home / "told").read_text("utf-8").splitlines()


def _until_over(session: OpenclawAcp) -> None:
    while not session.is_over():
        pass


def test_a_session_is_a_bridge_to_the_gateway_in_the_name_of_its_agent(home: Path) -> None:
    """Its key names the agent; prompt, compaction and a new session are typed, and the gateway ends with the last."""
    session = OpenclawAcp(_launch(home))
    session.open()
    assert session.key is not None
    assert session.key.startswith("agent:atlas-agent:")
    session.say("Which database?")
    _until_over(session)
    session.compact()
    _until_over(session)
    session.clear()
    session.end()
    assert _told(home) == [
        "gateway begins",
        f"bridge of {session.key}",
        "typed Which database?",
        "typed /compact",
        "typed /new",
        "gateway was asked to end",
    ]


def test_sessions_at_a_time_share_a_gateway(home: Path) -> None:
    """It goes on until the last of them has ended, and for one that is resumed later."""
    first, second = OpenclawAcp(_launch(home)), OpenclawAcp(_launch(home))
    first.open()
    second.open()
    second.end()
    first.end(for_good=False)
    first.resume()
    first.end()
    told = [line for line in _told(home) if line.startswith("gateway")]
    assert told == ["gateway begins", "gateway was asked to end"]
    assert first.key != second.key


def test_what_the_gateway_refuses_is_told_with_its_words(home: Path) -> None:
    """A tool that the manifest does not name, each refusal once; a session opens all the same."""
    session = OpenclawAcp(
        _launch(home, STAND_IN_SAYS=f"{LOG}plugin must declare contracts.tools (plugin=signet, source=/x)")
    )
    session.open()
    assert session.refused == [Refusal("openclaw.plugin.json", "plugin must declare contracts.tools")]
    session.end()


def test_a_gateway_that_does_not_begin_is_told_with_its_words(home: Path) -> None:
    """A configuration that it refuses is a refusal too."""
    said = '\N{MULTIPLICATION SIGN} openclaw.json:46 — agents.defaults: Unrecognized key: "memorySearch"'
    session = OpenclawAcp(_launch(home, STAND_IN_SAYS=said, STAND_IN_ENDS="1"))
    with pytest.raises(StepError, match="memorySearch"):
        session.open()
    assert session.refused == [Refusal("openclaw.json", 'agents.defaults: Unrecognized key: "memorySearch"')]
    session.end()


def test_a_new_session_that_does_not_begin_is_not_awaited_for_ever(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step says how long it was awaited, and the session ends as usual."""
    monkeypatch.setattr(openclaw_acp, "CLEAR_S", 0.2)
    session = OpenclawAcp(_launch(home, STAND_IN_STAYS="1"))
    session.open()
    with pytest.raises(StepError, match=r"began no new session within 0\.2 s"):
        session.clear()
    session.end()


@pytest.mark.parametrize(
    ("word", "file"),
    [
        (LOG + 'unknown typed hook "before_agent_start" ignored (plugin=signet, source=/x/index.js)', "openclaw.json"),
        (LOG + 'typed hook "agent_end" blocked because it may not (plugin=signet, source=/x)', "openclaw.json"),
        (LOG + "memory plugin not selected for the memory slot (plugin=memory-core, source=/x)", None),
        ("2026-11-23T03:29:53.754+00:00 [plugins] signet-memory: registered (daemon: http://127.0.0.1:7)", None),
        ("[gateway] ready", None),
    ],
)
def test_a_line_of_the_log_is_a_refusal_or_is_not(word: str, file: str | None) -> None:
    """What the gateway blocks or ignores of a plugin of others is; what it tells of its own is not."""
    refusal = refusal_in(word)
    assert (None if refusal is None else refusal.file) == file
