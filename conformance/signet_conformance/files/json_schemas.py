"""Make the JSON Schemas of documents, rows and lines from their classes. The schemas folder has the frozen ones.

A docstring beneath a member of a class describes the member.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import getdoc, getsource
from itertools import pairwise
from typing import Any

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

_BASE_URL = "https://schemas.signet-conformance.invalid/"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Schema(GenerateJsonSchema):
    """Makes JSON Schema for people: without titles made from names, and without empty defaults."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: the name of a member is title enough."""
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """The schema of a member, with its default unless that is empty."""
        return super().default_schema(schema) if schema.get("default") else self.generate_inner(schema["schema"])

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """An object of any members; propertyNames says what their names must match."""
        described = super().dict_schema(schema)
        if "patternProperties" in described:
            ((pattern, values),) = described.pop("patternProperties").items()
            described |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        return described

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """An object with the members of a model, each described by the docstring beneath it."""
        return _describe(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """An object with the members of a dataclass, each described by the docstring beneath it."""
        return _describe(super().dataclass_schema(schema), schema["cls"])


def _describe(schema: JsonSchemaValue, described: type) -> JsonSchemaValue:
    members = schema.get("properties", {})
    fields = getattr(described, "__pydantic_fields__", {})
    for name, text in _docstrings(described).items():
        shown = getattr(fields.get(name), "alias", None) or name
        if shown in members:
            words = {"description": text}
            members[shown] = words | members[shown] | words
    return schema


def _docstrings(described: type) -> Mapping[str, str]:
    """The members of a class that a docstring beneath them describes, each with that text as one line."""
    texts: dict[str, str | None] = {}
    for each in reversed(described.__mro__):
        body = () if each in BaseModel.__mro__ else _class_bodies(each.__module__).get(each.__name__, ())
        for statement, following in pairwise([*body, None]):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                texts[statement.target.id] = _text_of(following)
    return {name: " ".join(text.split()) for name, text in texts.items() if text is not None}


@cache
def _class_bodies(module: str) -> Mapping[str, Sequence[ast.stmt]]:
    # With use_attribute_docstrings pydantic would read the source at each start of the program.
    try:
        tree = ast.parse(getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}


def _text_of(statement: ast.stmt | None) -> str | None:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


@cache
def schema_of(model: type[BaseModel], file: str) -> Mapping[str, Any]:
    """The JSON Schema of a document, as frozen in a file of the schemas folder."""
    schema = model.model_json_schema(schema_generator=_Schema)
    return _with_head(file, schema.pop("title"), schema.pop("description"), schema, schema.pop("$defs", {}))


def _with_head(
    file: str, title: str, description: str, schema: JsonSchemaValue, parts: JsonSchemaValue
) -> JsonSchemaValue:
    """A schema as its file holds it: only the whole has a title, and descriptions are single lines."""
    for part in parts.values():
        part.pop("title", None)
        if "description" in part:
            part["description"] = " ".join(part["description"].split())
    head = {"$schema": _DIALECT, "$id": _BASE_URL + file.removesuffix(".schema.json"), "title": title}
    head["description"] = " ".join(description.split())
    return {**head, **schema, **({"$defs": parts} if parts else {})}


def schema_text(model: type[BaseModel | msgspec.Struct], file: str) -> str:
    """The JSON Schema of a document, of a row, or of lines whose kinds derive from `model`, as the text of its file."""
    if not issubclass(model, msgspec.Struct):
        schema = schema_of(model, file)
    else:
        schema = schema_of_lines(model, file) if model.__subclasses__() else schema_of_row(model, file)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def schema_of_lines(base: type[msgspec.Struct], file: str) -> Mapping[str, Any]:
    """The JSON Schema of a line that is one of the tagged structs derived from `base`, with the models within them.

    The summary line of the docstring of `base` is the title of the schema, the rest the description.
    """
    parts: dict[str, Any] = {}

    def of_model(kind: type) -> dict[str, Any]:
        if not issubclass(kind, BaseModel):
            raise NotImplementedError  # tells msgspec that the hook does not know the type
        schema = kind.model_json_schema(schema_generator=_Schema)
        parts.update(schema.pop("$defs", {}))
        return schema

    kinds = base.__subclasses__()
    title, _, description = (getdoc(base) or "").partition("\n\n")
    named, structs = msgspec.json.schema_components(kinds, schema_hook=of_model, ref_template="#/$defs/{name}")
    parts = dict(sorted({**structs, **parts}.items()))
    return _with_head(file, title.removesuffix("."), description, {"anyOf": list(named)}, parts)


@cache
def schema_of_row(row: type[msgspec.Struct], file: str) -> Mapping[str, Any]:
    """The JSON Schema of the rows, or of the document, that a msgspec class writes, as frozen."""
    (named,), parts = msgspec.json.schema_components([row], ref_template="#/$defs/{name}")
    for name, part in parts.items():
        part["additionalProperties"] = False
        for member in part["properties"].values():
            if member.get("default", 0) is None:
                del member["default"]
        _describe(part, getattr(sys.modules[row.__module__], name))
    schema = parts.pop(named["$ref"].removeprefix("#/$defs/"))
    return _with_head(file, schema.pop("title"), schema.pop("description"), schema, parts)
