"""The driver protocol: what the kit and driver programs say to one another is what the schema describes."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from signet_conformance.children.environment import clean_environment
from signet_conformance.children.processes import LineProcess
from signet_conformance.contract import document
from signet_conformance.drivers.hosts.protocol import own_place
from signet_conformance.targets.kinds import HOSTS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PAGE = EXAMPLES.parent / "docs" / "driver-protocol.md"
KIT = HOSTS.parents[1]
VALIDATOR = jsonschema_rs.validator_for(document("driver/signet-driver-1.schema.json"))
PROGRAMS = {
    "python": [sys.executable, str(EXAMPLES / "driver-python" / "driver.py")],
    "node": ["node", str(EXAMPLES / "driver-javascript" / "driver.mjs")],
    "bun": ["bun", str(EXAMPLES / "driver-javascript" / "driver.mjs")],
    "reference": [sys.executable, "-m", "signet_reference_harness"],
}
STEPS: list[Mapping[str, Any]] = [
    {"step": "start", "session": "s1", "agent": "atlas-agent", "project": "/workspace/src/acme-api"},
    {"step": "prompt", "session": "s1", "text": "Which database?", "reply": "PostgreSQL."},
    {"step": "end", "session": "s1"},
]


def requests() -> Iterator[Mapping[str, Any]]:
    """The requests of a short session."""
    yield {"id": 1, "op": "hello", "events": ["model", "handover"]}
    for number, step in enumerate(STEPS, 2):
        yield {"id": number, "op": "step", "step": step}
    yield {"id": 9, "op": "flush"}
    yield {"id": 10, "op": "exit"}


@pytest.mark.parametrize(
    ("heading", "column", "name"), [("Results of handlers", 0, "handler"), ("Steps", 1, "step"), ("Steps", 0, "step")]
)
def test_members_that_the_page_names_stand_in_the_schema(heading: str, column: int, name: str) -> None:
    """Who writes a driver in a typed language takes its types from the schema."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n#")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
    told = {member for row in rows for member in re.findall(r"`(\w+)`", row[column])}
    described = document("driver/signet-driver-1.schema.json")["$defs"][name]["properties"]
    assert told - {*described, *described.get("step", {}).get("enum", ())} == set()


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_speaks_the_protocol(program: str, tmp_path: Path) -> None:
    """Requests, answers and events of a session fit the schema, and the model's turn is told once."""
    if shutil.which(PROGRAMS[program][0]) is None:
        pytest.skip(f"{program} is not on PATH")
    if program != "reference" and not EXAMPLES.is_dir():
        pytest.skip("the examples are not beside the tests")
    env = clean_environment(tmp_path, SIGNET_DAEMON_URL="http://127.0.0.1:1", SIGNET_AGENT_ID="atlas-agent")
    events = []
    with LineProcess(program, PROGRAMS[program], env=env) as child:
        for asked in requests():
            assert VALIDATOR.is_valid(asked)
            answer = child.ask(asked, 60.0)
            while "event" in answer:
                assert VALIDATOR.is_valid(answer), answer
                events.append(answer)
                answer = child.ask({"op": "go"}, 60.0)
            assert VALIDATOR.is_valid(answer), answer
            assert (answer["id"], answer["ok"]) == (asked["id"], True)
    handed = {"event": "handover", "session": "s1", "folder": STEPS[0]["project"]}
    assert events == [*([handed] if program == "reference" else []), {"event": "model", "session": "s1"}]


@pytest.mark.parametrize(
    "line",
    [
        {"id": 1, "op": "dance"},
        {"id": 1, "op": "step", "step": {"step": "prompt", "session": "s1"}},
        {"id": 1, "op": "go"},
        {"op": "hello"},
        {"id": 1, "ok": True, "result": {}},
        {"id": 1, "ok": False, "ms": 1.0},
        {"id": 1, "ok": True, "ms": 1.0, "result": {"protocol": "signet-driver/2"}},
        {"event": "model"},
    ],
    ids=json.dumps,
)
def test_what_is_no_message(line: Mapping[str, Any]) -> None:
    """A line of a wrong shape fits no part of the schema."""
    assert not VALIDATOR.is_valid(line)


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ([KIT / "host.py"], "host.py:1"),
        ([KIT / "host.py", Path(json.__file__)], "host.py:1"),
        ([KIT / "host.py", Path("/home/acme/plugin.py")], None),
        ([KIT / "host.py", Path("/home/acme/plugin.py"), KIT / "tools.py"], None),
    ],
    ids=["its own", "in a library", "in the connector", "called by the connector"],
)
def test_error_is_a_hosts_own_where_no_code_of_a_connector_ran(files: Sequence[Path], place: str | None) -> None:
    """Each file runs the next one; the last one fails."""
    rest = [compile("exec(rest.pop())", str(file), "exec") for file in reversed(files)]
    with pytest.raises(IndexError) as raised:
        exec(rest.pop(), {"rest": rest})  # noqa: S102 - as if it were the code of these files
    assert own_place(raised.value.with_traceback(raised.tb.tb_next)) == place


@pytest.mark.parametrize("host", ["python_plugin.py", "node_host.mjs"])
def test_host_says_where_in_its_own_code_an_error_arose(host: str, tmp_path: Path) -> None:
    """Here it lacks its options, or the module that its face names does not play a harness."""
    (tmp_path / "face.json").write_text('{"code": "turns.mjs"}')
    (tmp_path / "plugin.mjs").write_text("export const plugin = () => ({});\n")
    node = ["node", str(HOSTS / host), "face.json", str(tmp_path / "plugin.mjs")]
    command = node if host.endswith(".mjs") else [sys.executable, str(HOSTS / host), "{}"]
    with LineProcess(host, command, env=clean_environment(tmp_path), cwd=str(tmp_path)) as child:
        answer = child.ask({"id": 1, "op": "hello"}, 60.0)
    assert VALIDATOR.is_valid(answer)
    assert re.fullmatch(r"(python_plugin\.py|node_host\.mjs):\d+", answer["error"]["at"])
