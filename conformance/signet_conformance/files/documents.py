"""Documents that people write or exchange: one pydantic model each, and the messages for a breach.

Import this module, and the modules of models, only where a document is read or written: pydantic takes longer to
import than many commands take to run.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from signet_conformance.errors import SignetConformanceError, UsageError, printable
from signet_conformance.files.json_values import escape

_SHOWN = 80
_REFUSED = "refused"


SCHEMA_MEMBER = "$schema"
"""The member that names a document's schema for editors; the kit ignores it."""


class Part(BaseModel):
    """An object within a document. Nothing is converted, and a member that is not known is refused."""

    # Validators are built when the first document is read, and not at import.
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def with_schema_member(described: dict[str, Any]) -> None:
    """Let the schema of a document, which admits no unknown member, admit the one for editors."""
    if described.get("additionalProperties") is False:
        named = {"type": "string", "description": "Where this schema lies, for editors."}
        described["properties"] = {SCHEMA_MEMBER: named, **described["properties"]}


class Lenient(Part):
    """An object that may have unknown members, such as notes of its author. A name that looks misspelt is refused."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_misspelt(cls, data: Any) -> Any:
        known = {name for field, info in cls.model_fields.items() for name in (field, info.alias or field)}
        # One that forbids unknown members refuses all of them by itself.
        for name in data if isinstance(data, Mapping) and cls.model_config["extra"] != "forbid" else ():
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.8)
            # A plural such as `tools` is another member.
            if near and name not in known and name != f"{near[0]}s":
                shown = printable(name, 60)
                raise refusal(f"unknown member {shown!r}", f"did you mean {near[0]}? If not, choose another name")
        return data


class Document(Part):
    """A whole document, with the name of its schema in the schemas folder."""

    model_config = ConfigDict(json_schema_extra=with_schema_member)
    schema_file: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """The document as it is written to a file."""
        return self.model_dump(mode="json", exclude_unset=True)

    @classmethod
    def place(cls, where: str, pointer: Sequence[str | int]) -> tuple[str, Sequence[str | int]]:
        """The file that a message names for a problem, and the pointer from there to the value."""
        return where, pointer


def refusal(message: str, remedy: str = "") -> PydanticCustomError:
    """The error that a validator raises: what is wrong, and what to write instead (default: the description)."""
    return PydanticCustomError(_REFUSED, "{told}", {"told": message, "remedy": remedy})


def _refuse_empty(text: str) -> str:
    # Not by pydantic's own bound, which refuses half a surrogate pair: some programs write one.
    if not text:
        raise refusal("is empty")
    return text


def _refuse_repetition(items: tuple[Any, ...]) -> tuple[Any, ...]:
    repeated = next((item for place, item in enumerate(items) if item in items[:place]), None)
    if repeated is not None:
        raise refusal(f"names {printable(str(repeated), 60)!r} twice", "name each once")
    return items


def _refuse_blank(text: str) -> str:
    if not text.strip():
        raise refusal("is blank")
    return text


class _NeverNull:
    """Excludes null from a member's values: a member is absent or has a value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        schema: Any = handler(source)
        inner: core_schema.CoreSchema = schema["schema"] if schema["type"] == "nullable" else schema
        return inner


Value = TypeVar("Value")
Maybe = Annotated[Value | None, _NeverNull()]
"""A member that may be absent, and then is None. A document never says null for it."""
Items = Annotated[tuple[Value, ...], Field(strict=False, fail_fast=True)]
"""A JSON list, kept as a tuple; reading stops at the first wrong item."""
DistinctItems = Annotated[
    tuple[Value, ...],
    Field(strict=False, fail_fast=True, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_refuse_repetition),
]
"""A JSON list that names nothing twice."""
Seconds = Annotated[float, Field(gt=0, description="a number of seconds above 0")]

Text = Annotated[str, AfterValidator(_refuse_empty), WithJsonSchema({"type": "string", "minLength": 1})]
"""A text that is not empty."""
Telling = Annotated[str, AfterValidator(_refuse_blank), WithJsonSchema({"type": "string", "pattern": r"\S"})]
"""A text that is not blank."""


Model = TypeVar("Model", bound=Document)


def demand(
    model: type[Model],
    data: Any,
    where: str,
    *,
    remedy: str | None = None,
    error: type[SignetConformanceError] = UsageError,
) -> Model:
    """Validate `data`, a parsed JSON or TOML value, as a document.

    Raises `error` for the deepest place at which it breaks the model: `where`, JSON pointer, value, and what to write
    there; or the `remedy` given, for documents that programs write.
    """
    if isinstance(data, dict) and isinstance(data.get(SCHEMA_MEMBER), str):
        data = {name: value for name, value in data.items() if name != SCHEMA_MEMBER}
    try:
        return model.model_validate(data)
    except ValidationError as failure:
        problems = failure.errors(include_url=False)
    # A wrong format is reported first: the other problems follow from it.
    problem = next((each for each in problems if each["loc"] == ("format",)), None)
    problem = problem or max(problems, key=lambda each: len(each["loc"]))
    pointer = _pointer(problem["loc"], data, problem["input"])
    # Imported here: only an error needs it.
    from signet_conformance.files.json_schemas import schema_of

    schema = schema_of(model, model.schema_file)
    if problem["loc"][-1:] == ("[key]",) or problem["type"] in _UNKNOWN:
        # The name of a member is wrong, not its value.
        *pointer, name = pointer
        message, advice = _explain_name(problem, name, _part(schema, pointer))
    else:
        message, advice = _explain(problem, _part(schema, pointer))
    place, way = model.place(where, pointer)
    shown = "".join(f"/{printable(escape(str(part)), 60)}" for part in way)
    raise error(
        f"{shown or 'the whole'}: {printable(message, 300)}",
        where=place,
        remedy=printable(remedy or advice or f"write what schemas/{model.schema_file} describes", 600),
    )


def _pointer(location: Sequence[str | int], data: Any, wrong: Any) -> list[str | int]:
    """The path to the `wrong` value; pydantic's location also names missing members and variants of an object.

    A variant may have the name of a member, so the path to that very value is taken, or else the first that ends with
    the location's last part.
    """
    ways = list(_ways(tuple(location), data))
    at_value = [way for way, _ in ways if reduce(getitem, way, data) is wrong]
    return max(at_value or [way for way, ends in ways if ends][:1] or [way for way, _ in ways], key=len)


def _ways(location: tuple[str | int, ...], data: Any) -> Iterator[tuple[list[str | int], bool]]:
    """Yield each path that some parts of a location lead along, and whether the last part is on it."""
    if not location:
        yield [], False
        return
    part, rest = location[0], location[1:]
    in_list = isinstance(part, int) and isinstance(data, list | tuple) and part < len(data)
    if in_list or (isinstance(data, Mapping) and part in data):
        for way, ends in _ways(rest, data[part]):
            yield [part, *way], ends or not rest
    yield from _ways(rest, data)


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_KINDS: Mapping[str, str] = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "finite_number": "a finite number",
    "string_unicode": "a text without half characters",
}
"""The type of a problem to the expected value."""
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("a number above {}", "gt"),
    "greater_than_equal": ("a number of {} or more", "ge"),
    "less_than_equal": ("a number of {} or less", "le"),
    "too_short": ("a list of {} or more", "min_length"),
}
"""The type of a problem to the expected value, and to the name of the bound in pydantic's context."""


def _explain_name(problem: Any, name: str | int, part: Mapping[str, Any]) -> tuple[str, str]:
    """The problem with the name of an object's member, and the remedy."""
    if problem["type"] in _UNKNOWN:
        known = sorted(part.get("properties", ()))
        near = difflib.get_close_matches(str(name), known, n=2)
        return f"unknown member {printable(name)!r}", f"did you mean {' or '.join(near) or ', '.join(known)}?"
    return _explain(problem, {"description": part.get("description"), **part.get("propertyNames", {})})


def _explain(problem: Any, part: Mapping[str, Any]) -> tuple[str, str]:
    """The problem with a value, and the remedy, which may be empty."""
    kind, context, value = problem["type"], problem.get("ctx", {}), shown_value(problem["input"])
    remedy = str(part.get("description") or "")
    if kind == _REFUSED:
        return context["told"], context["remedy"] or remedy
    if kind == "missing":
        name = str(problem["loc"][-1])
        member = part.get("properties", {}).get(name, {})
        if "const" in member:
            return f"lacks {name}", f'write "{name}": "{member["const"]}"'
        return f"lacks {name}", f"add {name}: {member['description']}" if "description" in member else ""
    if kind in ("literal_error", "enum"):
        choices = ", ".join(map(str, part.get("enum", ())))
        return f"is {value}", f"one of {choices}" if choices else f"write {part.get('const')}"
    if kind == "string_pattern_mismatch":
        return f"{value} does not match {context['pattern']}", remedy
    if kind == "union_tag_not_found":
        return f"lacks {_member_of(context)}", remedy
    if kind == "union_tag_invalid":
        choices = context["expected_tags"].replace("'", "")
        return f"{_member_of(context)} is {context['tag']!r}", f"one of {choices}"
    if kind in _BOUNDS:
        phrase, bound = _BOUNDS[kind]
        return f"is {value}, expected {phrase.format(context[bound])}", remedy
    return (f"is {value}, expected {_KINDS[kind]}" if kind in _KINDS else problem["msg"]), remedy


def _member_of(context: Mapping[str, Any]) -> str:
    """The member that says which variant of an object is meant."""
    return str(context["discriminator"]).strip("'")


def shown_value(value: Any) -> str:
    """A value of a document for a message: a scalar as JSON, shortened; an object or list only by its kind."""
    if isinstance(value, Mapping):
        return "an object" if value else "an empty object"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return printable(json.dumps(value[:_SHOWN] if isinstance(value, str) else value, default=str), _SHOWN)


def _part(schema: Mapping[str, Any], pointer: Sequence[str | int]) -> Mapping[str, Any]:
    """The part of a schema for the value at a pointer; empty without such a part."""
    parts = [{name: value for name, value in schema.items() if name != "description"}]
    for step in pointer:
        parts = [_resolved(schema, child) for part in parts for child in _children(schema, part, step)]
    described = {name: value for part in reversed(parts) for name, value in part.items()}
    variants = [_resolved(schema, each) for each in described.get("oneOf", ())]
    members = {name: value for variant in variants for name, value in variant.get("properties", {}).items()}
    return {**described, "properties": {**members, **described.get("properties", {})}}


def _children(schema: Mapping[str, Any], part: Mapping[str, Any], step: str | int) -> Iterator[Mapping[str, Any]]:
    # The description of a list or a table applies to its items, unless they have their own.
    inherited = {"description": part["description"]} if "description" in part else {}
    if isinstance(step, int):
        yield {**inherited, **part.get("items", {})}
        return
    for variant in (part, *(_resolved(schema, each) for each in part.get("oneOf", ()))):
        if step in variant.get("properties", {}):
            yield variant["properties"][step]
        elif isinstance(variant.get("additionalProperties"), Mapping):
            yield {**inherited, **variant["additionalProperties"]}


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a schema with its reference resolved, without the too general description of the definition."""
    if "$ref" not in part:
        return dict(part)
    definition = schema["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return {**{name: value for name, value in definition.items() if name != "description"}, **part}
