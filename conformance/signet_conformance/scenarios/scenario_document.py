"""A file of scenarios as a document."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from signet_conformance.files.documents import Document, Items, Maybe, refusal, shown_value
from signet_conformance.scenarios.steps import AnyStep

LONGEST_NAME = 100


def _name(name: str) -> str:
    if not name.replace("-", "").isalnum() or len(name) > LONGEST_NAME:
        raise refusal(f"is {shown_value(name)}, expected a name", f"use up to {LONGEST_NAME} letters, digits and -")
    return name


Name = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema({"type": "string", "pattern": r"^[^\s./\\]+$", "maxLength": LONGEST_NAME}),
    Field(description=f"up to {LONGEST_NAME} letters, digits and -"),
]


class ScenarioDocument(Document):
    """An ordered list of steps. What else a file says, such as the seed of a generated session, changes nothing."""

    model_config = ConfigDict(title="Scenario", extra="ignore")
    schema_file: ClassVar[str] = "scenario/signet-scenario.schema.json"

    name: Name
    title: Annotated[Maybe[str], Field(description="a text: what the scenario shows")] = None
    env: Annotated[
        dict[str, str],
        Field(description='such as {"SIGNET_BYPASS": "1"}: what is added to the environment of the connector'),
    ] = Field(default_factory=dict)
    bypass: Annotated[
        Maybe[str],
        Field(description="a text such as SIGNET_NO_HOOKS: the variable of env with which the user switches hooks off"),
    ] = None
    needs: Annotated[
        Items[str],
        Field(description='such as ["secrets-exec"]: operations that a connector must declare for it to make sense'),
    ] = ()
    steps: Annotated[Items[AnyStep], Field(min_length=1, description='such as [{"step": "start", "session": "s1"}]')]


class ScenarioList(Document):
    """Several scenarios in one file."""

    model_config = ConfigDict(title="Scenarios", extra="ignore")
    schema_file: ClassVar[str] = "scenario/signet-scenarios.schema.json"

    scenarios: Items[ScenarioDocument]
