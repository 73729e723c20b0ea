"""OpenClaw, driven: against a small program that speaks as its gateway and its bridge do."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_conformance.drivers.hosts.observing import Observations
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real import openclaw
from signet_conformance.drivers.hosts.real.conversation import Launch, Services
from signet_conformance.drivers.hosts.real.harness import unheard_in
from signet_conformance.drivers.hosts.real.openclaw import OpenclawAcp, refusal_in
from signet_conformance.drivers.hosts.real.process import EndedError
from signet_conformance.drivers.hosts.real.refusals import ConnectorRefusedError, Refusal
from signet_conformance.targets.face import face_of_harness
from signet_conformance.targets.kinds import host_file
from tests.support.processes import wait_until

STAND_IN = Path(__file__).with_name("openclaw_stand_in.py")
SETTLES = {"lacks": "hooks are off", "has": "daemon is back", "at_most_s": 600.0}
LOG = "2026-11-23T03:29:53.785+00:00 [gateway] [plugins] "


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of the test's own, in which the stand-in writes down what it was told."""
    from signet_conformance.children.temporary import temporary_folder

    with temporary_folder("openclaw") as folder:
        yield folder


@pytest.fixture
def services() -> Iterator[Services]:
    """What the test starts; it ends with the test."""
    services = Services()
    yield services
    services.end()


OURS = {
    ".openclaw/openclaw.json": {
        "gateway": {"mode": "local"}, "agents": {"defaults": {"model": "scripted"}, "list": [{"id": "main"}]},
    }
}  # fmt: skip
"""What the kit wrote for the program before the connector's installer came."""


def _launch(home: Path, services: Services, **env: str) -> Launch:
    command = [sys.executable, str(STAND_IN)]
    known = {"PATH": os.environ["PATH"], "HOME": str(home), "SIGNET_AGENT_ID": "atlas-agent", **env}
    return Launch(
        command, known, home, "http://127.0.0.1:9", Observations(home), SETTLES if "SIGNET_DAEMON_URL" in env else None,
        services, OURS,
    )  # fmt: skip


def _told(home: Path) -> list[str]:
    return (home / "told").read_text("utf-8").splitlines()


def _until_over(session: OpenclawAcp) -> None:
    while not session.is_over():
        pass


def test_a_session_is_one_of_the_bridge_in_the_name_of_its_agent(home: Path, services: Services) -> None:
    """Its key names the agent; prompt, compaction and a new session are typed, and it is closed as editors do."""
    session = OpenclawAcp(_launch(home, services))
    session.open()
    assert session.key is not None
    assert session.key.startswith("agent:atlas-agent:")
    session.say("Which database?")
    _until_over(session)
    session.compact()
    _until_over(session)
    session.clear()
    session.end()
    services.end()
    assert _told(home) == [
        "gateway begins",
        "bridge begins",
        f"session {session.key}",
        "typed Which database?",
        "typed /compact",
        "typed /new",
        "session closed",
        "gateway was asked to end",
    ]


def test_sessions_share_a_gateway_and_a_bridge(home: Path, services: Services) -> None:
    """Both go on when the last session has ended, for the next one and for one that is resumed, and end once asked."""
    first, second, third = (OpenclawAcp(_launch(home, services)) for _ in range(3))
    first.open()
    second.open()
    services.end(idle=True)
    second.say("To the second")
    _until_over(second)
    second.end()
    first.end(for_good=False)
    first.resume()
    first.say("To the first")
    _until_over(first)
    first.end()
    third.open()
    third.end()
    services.end(idle=True)
    began = [line for line in _told(home) if not line.startswith(("session", "typed"))]
    assert began == ["gateway begins", "bridge begins", "gateway was asked to end"]
    opened = [line.removeprefix("session ") for line in _told(home) if line.startswith("session agent:")]
    assert opened == [first.key, second.key, first.key, third.key]
    assert len({first.key, second.key, third.key}) == 3


def test_a_bridge_that_knows_no_close_is_not_asked_for_it(home: Path, services: Services) -> None:
    """Its session is left as it stands."""
    session = OpenclawAcp(_launch(home, services, STAND_IN_IS_OLD="1"))
    session.open()
    session.end()
    assert "session closed" not in _told(home)


def test_the_first_session_waits_until_the_connector_has_its_daemon(
    home: Path, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it says that it lacks one that listens."""
    monkeypatch.setattr(openclaw, "DECIDED_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as daemon:
        address = f"http://127.0.0.1:{daemon.getsockname()[1]}"
        env = {"SIGNET_DAEMON_URL": address, "STAND_IN_SAYS": "hooks are off", "STAND_IN_FINDS": "daemon is back"}
        session = OpenclawAcp(_launch(home, services, **env))

        def look() -> None:
            daemon.accept()[0].close()
            (home / "looked").touch()

        threading.Thread(target=look, daemon=True).start()
        session.open()
        assert "gateway found the daemon" in _told(home)
        session.end()


def test_a_daemon_that_does_not_listen_is_not_waited_for(
    home: Path, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connector is right to say that it lacks it."""
    monkeypatch.setattr(openclaw, "DECIDED_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as daemon:
        address = f"http://127.0.0.1:{daemon.getsockname()[1]}"
    env = {"SIGNET_DAEMON_URL": address, "STAND_IN_SAYS": "hooks are off", "STAND_IN_FINDS": "daemon is back"}
    session = OpenclawAcp(_launch(home, services, **env))
    session.open()
    session.end()
    assert "gateway found the daemon" not in _told(home)


def test_what_the_gateway_refuses_is_told_with_its_words(home: Path, services: Services) -> None:
    """A tool that the manifest does not name, each refusal once; a session opens all the same."""
    session = OpenclawAcp(
        _launch(home, services, STAND_IN_SAYS=f"{LOG}plugin must declare contracts.tools (plugin=signet, source=/x)")
    )
    session.open()
    assert session.refusals == [Refusal("openclaw.plugin.json", "plugin must declare contracts.tools")]
    session.end()


def test_a_gateway_that_does_not_begin_is_told_with_its_words(home: Path, services: Services) -> None:
    """A configuration that it refuses is a refusal too."""
    said = '\N{MULTIPLICATION SIGN} openclaw.json:46 — agents.defaults: Unrecognized key: "memorySearch"'
    session = OpenclawAcp(_launch(home, services, STAND_IN_SAYS=said, STAND_IN_ENDS="1"))
    with pytest.raises(StepError, match="memorySearch"):
        session.open()
    assert session.refusals == [Refusal("openclaw.json", 'agents.defaults: Unrecognized key: "memorySearch"')]
    session.end()


def test_a_gateway_that_ends_in_a_turn_is_told_with_its_own_words(home: Path, services: Services) -> None:
    """The bridge goes on, and answers the turn in words of its own, which say nothing of why."""
    session = OpenclawAcp(_launch(home, services))
    session.open()
    session.say("throw")
    with pytest.raises(EndedError, match="gateway of OpenClaw has ended") as ended:
        wait_until(session.is_over, "the end of the gateway")
    assert (ended.value.status, ended.value.words[-2:]) == (1, ["Error: no", "at f (/x/signet.js:1:2)"])
    session.end()


AT = "Gateway failed to start: Invalid config at /home/u/.openclaw/openclaw.json"
NO_MORE = 'Run "openclaw doctor --fix" to repair, then retry.'


@pytest.mark.parametrize(
    ("said", "file", "words"),
    [
        (f"{AT}.\nplugins: plugin: plugin manifest not found: /x/y.json\n{NO_MORE}", "openclaw.json",
         "plugins: plugin: plugin manifest not found: /x/y.json"),
        (f'{AT}:\nopenclaw.json:1 — agents.defaults: Unrecognized key: "memorySearch"\n{NO_MORE}\nlog: it is in x',
         "openclaw.json", 'agents.defaults: Unrecognized key: "memorySearch"'),
        (f'{AT}:\n<root>: Unrecognized key: "pluginz"\n{NO_MORE}', "openclaw.json",
         '<root>: Unrecognized key: "pluginz"'),
        (f"{AT}:\nagents.defaults: Invalid input", "openclaw.json", "agents.defaults: Invalid input"),
        (f'{AT}:\nagents.defaults: Unrecognized keys: "model", "memorySearch"', "openclaw.json",
         'agents.defaults: Unrecognized keys: "model", "memorySearch"'),
        (f"{AT}:\nagents.defaults: Unrecognized key(s) in object: 'memorySearch'", "openclaw.json",
         "agents.defaults: Unrecognized key(s) in object: 'memorySearch'"),
        ("Gateway start blocked: existing config is missing gateway.mode. Treat this as suspicious.", "openclaw.json",
         "existing config is missing gateway.mode."),
        (f"{LOG}plugin manifest not found: /x/y.json (plugin=signet, source=/x)", "openclaw.plugin.json",
         "plugin manifest not found: /x/y.json"),
    ],
    ids=["plugin", "key", "root", "changed", "two keys", "zod 3", "lost", "log"],
)  # fmt: skip
def test_a_gateway_that_ends_over_the_installation_refuses_it(
    home: Path, services: Services, said: str, file: str, words: str
) -> None:
    """What it says then is told of the file, and the session was never opened."""
    left = json.loads(json.dumps(OURS[".openclaw/openclaw.json"]))
    left["agents"]["defaults"]["memorySearch"] = {"enabled": True}
    left["plugins"] = {"entries": {}}
    del left["gateway"]
    (home / ".openclaw").mkdir()
    (home / ".openclaw" / "openclaw.json").write_text(json.dumps(left))
    session = OpenclawAcp(_launch(home, services, STAND_IN_SAYS=said, STAND_IN_ENDS="1"))
    with pytest.raises(ConnectorRefusedError, match="ended before it accepted a session"):
        session.open()
    assert session.refusals == [Refusal(file, words)]


@pytest.mark.parametrize(
    "said",
    [
        f"{AT}:\nagents.defaults: Invalid input\n{NO_MORE}",
        f"{AT}:\nopenclaw.json:1 — agents.list.0.id: Too short\n{NO_MORE}",
        f"{AT}:\nplugins.entries.signet-conformance-observer: Unknown\n{NO_MORE}",
        f'{AT}:\nagents.defaults: Unrecognized key: "model"\n{NO_MORE}',
        f"{AT}:\ngateway: Unrecognized key(s) in object: 'mode'\n{NO_MORE}",
        f"{AT}:\nError: the port is taken\nhint: stop the other one",
        "package.json:3 — plugins.entries: Invalid input",
        'agents.defaults: Unrecognized key: "memorySearch"',
        "[plugins] unknown typed hook ignored (plugin=signet-conformance-observer, source=/x)",
        "Error: listen EADDRINUSE: address already in use",
    ],
    ids=[
        "settings",
        "in a list",
        "observer",
        "key",
        "zod 3",
        "error and hint",
        "another file",
        "no config",
        "observer's log",
        "another error",
    ],
)
def test_a_gateway_that_ends_over_anything_else_breaks_off(home: Path, services: Services, said: str) -> None:
    """What the kit wrote for it, or what has nothing to do with the installation, is nobody's breach."""
    (home / ".openclaw").mkdir()
    (home / ".openclaw" / "openclaw.json").write_text(json.dumps(OURS[".openclaw/openclaw.json"]))
    session = OpenclawAcp(_launch(home, services, STAND_IN_SAYS=said, STAND_IN_ENDS="1"))
    with pytest.raises(EndedError, match="ended before it accepted a session"):
        session.open()
    assert session.refusals == []


def test_a_new_session_that_does_not_begin_is_not_awaited_for_ever(
    home: Path, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step says how long it was awaited, and the session ends as usual."""
    monkeypatch.setattr(openclaw, "CLEAR_S", 0.2)
    session = OpenclawAcp(_launch(home, services, STAND_IN_STAYS="1"))
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
def test_a_line_of_the_log_about_a_plugin_of_others_is_a_refusal(word: str, file: str | None) -> None:
    """A line about the gateway itself is not a refusal."""
    refusal = refusal_in(word)
    assert (None if refusal is None else refusal.file) == file


REGISTERS = """export default {
  register(api) {
    if (MODES.includes(api.registrationMode)) api.on("before_prompt_build", () => fetch(process.env.SIGNET_DAEMON_URL));
    api.registerService({ id: "probe", start: () => process.exit(1) });
  },
};
"""


@pytest.mark.parametrize(("modes", "heard"), [(["full"], False), (["full", "discovery"], True)])
def test_a_plugin_that_registers_for_the_gateway_alone_is_reported(
    modes: list[str], heard: bool, runtime: str, tmp_path: Path
) -> None:
    """The program does not tell: the kit's host of that release registers the plugin, and starts nothing of it."""
    module = tmp_path / "plugin.mjs"
    module.write_text(REGISTERS.replace("MODES", json.dumps(modes)))
    face = face_of_harness("openclaw", "2026.9.6").path
    words = [runtime, host_file("node_host.mjs"), str(face), str(module), '{"registers_only": true}']
    unheard = unheard_in(words, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    assert [each.partition(", and")[0] for each in unheard] == (
        [] if heard else ["OpenClaw 2026.9.6 registers a plugin for its runs in the mode discovery"]
    )


def test_an_ignored_event_of_an_earlier_release_is_told_as_one() -> None:
    """A plugin that serves both releases registers it too, so it does not explain why other hooks never run."""
    refusal = refusal_in(LOG + 'unknown typed hook "before_agent_start" ignored (plugin=signet, source=/x/index.js)')
    assert refusal is not None
    assert refusal.row(["before_agent_start"])["formerly"] is True
    assert refusal.row([]) == {"file": "openclaw.json", "accepted": False, "words": refusal.words}
