"""The suite for tools."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import Any

import pytest

from signet_conformance.contracts import ToolContract

from .suites import failures

SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


class Weather:
    """A tool that keeps its contract."""

    name: Any = "weather"
    description: Any = "Tells the weather of a place."
    input_schema: Any = SCHEMA
    run_before_generation: Any = False
    timeout_s: Any = 20.0

    def execute(self, arguments: Any, context: Any) -> Any:
        """Rain, usually."""
        if arguments["place"] == "Nowhere":
            raise LookupError("there is no such place")
        return {"place": arguments["place"], "weather": ["rain"], "asked_by": context.agent_id}


class Patient(Weather):
    """The same, as a coroutine function that runs before the model."""

    run_before_generation = True
    input_schema: Any = {"type": "object"}

    async def execute(self, arguments: Any, context: Any) -> Any:
        """Rain, usually."""
        return super().execute(arguments, context)


class Suite(ToolContract):
    """The suite, for one of them."""

    def __init__(self, tool: Weather) -> None:
        self._tool = tool

    def tool(self) -> Any:
        """That one."""
        return self._tool

    def arguments(self) -> Mapping[str, Any]:
        """A place."""
        return {"place": "Ulm"}

    def unsuitable(self) -> Mapping[str, Any]:
        """No place."""
        return {"place": "Nowhere"}


def leaving(_arguments: Any, _context: Any) -> Any:
    """End the program."""
    raise SystemExit(3)


def mumbling(_arguments: Any, _context: Any) -> Any:
    """Fail without a word."""
    raise ValueError


BROKEN = [
    ("test_its_name_suits_every_vendor", {"name": "the weather"}, "the name is 'the weather'"),
    ("test_its_name_suits_every_vendor", {"name": None}, "the name is None"),
    ("test_it_says_what_it_does", {"description": " "}, "the description is ' '"),
    ("test_its_schema_is_that_of_an_object", {"input_schema": {"type": "string"}}, "'string', not 'object'"),
    ("test_its_schema_is_that_of_an_object", {"input_schema": {**SCHEMA, "required": 3}}, "is not a JSON Schema"),
    ("test_its_schema_is_that_of_an_object", {"input_schema": None}, "is NoneType"),
    ("test_its_schema_admits_its_arguments", {"input_schema": {**SCHEMA, "required": ["city"]}}, "refuses the arg"),
    ("test_it_says_whether_it_runs_before_the_model", {"run_before_generation": "no"}, "'no', not True or False"),
    ("test_it_says_whether_it_runs_before_the_model", {"run_before_generation": True}, "refuses a query"),
    ("test_it_says_how_long_it_may_take", {"timeout_s": 0}, "timeout_s is 0"),
    ("test_it_brings_json", {"execute": lambda *_: {1, 2}}, "its result is not JSON"),
    ("test_it_brings_json", {"execute": lambda *_: {1: "a"}}, "changes on its way through JSON"),
    ("test_it_brings_json", {"execute": lambda *_: float("nan")}, "its result is not JSON"),
    ("test_it_brings_json", {"execute": lambda *_: Event().wait(), "timeout_s": 0.05}, "no result within 0.05 s"),
    ("test_it_brings_json", {"execute": lambda arguments, _: arguments["town"]}, "it raised KeyError"),
    ("test_it_leaves_its_arguments_alone", {"execute": lambda arguments, _: arguments.pop("place")}, "it changed"),
    ("test_it_raises_to_tell_the_model_what_is_wrong", {"execute": lambda *_: None}, "it raised nothing"),
    ("test_it_raises_to_tell_the_model_what_is_wrong", {"execute": leaving}, "SystemExit, which ends a program"),
    ("test_it_raises_to_tell_the_model_what_is_wrong", {"execute": mumbling}, "ValueError says nothing"),
]


@pytest.mark.parametrize("tool", [Weather, Patient])
def test_a_conforming_tool_passes(tool: type[Weather]) -> None:
    """Every test of the suite holds, for a function and for a coroutine function."""
    assert failures(Suite(tool())) == {}


@pytest.mark.parametrize(("name", "own", "said"), BROKEN, ids=[f"{name}-{said}" for name, _, said in BROKEN])
def test_a_broken_tool_is_caught_by_name(name: str, own: Mapping[str, Any], said: str) -> None:
    """The test that is named for the breach fails, and says what it met."""
    tool = Weather()
    for member, value in own.items():
        setattr(tool, member, value)
    assert said in failures(Suite(tool)).get(name, "")
