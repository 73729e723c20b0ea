"""Reads documents that people write for the harness, each by a pydantic model, and explains what breaks it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from signet_reference_harness.errors import ConfigError, os_errors, pip_install

LARGEST_FILE = 16 * 1024 * 1024
_LONGEST_VALUE = 80


class DocumentError(ConfigError):
    """Raised for a document that cannot be read, or that breaks its model; the message names file, pointer, value."""


class StrictModel(BaseModel):
    """An object within a document. Nothing is converted, and an unknown member is refused."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class HarnessDocument(StrictModel):
    """A whole document, with the name of its schema in the schemas folder."""

    schema_file: ClassVar[str]


Model = TypeVar("Model", bound=BaseModel)


def read_document(model: type[Model], path: Path, most: int = LARGEST_FILE) -> Model:
    """The document in a JSON file of at most `most` bytes. Raises DocumentError."""
    return parse_document(model, read_file(path, most), str(path))


def read_file(
    path: Path,
    most: int = LARGEST_FILE,
    *,
    where: str = "",
    remedy: str = "name a file that can be read",
    smaller: str = "split it",
) -> bytes:
    """The bytes of a file, at most `most`. Raises DocumentError naming `where`, by default the path."""
    with os_errors(where or path, remedy, DocumentError), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # A pipe has no size, and may never end.
        data = b"" if size > most else file.read(size or most + 1)
    if max(size, len(data)) > most:
        raise DocumentError(f"{where or path}: is larger than {most} bytes", remedy=smaller)
    return data


def parse_document(model: type[Model], data: bytes, where: str) -> Model:
    """The document in a JSON text; `where` is its name in errors. Raises DocumentError."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        raise DocumentError(f"{place}: is not JSON: {error.msg}", remedy="write one JSON object") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, or a number of thousands of digits
        raise DocumentError(f"{where}: is not JSON: {error}"[:300], remedy="write one JSON object, in UTF-8") from None
    return demand(model, value, where)


def parse_yaml(data: bytes, where: object) -> Any:
    """The value of a YAML text. Raises DocumentError, which shows nothing of the text, since it may hold a key."""
    try:
        import yaml
    except ImportError:
        raise DocumentError(
            f"{where} cannot be read without the package 'pyyaml'", remedy=pip_install("harness")
        ) from None
    try:
        return yaml.safe_load(data)
    except yaml.reader.ReaderError as error:
        # The position counts bytes if they could not be decoded, and characters if one is not allowed.
        decoded = error.encoding == "unicode"
        before = data.decode(errors="replace")[: error.position].encode() if decoded else data[: error.position]
        line = before.count(b"\n") + 1
        problem = f"character {error.character:#04x}: {error.reason}"
        raise DocumentError(f"{where}:{line}: is not YAML: {problem}", remedy="write the file in UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        reason = str(getattr(error, "problem", None) or type(error).__name__)
        problem = re.sub(r"(['\"]).*\1", "...", reason, flags=re.DOTALL)
        raise DocumentError(f"{where}{place}: is not YAML: {problem}", remedy="correct that line") from None
    except (RecursionError, ValueError) as error:
        raise DocumentError(f"{where}: is not YAML: {type(error).__name__}", remedy="correct the file") from None


def demand(model: type[Model], value: Any, where: str, *, remedy: str | None = None) -> Model:
    """The document of a parsed value. Raises DocumentError for the deepest place that breaks the model.

    Its remedy is `remedy`, or by default the correction of that place.
    """
    try:
        return model.model_validate(value)
    except ValidationError as failure:
        problems = failure.errors(include_url=False)
    problem = max(problems, key=lambda each: len(_pointer(each["loc"], value)))
    pointer = _pointer(problem["loc"], value)
    shown = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')[:60]}" for step in pointer) or "the whole"
    message, correction = _explain(problem, problems, pointer)
    if problem["type"] == "missing" and not pointer:
        name = str(problem["loc"][-1])
        member = model.model_json_schema().get("properties", {}).get(name, {})
        correction = f'write "{name}": "{member["const"]}"' if "const" in member else correction
    raise DocumentError(f"{where}: {shown}: {message}", remedy=remedy or correction)


def _pointer(location: Sequence[str | int], value: Any) -> list[str | int]:
    """The path to the value of a problem. pydantic's location also names variants of unions, which no document has."""
    paths: list[tuple[list[str | int], Any]] = [([], value)]
    for step in location:
        paths += [([*path, step], node[step]) for path, node in paths if _has(node, step)]
    ends = [path for path, _ in paths if path and path[-1] == location[-1]]
    return max(ends or [path for path, _ in paths], key=len)


def _has(node: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(node, list) and step < len(node)
    return isinstance(node, Mapping) and step in node


def _explain(problem: Any, problems: Sequence[Any], pointer: Sequence[str | int]) -> tuple[str, str]:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown member {str(pointer[-1])[:_LONGEST_VALUE]!r}", "take it out, or see the document's schema"
    if kind == "missing":
        return f"lacks {problem['loc'][-1]}", f"add {problem['loc'][-1]}"
    tag = str(context.get("discriminator", "")).strip("'")
    if kind == "union_tag_not_found":
        return f"lacks {tag}", f"add {tag}"
    if kind == "union_tag_invalid":
        choices = context["expected_tags"].replace("'", "").split(", ")
        near = get_close_matches(context["tag"], choices, 1)
        return f"{tag} is {context['tag']!r}", f"write {near[0] if near else ', '.join(choices)}"
    same = [each for each in problems if each["input"] is problem["input"] and each["type"] != "extra_forbidden"]
    expected = " or ".join(dict.fromkeys(str(each["msg"]).removeprefix("Value error, ") for each in same))
    return f"is {shown_value(problem['input'])}: {expected}", "correct it, or take it out"


def put_text(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Write the text to `path` atomically, replacing what is there. Raises OSError."""
    # In the same folder, so that the last step is a rename on one disk.
    part = path.with_name(f".{path.name[:40]}.{os.getpid()}")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def shown_value(value: Any) -> str:
    """A value in a message: scalars as JSON, shortened; objects and lists only by their kind."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
