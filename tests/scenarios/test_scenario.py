"""The form of a scenario: what is read, and what is refused with a way out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize
from urllib.parse import quote, unquote

import pytest

from signet_conformance.errors import UsageError
from signet_conformance.scenarios.scenario import (
    Scenario,
    demand_open_sessions,
    read_scenarios,
    remembered,
    scripted,
    with_each_bypass,
)
from signet_conformance.scenarios.steps import PromptStep, SwitchFaultOn, ToolStep

RESET = {"kind": "reset"}
STORE = {"step": "tool", "session": "s1", "tool": "memory_store"}
START = {"step": "start", "session": "s1", "agent": 0, "project": "/workspace/src/acme-api"}


def scenario_of(*steps: Any, **more: Any) -> dict[str, Any]:
    """A scenario as JSON."""
    return {"name": "one", "steps": list(steps), **more}


def arguments_of(tool: str) -> Sequence[dict[str, Any]]:
    """What the scripted scenarios hand to a tool."""
    steps = [step for scenario in scripted() for step in scenario.steps if isinstance(step, ToolStep)]
    return [step.arguments or {} for step in steps if step.tool == tool]


def test_scripted_scenarios_have_names_of_their_own() -> None:
    """Each scripted scenario can have a trace of its name, and survives its own JSON."""
    every = (*scripted(), *remembered())
    assert len({scenario.name for scenario in every}) == len(every)
    for scenario in every:
        assert Scenario.from_json(json.loads(json.dumps(scenario.to_json())), "here") == scenario


def test_each_documented_variable_that_switches_hooks_off_is_tried() -> None:
    """The scenario of the bypass is performed once for each, under a name of its own; the others stay as they are."""
    every = with_each_bypass(scripted(), {"SIGNET_BYPASS": "1", "SIGNET_ENABLED": "false"})
    tried = {scenario.name: (scenario.bypass, dict(scenario.env)) for scenario in every if scenario.bypass}
    assert tried == {
        "bypass": ("SIGNET_BYPASS", {"SIGNET_BYPASS": "1"}),
        "bypass-signet-enabled": ("SIGNET_ENABLED", {"SIGNET_ENABLED": "false"}),
    }
    assert len(every) == len(scripted()) + 1
    again = [Scenario.from_json(json.loads(json.dumps(scenario.to_json())), "here") for scenario in every]
    assert again == list(every)


@pytest.mark.parametrize(
    ("what", "put"),
    [
        (r"\d{4,}", "####"),
        (r"\+?\d[\d ]{7,}\d", "[phone]"),
        ("%%", "%"),
        (r"\S+@\S+\.\w+", "[mail]"),
        (r"https?://\S+", "[link]"),
        (r"\$\w+", ""),
        ("\u200d", ""),
        (r"\n{3,}", "\n\n"),
    ],
    ids=["digits", "phone numbers", "percent signs", "mail addresses", "links", "variables", "joiners", "blank lines"],
)
def test_scripted_prompts_hold_what_careless_adapters_change(what: str, put: str) -> None:
    """Only so every run shows that an adapter masks or expands what the user says (SIG-PROMPT-010)."""
    texts = [step.text for scenario in scripted() for step in scenario.steps if isinstance(step, PromptStep)]
    assert any(re.sub(what, put, text) != text for text in texts)


@pytest.mark.parametrize(
    ("what", "put"),
    [("(?s)\n.*", ""), (r"(?s)\. .*", "."), ("(?s)(?<=^.{500}).*", ""), (r"\n+", " "), ("[^\x00-\uffff]", "")],
    ids=["first line", "first sentence", "500 characters", "line breaks", "emoji"],
)
def test_scripted_memories_hold_what_careless_adapters_change(what: str, put: str) -> None:
    """Only so every run shows that a tool stores another text than it was told (SIG-MEM-006)."""
    asked = [step.arguments for scenario in scripted() for step in scenario.steps if isinstance(step, ToolStep)]
    texts = [str(given["content"]) for given in asked if "content" in given]
    assert any(re.sub(what, put, text) != text for text in texts)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_scripted_memories_are_in_no_normalisation_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> None:
    """Only so every run shows that a tool stores a text in another form (SIG-MEM-006)."""
    texts = [str(given["content"]) for given in arguments_of("memory_store")]
    assert any(normalize(form, text) != text for text in texts)


@pytest.mark.parametrize(
    "careless",
    [str, quote, unquote, lambda text: text.encode("ascii", "ignore").decode()],
    ids=["nothing encoded", "all but slashes encoded", "decoded", "ASCII alone"],
)
@pytest.mark.parametrize("tool", ["memory_get", "memory_modify", "memory_forget"])
def test_scripted_tools_get_ids_that_have_to_be_encoded(tool: str, careless: Callable[[str], str]) -> None:
    """Only so every run shows that a tool puts an id into a path as it is (SIG-MEM-001, SIG-REC-005)."""
    given = [members for each in arguments_of(tool) for members in (each, *each.get("patches", ()))]
    ids = [text for members in given for text in (members.get("id"), *members.get("ids", ())) if isinstance(text, str)]
    assert any(careless(text) != quote(text, safe="") for text in ids)


@pytest.mark.parametrize("character", ['"', "&", "+", "%41", "#", "?", "ü"])
def test_scripted_queries_hold_what_careless_adapters_change(character: str) -> None:
    """Only so every run shows that a search puts a query into an address, or a pattern, as it is (SIG-REC-005)."""
    assert any(character in str(given["query"]) for given in arguments_of("memory_search"))


@pytest.mark.parametrize("operation", ["session-start", "user-prompt-submit"])
def test_scripted_daemon_holds_back_the_body_of_its_answer(operation: str) -> None:
    """A connector that knows a bound for the head alone waits for the body as long as it takes (SIG-FAIL-002)."""
    faults = [step for scenario in scripted() for step in scenario.steps if isinstance(step, SwitchFaultOn)]
    slow = [fault.match for fault in faults if fault.fault["kind"] == "slow_body"]
    assert {"path": f"/api/hooks/{operation}"} in slow


def test_saved_scenario_is_read_whatever_else_its_file_says() -> None:
    """Seed and requirement stand beside a saved scenario and change nothing."""
    scenario = Scenario.from_json(scenario_of(START, seed=1, requirement="SIG-CMP-004", title="Two"), "here")
    assert (scenario.name, scenario.title, scenario.to_json()["steps"]) == ("one", "Two", [START])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (scenario_of(START, name="../one"), '/name: is "../one", expected a name'),
        (scenario_of(START, name="a" * 101), "/name: is "),
        (scenario_of(START, name=1), "/name: is 1, expected a text"),
        (scenario_of(START, title=1), "/title: is 1, expected a text"),
        (scenario_of(), "/steps: is an empty list"),
        (scenario_of("start"), '/steps/0: is "start", expected an object'),
        (scenario_of({"session": "s1"}), "/steps/0: lacks step"),
        (scenario_of({"step": ["start"], "session": "s1"}), "/steps/0: step is "),
        (scenario_of(START, {"step": "fly", "session": "s1"}), "/steps/1: step is 'fly'"),
        (scenario_of({"step": "end"}), "/steps/0: lacks session"),
        (scenario_of({"step": "prompt", "session": "s1"}), "/steps/0: lacks text"),
        (scenario_of({"step": "tool", "session": "s1"}), "/steps/0: lacks tool"),
        (scenario_of({"step": "fault"}), "/steps/0: lacks fault"),
        (scenario_of({"step": "fault", "fault": "reset"}), '/steps/0/fault: is "reset"'),
        (scenario_of({"step": "fault", "fault": {"kind": "reset"}, "count": True}), "/steps/0/count: is true"),
        (scenario_of({"step": "fault", "fault": {"kind": "rest"}}), '/steps/0/fault: kind is "rest"'),
        (scenario_of({"step": "fault", "fault": {"kind": "delay"}}), "/steps/0/fault: delay lacks delay_s"),
        (scenario_of({"step": "fault", "fault": {"kind": "reset", "status": 1}}), "reset has no 'status'"),
        (scenario_of({"step": "fault", "fault": RESET, "match": {"pat": "/"}}), "/match: unknown member 'pat'"),
        (scenario_of({"step": "fault", "fault": RESET, "match": {"path": 1}}), "/match: path is 1, expected a text"),
        (scenario_of({"step": "fault", "fault": RESET, "path": "/"}), "/steps/0: unknown member 'path'"),
        (scenario_of({**START, "agent": 1.5}), "/steps/0/agent: is 1.5, expected a whole number or a text"),
        (scenario_of({**START, "project": None}), "/steps/0/project: is null"),
        (scenario_of(START, env=["A"]), "/env: is a list"),
        (scenario_of(START, env={"A": 1}), "/env/A: is 1, expected a text"),
        (scenario_of(START, needs="secrets-exec"), '/needs: is "secrets-exec", expected a list'),
        (
            {"scenarios": [scenario_of(START), scenario_of(START, {"step": "end"})]},
            "/scenarios/1/steps/1: lacks session",
        ),
    ],
)
def test_scenario_that_is_off_is_refused(tmp_path: Path, data: dict[str, Any], message: str) -> None:
    """The error names file, JSON pointer and value, and says what to write instead."""
    path = tmp_path / "one.json"
    path.write_text(json.dumps(data))
    with pytest.raises(UsageError, match=re.escape(message)) as raised:
        read_scenarios(path)
    assert raised.value.where == str(path)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("data", "message", "meant"),
    [
        (scenario_of({**START, "proyect": "/workspace"}), "/steps/0: unknown member 'proyect'", "project"),
        (scenario_of({**STORE, "argments": {}}), "/steps/0: unknown member 'argments'", "arguments"),
        (scenario_of({"step": "fault", "fault": RESET, "mach": {}}), "/steps/0: unknown member 'mach'", "match"),
        (scenario_of(START, bypas="A"), "the whole: unknown member 'bypas'", "bypass"),
        ({"scenarios": [scenario_of(START, nedds=[])]}, "/scenarios/0: unknown member 'nedds'", "needs"),
    ],
)
def test_a_misspelt_member_is_refused(tmp_path: Path, data: dict[str, Any], message: str, meant: str) -> None:
    """Nothing would read it, and the scenario would show something else than its author meant."""
    path = tmp_path / "one.json"
    path.write_text(json.dumps(data))
    with pytest.raises(UsageError, match=re.escape(message)) as raised:
        read_scenarios(path)
    assert raised.value.where == str(path)
    assert str(raised.value.remedy).startswith(f"did you mean {meant}?")


def test_a_driver_s_own_members_are_kept() -> None:
    """A driver program may take members that the kit does not know."""
    own = {**START, "channel": "discord", "window": 3, "agents": []}
    assert Scenario.from_json(scenario_of(own), "here").to_json()["steps"] == [own]


def test_a_step_in_no_open_session_is_refused() -> None:
    """The message names the step and its session in plain words."""
    scenario = Scenario.from_json(scenario_of(START, {"step": "end", "session": "s2"}), "here")
    with pytest.raises(UsageError, match="step 1: end in session s2, which is not open"):
        demand_open_sessions(scenario, "here")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"scenarios": 1}', '{"scenarios": [1]}', "[" * 100_000])
def test_file_without_a_scenario_is_refused(tmp_path: Path, text: str) -> None:
    """What is no JSON object with a scenario is a usage error, never a traceback."""
    path = tmp_path / "one.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        read_scenarios(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    """A file that is not there is a usage error too."""
    with pytest.raises(UsageError, match="cannot be read"):
        read_scenarios(tmp_path / "none.json")


def test_scenario_shows_itself_in_short() -> None:
    """A prompt of 100 kB does not fill a message."""
    scenario = Scenario("one", "One", (PromptStep(session="s1", text="x" * 100_000),))
    assert len(repr(scenario)) < 400
