"""Documents: what a model refuses is told by place, value and remedy, and its schema is what people read."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal

import jsonschema_rs
import pytest
from pydantic import ConfigDict, Field

from signet_conformance.errors import TargetError, UsageError
from signet_conformance.files.documents import Document, Items, Maybe, Part, Telling, Text, demand
from signet_conformance.files.json_schemas import schema_of


class Place(Part):
    """Where something lies."""

    path: Annotated[Text, Field(description="a path below the folder")]


class Shelf(Document):
    """A shelf."""

    model_config = ConfigDict(title="Shelf (shelf/1)")
    schema_file: ClassVar[str] = "shelf/shelf-1.schema.json"

    format: Literal["shelf/1"]
    kind: Literal["oak", "pine"] = "oak"
    label: Maybe[Telling] = None
    width_m: Maybe[Annotated[float, Field(gt=0, description="a width in metres")]] = None
    places: Items[Place] = ()
    names: dict[Annotated[str, Field(pattern="^[a-z]+$")], int] = {}  # noqa: RUF012 - a default that pydantic copies
    free: Any = None


SHELF: dict[str, Any] = {"format": "shelf/1"}


def test_what_fits_is_read_without_conversion() -> None:
    """Lists become tuples, absent members None; everything else stays what it is."""
    shelf = demand(Shelf, {**SHELF, "places": [{"path": "a"}], "free": {"x": [None]}}, "a.json")
    assert shelf.places == (Place(path="a"),)
    assert (shelf.label, shelf.kind, shelf.free) == (None, "oak", {"x": [None]})


def test_a_document_may_name_its_schema_for_editors() -> None:
    """The member changes nothing, the schema admits it too, and one that is no text is refused as any unknown one."""
    named = {**SHELF, "$schema": "shelf.schema.json"}
    assert demand(Shelf, named, "a.json") == demand(Shelf, SHELF, "a.json")
    assert jsonschema_rs.validator_for(dict(schema_of(Shelf, Shelf.schema_file))).is_valid(named)
    with pytest.raises(UsageError, match="unknown member"):
        demand(Shelf, {**SHELF, "$schema": 7}, "a.json")


@pytest.mark.parametrize(
    ("data", "message", "remedy"),
    [
        ([], "the whole: is an empty list, expected an object", "schemas/shelf/shelf-1.schema.json"),
        ({}, "the whole: lacks format", 'write "format": "shelf/1"'),
        ({"format": "shelf/2", "places": [{"path": 7}]}, '/format: is "shelf/2"', "write shelf/1"),
        ({**SHELF, "kindd": "oak"}, "the whole: unknown member 'kindd'", "did you mean kind?"),
        ({**SHELF, "kind": "\x1b[31m"}, '/kind: is "\\u001b[31m"', "one of oak, pine"),
        ({**SHELF, "label": None}, "/label: is null, expected a text", ""),
        ({**SHELF, "label": " "}, "/label: is blank", ""),
        ({**SHELF, "width_m": 0}, "/width_m: is 0, expected a number above 0", "a width in metres"),
        ({**SHELF, "width_m": "1"}, '/width_m: is "1", expected a number', "a width in metres"),
        ({**SHELF, "width_m": True}, "/width_m: is true, expected a number", "a width in metres"),
        ({**SHELF, "width_m": float("nan")}, "/width_m: is NaN, expected a finite number", "a width in metres"),
        ({**SHELF, "kind": "x", "places": [{"path": "a"}, {}]}, "/places/1: lacks path", "a path below the folder"),
        ({**SHELF, "places": [{"path": 7}]}, "/places/0/path: is 7, expected a text", "a path below the folder"),
        ({**SHELF, "places": {"path": "a"}}, "/places: is an object, expected a list", "schemas/shelf"),
        ({**SHELF, "names": {"A/~": 1}}, '/names: "A/~" does not match ^[a-z]+$', ""),
        ({**SHELF, "names": {"a": 1.5}}, "/names/a: is 1.5, expected a whole number", ""),
    ],
)
def test_a_breach_is_told_by_place_value_and_remedy(data: Any, message: str, remedy: str) -> None:
    """The deepest breach is one error, but another format comes before everything that follows from it."""
    with pytest.raises(TargetError) as caught:
        demand(Shelf, data, "a.json", error=TargetError)
    assert caught.value.where == "a.json"
    assert caught.value.message.startswith(message)
    assert remedy in str(caught.value.remedy)
    assert not jsonschema_rs.validator_for(schema_of(Shelf, Shelf.schema_file)).is_valid(data) or "NaN" in message


@pytest.mark.parametrize("value", ["x" * 9999, ["x" * 9999], "\x1b[31m\u202e", "\ud83d", {"a": "b" * 9999}])
def test_a_message_is_short_and_harmless(value: Any) -> None:
    """However long or hostile a value is, a line of printable text is said of it."""
    with pytest.raises(UsageError) as caught:
        demand(Shelf, {**SHELF, "width_m": value, "x" * 9999: 1}, "a.json")
    assert len(str(caught.value)) < 600
    assert str(caught.value).replace("\ntry:", "").isprintable()


def test_a_value_nested_deeply_is_told() -> None:
    """A nesting that no serialiser follows to its end is named by its kind."""
    with pytest.raises(UsageError, match="/kind: is a list"):
        demand(Shelf, {**SHELF, "kind": json.loads("[" * 900 + "]" * 900)}, "a.json")


def test_the_schema_says_what_the_model_says() -> None:
    """Names of members bring no titles, null is not offered, and what names must match stands in propertyNames."""
    schema = schema_of(Shelf, Shelf.schema_file)
    assert schema["$id"].endswith("/shelf/shelf-1")
    assert (schema["title"], schema["description"]) == ("Shelf (shelf/1)", "A shelf.")
    assert schema["required"] == ["format"]
    assert schema["properties"]["label"] == {"type": "string", "pattern": r"\S"}
    assert schema["properties"]["names"]["propertyNames"] == {"pattern": "^[a-z]+$"}
    assert "null" not in json.dumps(schema)
    assert schema["$defs"]["Place"].get("title") is None
