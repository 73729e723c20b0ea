"""The JSON Schemas of documents, made from their models. They stand frozen in the schemas folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from inspect import getdoc
from typing import Any

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

_HOME = "https://schemas.signet-conformance.invalid/"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Schema(GenerateJsonSchema):
    """JSON Schema as people read it: no titles made from names, and no defaults that only say `nothing`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: the name of a member is title enough."""
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """The schema of a member, with its default where that is a value."""
        return super().default_schema(schema) if schema.get("default") else self.generate_inner(schema["schema"])

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """An object of any members; propertyNames says what their names must match."""
        described = super().dict_schema(schema)
        if "patternProperties" in described:
            ((pattern, values),) = described.pop("patternProperties").items()
            described |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        return described


@cache
def schema_of(model: type[BaseModel], file: str) -> Mapping[str, Any]:
    """The JSON Schema of a document, as frozen in a file of the schemas folder."""
    schema = model.model_json_schema(schema_generator=_Schema)
    parts = schema.pop("$defs", {})
    for part in (schema, *parts.values()):
        if "description" in part:
            part["description"] = " ".join(part["description"].split())
    head = {"$schema": _DIALECT, "$id": _HOME + file.removesuffix(".schema.json")}
    told = {name: schema.pop(name) for name in ("title", "description")}
    for part in parts.values():
        part.pop("title", None)
    return {**head, **told, **schema, **({"$defs": parts} if parts else {})}


def schema_text(model: type[BaseModel | msgspec.Struct], file: str) -> str:
    """The JSON Schema of a document, of a row, or of lines whose kinds derive from `model`, as the text of its file."""
    if not issubclass(model, msgspec.Struct):
        schema = schema_of(model, file)
    else:
        schema = schema_of_lines(model, file) if model.__subclasses__() else schema_of_row(model, file)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def schema_of_lines(base: type[msgspec.Struct], file: str) -> Mapping[str, Any]:
    """The JSON Schema of a line that is one of the tagged structs derived from `base`, with the models within them.

    The summary line of its docstring is the title of the schema, the rest the description.
    """
    parts: dict[str, Any] = {}

    def of_model(kind: type) -> dict[str, Any]:
        if not issubclass(kind, BaseModel):
            raise NotImplementedError
        schema = kind.model_json_schema(schema_generator=_Schema)
        parts.update(schema.pop("$defs", {}))
        return schema

    kinds = base.__subclasses__()
    title, _, description = (getdoc(base) or "").partition("\n\n")
    named, structs = msgspec.json.schema_components(kinds, schema_hook=of_model, ref_template="#/$defs/{name}")
    parts = {**structs, **parts}
    for part in parts.values():
        part.pop("title", None)
        if "description" in part:
            part["description"] = " ".join(part["description"].split())
    return {
        "$schema": _DIALECT,
        "$id": _HOME + file.removesuffix(".schema.json"),
        "title": title.removesuffix("."),
        "description": " ".join(description.split()),
        "anyOf": list(named),
        "$defs": dict(sorted(parts.items())),
    }


@cache
def schema_of_row(row: type[msgspec.Struct], file: str) -> Mapping[str, Any]:
    """The JSON Schema of the rows, or of the document, that a msgspec class writes, as frozen."""
    (named,), parts = msgspec.json.schema_components([row], ref_template="#/$defs/{name}")
    schema = parts.pop(named["$ref"].removeprefix("#/$defs/"))
    for part in (schema, *parts.values()):
        part["additionalProperties"] = False
        for member in part["properties"].values():
            if member.get("default", 0) is None:
                del member["default"]
    told = {"title": schema.pop("title"), "description": " ".join(schema.pop("description").split())}
    for part in parts.values():
        part.pop("title", None)
    return {
        "$schema": _DIALECT,
        "$id": _HOME + file.removesuffix(".schema.json"),
        **told,
        **schema,
        **({"$defs": parts} if parts else {}),
    }
