"""What a real program did with the connector's commands, and told its plugins, as marks."""

from __future__ import annotations

import subprocess
from pathlib import Path

from signet_conformance.drivers.hosts.observing import FOLDER, Events, Observations

TELLS = ["sh", "-c", 'printf %s "$SIGNET_DAEMON_URL $*"', "tells"]


def ran(home: Path, *words: str, **env: str) -> str:
    """What the connector's program says, started by a program that hands these variables on."""
    done = subprocess.run(
        [str(home / "bin" / "mem"), *words], env={"PATH": "/usr/bin:/bin", **env}, cwd=home,
        input='{"hook_event_name": "Stop", "cwd": "/x"}', capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_server_is_told_the_daemon_that_its_program_did_not_tell_it(tmp_path: Path) -> None:
    """What it was given is written down as it was; an address that it was given stays, and a hook is told nothing."""
    observed = Observations(tmp_path)
    observed.wrap_programs({"mem": TELLS}, tmp_path / "bin", "http://127.0.0.1:7")
    assert ran(tmp_path, "serve") == "http://127.0.0.1:7 serve"
    assert ran(tmp_path, "serve", SIGNET_DAEMON_URL="http://127.0.0.1:8") == "http://127.0.0.1:8 serve"
    assert ran(tmp_path, "hook", "end") == " hook end"
    runs = observed.new_runs()
    assert [run["args"] for run in runs] == [["serve"], ["serve"], ["hook", "end"]]
    assert ["SIGNET_DAEMON_URL" in run["env"] for run in runs] == [False, True, False]
    assert [run.get("event") for run in runs] == [None, None, "Stop"]


def test_an_event_is_told_once_it_is_written_to_its_end(tmp_path: Path) -> None:
    """Half a line waits for its other half; what was there before belongs to an earlier program."""
    file = tmp_path / FOLDER / "events.jsonl"
    file.parent.mkdir()
    file.write_text('{"event": "before"}\n')
    events = Events(tmp_path)
    with file.open("a") as written:
        written.write('{"event": "one", "members": ["a"]}\n{"event": ')
        written.flush()
        assert events.new() == [{"event": "one", "members": ["a"], "env": []}]
        written.write('"two"}\n')
    assert events.new() == [{"event": "two", "env": []}]
    assert events.new() == []
