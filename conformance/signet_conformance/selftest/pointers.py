"""Reading and changing a JSON value at JSON pointers. A place that is not there is left alone."""

from __future__ import annotations

from typing import Any, Final

ABSENT: Final = object()


def _steps(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def value_at(document: Any, pointer: str) -> Any:
    """The value at a pointer, or ABSENT."""
    for step in _steps(pointer):
        if isinstance(document, dict):
            document = document.get(step, ABSENT)
        elif isinstance(document, list) and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return ABSENT
    return document


def _holder(document: Any, pointer: str) -> tuple[Any, str]:
    head, _, last = pointer.rpartition("/")
    return value_at(document, head), last.replace("~1", "/").replace("~0", "~")


def put(document: Any, pointer: str, value: Any) -> None:
    """Put a value at a pointer, where what should hold it is an object, or a list that has that place."""
    holder, last = _holder(document, pointer)
    if isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, list) and last.isdigit() and int(last) < len(holder):
        holder[int(last)] = value


def take(document: Any, pointer: str) -> Any:
    """Remove what stands at a pointer and return it; ABSENT where nothing does."""
    holder, last = _holder(document, pointer)
    if isinstance(holder, dict):
        return holder.pop(last, ABSENT)
    if isinstance(holder, list) and last.isdigit() and int(last) < len(holder):
        return holder.pop(int(last))
    return ABSENT
