"""A server's tools and answers as the harness takes them: bounded, escaped, under the harness's own names.

A server is not trusted: its descriptions go into the model's context, and its names into what a person reads.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from signet_reference_harness.errors import printable
from signet_reference_harness.messages import ToolDefinition, map_texts, objects, valid_text, without_tags

PREFIX: Final = "mcp__"
SERVER_ROOM: Final = 24
TOOL_ROOM: Final = 33
"""Characters: with prefix and separator a name has 64 at most, which is what the vendors take."""
MOST_TOOLS: Final = 128
LONGEST_DESCRIPTION: Final = 2_000
LARGEST_SCHEMA: Final = 32 * 1024
"""Bytes of the JSON of one tool's schema."""
LONGEST_ERROR: Final = 1_500
_HASH: Final = 8
Offer = tuple[str, ToolDefinition]
"""A tool's name at its server, and its definition for the model."""


def server_label(name: str) -> str:
    """The part of its tools' names that identifies the server; it contains no `__`, and does not end with `_`."""
    return _fitting(name, re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_-]", "_", name)).strip("_"), SERVER_ROOM)


def tool_name(server: str, tool: str) -> str:
    """The name of a tool for the model, unique for each tool of each server."""
    return f"{PREFIX}{server}__{_fitting(tool, re.sub(r'[^A-Za-z0-9_-]', '_', tool), TOOL_ROOM)}"


def _fitting(name: str, plain: str, room: int) -> str:
    if plain == name and len(plain) <= room:
        return plain
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_HASH]
    return f"{plain[: room - _HASH - 1]}-{digest}"


def offers(server: str, listed: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Offer], list[str]]:
    """The tools that a server listed, by their names for the model, and the tools left out, with the reasons."""
    by_name: dict[str, Offer] = {}
    left_out: list[str] = []
    for number, tool in enumerate(listed):
        if number == MOST_TOOLS:
            left_out.append(f"all but the first {MOST_TOOLS} tools")
            break
        original = str(tool.get("name") or "")
        name = tool_name(server, original)
        schema = _schema(tool.get("inputSchema"))
        if not original or name in by_name:
            left_out.append(f"a second tool {name}" if original else "a tool without a name")
        elif schema is None:
            left_out.append(f"{name}, whose schema is larger than {LARGEST_SCHEMA} bytes, or is not JSON")
        else:
            text = as_shown(str(tool.get("description") or tool.get("title") or ""), LONGEST_DESCRIPTION)
            description = f"[of the MCP server {server}] {text}".strip()
            by_name[name] = original, ToolDefinition(name, description, schema)
    return by_name, left_out


def _schema(schema: Any) -> dict[str, Any] | None:
    """The schema with its texts escaped; None for one that is too large."""
    try:
        if not isinstance(schema, Mapping) or len(json.dumps(schema)) > LARGEST_SCHEMA:
            return None
        escaped = map_texts(schema, as_shown)
    except (TypeError, ValueError, RecursionError):
        return None
    return escaped if isinstance(escaped, dict) else None


def as_shown(text: str, most: int = LARGEST_SCHEMA) -> str:
    """`text` as a model and a terminal may see it: bounded, without control characters and the harness's own tags."""
    text = text if len(text) <= most else text[:most] + " ..."
    return without_tags(printable(valid_text(text)))


def content_of(result: Mapping[str, Any]) -> Any:
    """The content of a result for the model: structured content, else texts; of other blocks only the kind."""
    structured = result.get("structuredContent")
    if isinstance(structured, Mapping):
        return dict(structured)
    blocks = [_block(block) for block in objects(result.get("content"))]
    texts = [block for block in blocks if isinstance(block, str)]
    if len(texts) == len(blocks) == 1:
        return texts[0]
    return blocks


def failure_of(result: Mapping[str, Any]) -> str:
    """The error of a failed tool's result, for the model."""
    texts = [block for block in map(_block, objects(result.get("content"))) if isinstance(block, str)]
    return ("\n".join(texts) or "the tool failed, and its server does not say why")[:LONGEST_ERROR]


def _block(block: Mapping[str, Any]) -> Any:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "resource" and isinstance(block.get("resource"), Mapping) and "text" in block["resource"]:
        return {"uri": str(block["resource"].get("uri")), "text": str(block["resource"]["text"])}
    if kind == "resource_link":
        return {"type": kind, "uri": str(block.get("uri")), "name": str(block.get("name"))}
    data = block.get("data") or (block.get("resource") or {}).get("blob") or ""
    return {"type": str(kind), "left_out": f"{len(str(data))} characters of data: the harness passes on texts only"}
