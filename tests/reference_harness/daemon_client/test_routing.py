"""Daemons of agents: each session speaks to its agent's, and to no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.daemon_client.routes_file import RoutesFile
from signet_reference_harness.daemon_client.routing import routing_table
from signet_reference_harness.documents import parse_document
from signet_reference_harness.errors import ConfigError, HarnessError, RoutingError
from signet_reference_harness.session.host import SessionHost
from tests.reference_harness.recording_daemon import RecordingDaemon
from tests.reference_harness.sessions import say, session_of

EXAMPLES = Path(__file__).resolve().parents[3] / "schemas" / "examples" / "harness-routes"


@pytest.fixture
def other() -> Iterator[RecordingDaemon]:
    """A second daemon."""
    recording = RecordingDaemon()
    yield recording
    recording.stop()


def test_each_agent_s_session_goes_to_its_daemon(
    daemon: RecordingDaemon, other: RecordingDaemon, config: HarnessConfig, hosted: Callable[..., Any]
) -> None:
    """Not even a probe of one agent's session reaches the daemon of another, however often it is started."""
    table = routing_table({"SIGNET_ROUTES": f"atlas={daemon.origin}, nova={other.origin}/"})

    async def work(_: SessionHost) -> None:
        host = SessionHost(config, routing=table)
        session = session_of(host, agent="nova")
        await session.start()
        await say(session, "hello")
        await session.end()
        await host.start(session_of(host, agent="nova"), "resume")
        await host.aclose()

    hosted(work)
    assert daemon.requests == []
    assert other.paths() == ["session-start", "user-prompt-submit", "session-end", "session-start", "session-end"]


def test_an_unknown_agent_has_no_daemon(
    daemon: RecordingDaemon, config: HarnessConfig, hosted: Callable[..., Any]
) -> None:
    """Neither the default daemon nor another's is told of it; the error names the agents that the table knows."""
    table = routing_table({"SIGNET_ROUTES": f"atlas={daemon.origin}"})

    async def work(_: SessionHost) -> None:
        host = SessionHost(config, routing=table)
        with pytest.raises(RoutingError, match="SIGNET_ROUTES: names no daemon for agent 'nova', only for atlas"):
            session_of(host, agent="nova")
        await host.aclose()

    hosted(work)
    assert daemon.requests == []


def test_a_token_goes_to_the_daemon_it_is_meant_for(tmp_path: Path) -> None:
    """The environment's token goes to the environment's daemon alone; another's comes from the variable it names."""
    file = tmp_path / "routes.json"
    routes = {
        "atlas": "http://127.0.0.1:3850",
        "nova": "http://127.0.0.1:3851",
        "vega": {"url": "http://127.0.0.1:3852", "token_env": "VEGA_TOKEN"},
    }
    file.write_text(json.dumps({"agents": routes}))
    table = routing_table({"SIGNET_ROUTES_FILE": str(file), "VEGA_TOKEN": "v"})
    assert table is not None
    config = HarnessConfig(token="mine")
    assert [table.settings_for(agent, config).token for agent in routes] == ["mine", None, "v"]


def test_without_a_table_there_is_one_daemon() -> None:
    """Blank variables count as absent."""
    assert routing_table({"SIGNET_ROUTES": " "}) is None


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"SIGNET_ROUTES": "atlas"}, "'atlas' is not of the form agent=url"),
        ({"SIGNET_ROUTES": "=http://h"}, "'' cannot be the id of an agent"),
        ({"SIGNET_ROUTES": "a=http://h,a=http://i"}, "agent 'a' is named twice"),
        ({"SIGNET_ROUTES": "a=ftp://h"}, "the daemon of agent 'a' is not an http or https URL"),
        ({"SIGNET_ROUTES": "a=http://u:hunter2@h"}, "the daemon of agent 'a' holds credentials"),
        ({"SIGNET_ROUTES": "a=http://h", "SIGNET_ROUTES_FILE": "f"}, "both SIGNET_ROUTES and SIGNET_ROUTES_FILE"),
        ({"SIGNET_ROUTES_FILE": "/nowhere/routes.json"}, "/nowhere/routes.json: No such file"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(environ: dict[str, str], complaint: str) -> None:
    """The message says where it stands and what is wrong; it shows no credentials."""
    with pytest.raises(HarnessError) as refused:
        routing_table(environ)
    assert complaint in refused.value.message
    assert "hunter2" not in str(refused.value)


def test_a_missing_token_is_named(tmp_path: Path) -> None:
    """A variable that the file names and the environment lacks is an error before any request."""
    file = tmp_path / "routes.json"
    file.write_text('{"agents": {"nova": {"url": "http://127.0.0.1:1", "token_env": "NOVA_TOKEN"}}}')
    with pytest.raises(ConfigError, match="NOVA_TOKEN is not set"):
        routing_table({"SIGNET_ROUTES_FILE": str(file)})


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_the_model_of_the_file_reads_what_its_schema_admits(example: Path) -> None:
    """Valid examples are read, the others refused with a place."""
    encoded = json.dumps(json.loads(example.read_text("utf-8"))["document"]).encode()
    if example.name.startswith("valid-"):
        parse_document(RoutesFile, encoded, "routes.json")
    else:
        with pytest.raises(HarnessError, match=r"routes\.json"):
            parse_document(RoutesFile, encoded, "routes.json")
