"""JSON values: parts of a value of unknown shape, one value merged into another, and JSON pointers (RFC 6901)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

ABSENT: Final = object()
"""Stands for the value at a pointer that leads nowhere."""


def object_in(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_in(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def objects_in(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; none for any other value."""
    return [each for each in list_in(value) if isinstance(each, Mapping)]


def text_in(value: object) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def only_text(value: object) -> str | None:
    """Return the value if it is a text, else None."""
    return value if isinstance(value, str) else None


def member_of(value: object, *names: str) -> Any:
    """Return the value below these members of nested objects, or None if one is missing."""
    for name in names:
        value = object_in(value).get(name)
    return value


def parse_value(text: str | bytes) -> Any:
    """The value of a JSON text; None for any other text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parse_object(text: str | bytes) -> Mapping[str, Any]:
    """The object in a JSON text; an empty one for any other text."""
    return object_in(parse_value(text))


def texts_within(value: object, *, names: bool = True) -> list[str]:
    """The texts of a JSON value, whatever its depth; the names of members too, unless `names` is False."""
    texts: list[str] = []
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, str):
            texts.append(node)
        elif isinstance(node, dict):
            if names:
                texts += node
            pending += reversed(node.values())
        elif isinstance(node, list):
            pending += reversed(node)
    return texts


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to each scalar in a JSON value."""
    if isinstance(value, dict):
        return {name: map_leaves(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [map_leaves(each, change) for each in value]
    return change(value)


def json_in_utf8(value: Any) -> bytes:
    """JSON as programs in JavaScript and Rust write it: characters as they are, half a surrogate pair escaped."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def merge(value: Any, over: Any) -> Any:
    """Merge `over` into `value`: objects member by member, any other value is replaced."""
    if not isinstance(value, Mapping) or not isinstance(over, Mapping):
        return over
    return {**value, **{name: merge(value[name], each) if name in value else each for name, each in over.items()}}


def escape(name: str) -> str:
    """A member's name as a part of a pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def pointer(*names: str | int) -> str:
    """The pointer made of these member names and list indices."""
    return "".join(f"/{escape(str(name))}" for name in names)


def names_in(pointer: str) -> list[str]:
    """The member names and list indices of a pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def value_at(document: Any, pointer: str) -> Any:
    """The value at a pointer, or ABSENT."""
    for name in names_in(pointer):
        if isinstance(document, dict):
            document = document.get(name, ABSENT)
        elif isinstance(document, list) and _is_place(name, document):
            document = document[int(name)]
        else:
            return ABSENT
    return document


def fill_in(value: Any, known: Mapping[str, str]) -> Any:
    """Replace each placeholder `{name}` in the texts and member names of a value by its known value."""
    if isinstance(value, str):
        for name, meant in known.items():
            value = value.replace(f"{{{name}}}", meant)
        return value
    if isinstance(value, Mapping):
        return {fill_in(name, known): fill_in(each, known) for name, each in value.items()}
    return [fill_in(each, known) for each in value] if isinstance(value, list | tuple) else value


def put(document: Any, pointer: str, value: Any) -> None:
    """Set the value at a pointer, if its parent is an object, or a list with that index."""
    holder, name = _holder(document, pointer)
    if isinstance(holder, dict):
        holder[name] = value
    elif isinstance(holder, list) and _is_place(name, holder):
        holder[int(name)] = value


def take(document: Any, pointer: str) -> Any:
    """Remove the value at a pointer and return it; return ABSENT if the pointer leads to no value."""
    holder, name = _holder(document, pointer)
    if isinstance(holder, dict):
        return holder.pop(name, ABSENT)
    if isinstance(holder, list) and _is_place(name, holder):
        return holder.pop(int(name))
    return ABSENT


def _holder(document: Any, pointer: str) -> tuple[Any, str]:
    head, _, _ = pointer.rpartition("/")
    return value_at(document, head), names_in(pointer)[-1]


def _is_place(name: str, values: list[Any]) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10 and int(name) < len(values)
