"""Tests that every tool for a model must pass (`signet_reference_harness.tools.Tool`)."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import re
import threading
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from signet_conformance.contracts.fakes import LONGEST_S, demand, skip_unless_overridden
from signet_reference_harness.tools import Tool, ToolContext

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolContract:
    """Subclass it, and return your tool and arguments for it.

    :meth:`tool` and :meth:`arguments` have to be overridden; without :meth:`unsuitable` its test is skipped.
    """

    def tool(self) -> Tool:
        """Your tool."""
        raise NotImplementedError("override tool(): your tool")

    def arguments(self) -> Mapping[str, Any]:
        """Arguments with which the tool succeeds."""
        raise NotImplementedError("override arguments(): arguments with which your tool succeeds")

    def unsuitable(self) -> Mapping[str, Any]:
        """Arguments that fit the schema but with which the tool fails, such as a place that does not exist."""
        skip_unless_overridden("unsuitable()")

    def context(self) -> ToolContext:
        """The context of the calls. Override it for a tool that asks the daemon, or reads files of the project."""
        return ToolContext(
            session_key="contract-1", project="/srv/acme", agent_id="atlas-agent", daemon_url="http://127.0.0.1:3850"
        )

    def test_its_name_suits_every_vendor(self) -> None:
        """Letters, digits, _ and -, up to 64 of them."""
        name = self.tool().name
        demand(isinstance(name, str) and NAME.fullmatch(name), f"the name is {name!r}; use letters, digits, _ and -")

    def test_it_says_what_it_does(self) -> None:
        """The description is for the model."""
        description = self.tool().description
        demand(isinstance(description, str) and description.strip(), f"the description is {description!r}")

    def test_its_schema_is_that_of_an_object(self) -> None:
        """`input_schema` is a JSON Schema whose type is object."""
        schema = self.tool().input_schema
        demand(isinstance(schema, Mapping), f"input_schema is {type(schema).__name__}, not a JSON Schema")
        demand(schema.get("type") == "object", f"the type of input_schema is {schema.get('type')!r}, not 'object'")
        try:
            jsonschema_rs.validator_for(dict(schema))
        except (jsonschema_rs.ValidationError, ValueError) as error:
            demand(False, f"input_schema is not a JSON Schema: {str(error).splitlines()[0]}")

    def test_its_schema_admits_its_arguments(self) -> None:
        """The tool needs only arguments that its schema describes."""
        error = _breach(self.tool(), self.arguments())
        demand(error is None, f"input_schema refuses the arguments {dict(self.arguments())!r}: {error}")

    def test_it_says_whether_it_runs_before_the_model(self) -> None:
        """`run_before_generation` is a bool; a tool that does takes the prompt as its `query`."""
        runs = self.tool().run_before_generation
        demand(isinstance(runs, bool), f"run_before_generation is {runs!r}, not True or False")
        if runs:
            error = _breach(self.tool(), {"query": "Which port?"})
            demand(error is None, f"it runs before the model, but input_schema refuses a query: {error}")

    def test_it_says_how_long_it_may_take(self) -> None:
        """`timeout_s`, where it has one, is a number of seconds above 0."""
        timeout_s = getattr(self.tool(), "timeout_s", 60.0)
        good = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool) and 0 < timeout_s < float("inf")
        demand(good, f"timeout_s is {timeout_s!r}, not a number of seconds above 0")

    def test_it_brings_json(self) -> None:
        """The result is a JSON value, and comes in time."""
        value = self._execute(self.arguments())
        try:
            again = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            demand(False, f"its result is not JSON: {error}")
        else:
            demand(again == _with_lists(value), f"its result changes on its way through JSON: {value!r} to {again!r}")

    def test_it_leaves_its_arguments_alone(self) -> None:
        """The arguments are the harness's own."""
        arguments = copy.deepcopy(dict(self.arguments()))
        before = copy.deepcopy(arguments)
        self._execute(arguments)
        demand(arguments == before, f"it changed its arguments from {before!r} to {arguments!r}")

    def test_it_raises_to_tell_the_model_what_is_wrong(self) -> None:
        """For unsuitable arguments the tool raises an exception with a message, and does not end the program."""
        _, error = self._run(self.unsuitable())
        demand(error is not None, "it raised nothing for unsuitable arguments")
        demand(isinstance(error, Exception), f"it raised {type(error).__name__}, which ends a program")
        demand(str(error).strip(), f"its {type(error).__name__} says nothing to the model")

    def _execute(self, arguments: Mapping[str, Any]) -> Any:
        value, error = self._run(arguments)
        if error is not None:
            demand(False, f"it raised {type(error).__name__}: {error}")
        return value

    def _run(self, arguments: Mapping[str, Any]) -> tuple[Any, BaseException | None]:
        """Run the tool in a thread, as the harness does; return its result, or None and the exception."""
        tool, context = self.tool(), self.context()
        timeout_s = min(float(getattr(tool, "timeout_s", LONGEST_S)), LONGEST_S)
        ended: list[tuple[Any, BaseException | None]] = []

        def run() -> None:
            try:
                value = tool.execute(arguments, context)
                ended.append((asyncio.run(_await(value)) if inspect.isawaitable(value) else value, None))
            except BaseException as error:  # noqa: BLE001 - whether it raises SystemExit is what is tested
                ended.append((None, error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(timeout_s)
        demand(ended, f"it gave no result within {timeout_s:g} s")
        return ended[0]


async def _await(value: Any) -> Any:
    return await value


def _breach(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Why the tool's schema refuses the arguments; None if it accepts them."""
    try:
        jsonschema_rs.validator_for(dict(tool.input_schema)).validate(dict(arguments))
    except (jsonschema_rs.ValidationError, ValueError) as error:
        return str(error).splitlines()[0]
    return None


def _with_lists(value: Any) -> Any:
    """A value with its tuples as lists, as JSON gives them back."""
    if isinstance(value, list | tuple):
        return [_with_lists(item) for item in value]
    return {key: _with_lists(item) for key, item in value.items()} if isinstance(value, dict) else value
