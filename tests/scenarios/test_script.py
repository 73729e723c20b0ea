"""Scenarios as data: what is refused, with its place and what to write instead; and what the scripted ones are."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.errors import UsageError
from signet_conformance.scenarios.script import CONNECTOR_STEPS, LONGEST_NAME, Scenario, read_scenarios, scripted

START: dict[str, Any] = {"step": "start", "session": "s1", "agent": 0, "project": "/workspace/src/acme-api"}
PLAIN: dict[str, Any] = {"name": "plain-1", "steps": [START, {"step": "end", "session": "s1"}]}


def with_step(**members: Any) -> dict[str, Any]:
    """A scenario whose second step is this one."""
    return {"name": "mine", "steps": [START, members]}


def test_scenario_is_read_as_it_is_written() -> None:
    """Steps keep their order and their members; title, env and needs may lack."""
    scenario = Scenario.from_json(PLAIN, "mine.json")
    assert (scenario.name, scenario.title, scenario.env, scenario.needs) == ("plain-1", "plain-1", {}, ())
    assert list(scenario.steps) == PLAIN["steps"]


def test_every_member_is_kept() -> None:
    """A scenario that has every member is written as it was read."""
    whole = {**PLAIN, "title": "One session", "env": {"SIGNET_BYPASS": "1"}, "needs": ["secrets-exec"]}
    assert Scenario.from_json(whole, "mine.json").to_json() == whole


@pytest.mark.parametrize(
    ("data", "complaint", "remedy"),
    [
        ({"steps": [START]}, "a scenario's name is 'None'", "letters, digits and -"),
        ({**PLAIN, "name": 7}, "a scenario's name is '7'", "letters, digits and -"),
        ({**PLAIN, "name": ""}, "a scenario's name is ''", "letters, digits and -"),
        ({**PLAIN, "name": "../../etc/passwd"}, "a scenario's name is '../../etc/passwd'", "letters, digits and -"),
        ({**PLAIN, "name": "a\x1b[31mb"}, "a scenario's name is", "letters, digits and -"),
        ({**PLAIN, "name": "a" * (LONGEST_NAME + 1)}, "a scenario's name is", f"up to {LONGEST_NAME} letters"),
        ({"name": "mine"}, "scenario mine has no steps", '"steps": [...]'),
        ({"name": "mine", "steps": []}, "scenario mine has no steps", '"steps": [...]'),
        ({"name": "mine", "steps": {"step": "start"}}, "scenario mine has no steps", '"steps": [...]'),
        ({"name": "mine", "steps": ["start"]}, "scenario mine, step 0: 'None' is no step", "one of clear, compact"),
        (with_step(session="s1"), "scenario mine, step 1: 'None' is no step", "one of clear, compact"),
        (with_step(step="begin", session="s1"), "scenario mine, step 1: 'begin' is no step", "start, tool"),
        (with_step(step="end"), "scenario mine, step 1: no session", 'add "session": "s1"'),
        (with_step(step="end", session=1), "scenario mine, step 1: no session", 'add "session": "s1"'),
        (with_step(step="prompt", session="s1"), "scenario mine, step 1: a prompt without text", 'add "text"'),
        (with_step(step="tool", session="s1"), "scenario mine, step 1: a tool without tool", 'add "tool"'),
        (with_step(step="fault"), "scenario mine, step 1: a fault without fault", 'add "fault"'),
        (with_step(step="fault", fault="hang"), "scenario mine, step 1: fault is 'hang'", "an object"),
        (with_step(step="prompt", session="s1", text=["a"]), "scenario mine, step 1: text is ['a']", "a string"),
        (with_step(step="start", session="s1", agent=True), "step 1: agent is True", "a whole number or a string"),
        ({**PLAIN, "env": ["A=1"]}, "scenario plain-1: env is no object", '"env": {'),
        ({**PLAIN, "needs": "secrets-exec"}, "needs is no list", '"needs": ['),
    ],
)
def test_bad_scenario_is_refused_with_its_place(data: dict[str, Any], complaint: str, remedy: str) -> None:
    """What is off is told by scenario, step and value, with the file and with what to write instead."""
    with pytest.raises(UsageError) as caught:
        Scenario.from_json(data, "mine.json")
    assert complaint in caught.value.message
    assert caught.value.where == "mine.json"
    assert remedy in str(caught.value.remedy)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"7", "holds no scenario"),
        (b"[]", "holds no scenario"),
        (b'{"scenarios": 7}', "holds no scenario"),
        (b'{"scenarios": [7]}', "holds no scenario"),
    ],
    ids=["empty", "torn", "binary", "deep", "number", "array", "no-list", "list-of-numbers"],
)
def test_bad_file_is_refused_by_name(tmp_path: Path, content: bytes, complaint: str) -> None:
    """A file that is no JSON, or JSON of another shape, is named with what to do."""
    file = tmp_path / "mine.json"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=complaint) as caught:
        read_scenarios(file)
    assert caught.value.where == str(file)
    assert caught.value.remedy


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there is named with the reason."""
    with pytest.raises(UsageError, match="cannot be read: No such file or directory") as caught:
        read_scenarios(tmp_path / "gone.json")
    assert caught.value.where == str(tmp_path / "gone.json")


def test_file_holds_one_scenario_or_several(tmp_path: Path) -> None:
    """A file is one scenario, or an object with a list of them, in their order."""
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(PLAIN))
    assert [one.name for one in read_scenarios(file)] == ["plain-1"]
    file.write_text(json.dumps({"scenarios": [PLAIN, {**PLAIN, "name": "plain-2"}]}))
    assert [one.name for one in read_scenarios(file)] == ["plain-1", "plain-2"]


def test_scripted_names_are_unique() -> None:
    """No two scripted scenarios share a name, for the name is that of the trace."""
    assert [name for name, count in Counter(one.name for one in scripted()).items() if count > 1] == []


@pytest.mark.parametrize("scenario", scripted(), ids=lambda one: one.name)
def test_scripted_scenario_is_a_session_as_it_happens(scenario: Scenario) -> None:
    """Each is valid by the rules for anybody's, says what it shows, and starts a session before using it."""
    assert Scenario.from_json(scenario.to_json(), "scripted.json") == scenario
    assert scenario.title != scenario.name
    started: set[str] = set()
    for step in scenario.steps:
        if step["step"] not in CONNECTOR_STEPS:
            continue
        if step["step"] == "start":
            started.add(step["session"])
        assert step["session"] in started, step


@pytest.mark.parametrize("scenario", scripted(), ids=lambda one: one.name)
def test_scripted_scenario_ends_what_it_began(scenario: Scenario) -> None:
    """Each session that is started is ended, and each fault that is switched on is switched off."""
    kinds = Counter(step["step"] for step in scenario.steps)
    sessions = {step["session"] for step in scenario.steps if step["step"] == "start"}
    assert {step["session"] for step in scenario.steps if step["step"] == "end"} == sessions
    assert kinds["fault"] == kinds["fault_off"]


@pytest.mark.parametrize("scenario", scripted(), ids=lambda one: one.name)
def test_scripted_scenario_refers_to_results_of_earlier_steps(scenario: Scenario) -> None:
    """A reference names the result of a step before it."""
    named: set[str] = set()
    for step in scenario.steps:
        assert set(references(step.get("arguments"))) <= named, step
        if "as" in step:
            named.add(step["as"])


def references(value: Any) -> list[str]:
    """The names of results that a tool's arguments refer to."""
    if isinstance(value, dict):
        if set(value) == {"from", "pointer"}:
            return [value["from"]]
        return [name for member in value.values() for name in references(member)]
    return [name for member in value for name in references(member)] if isinstance(value, list) else []


def test_scripted_sessions_are_no_noise() -> None:
    """No project of a scripted scenario lies where the daemon takes a session for noise."""
    projects = {step["project"] for one in scripted() for step in one.steps if "project" in step}
    assert projects
    assert [path for path in projects if path.startswith(("/tmp/", "/private/tmp/"))] == []
