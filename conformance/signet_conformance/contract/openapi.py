"""A contract version as an OpenAPI 3.1 document: its operations with the schemas of requests and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from signet_conformance.contract import document, reference_daemon, version_document

_PARAMETER = re.compile(r":([A-Za-z_]+)")
_ERRORS = {400: "4XX", 500: "5XX"}
_JSON = "application/json"
_SCHEMAS = "#/components/schemas/"


def openapi(version: str) -> Mapping[str, Any]:
    """The document. Raises ContractError for an unknown version.

    Operations of any method, or of whole trees of paths, cannot be described in it; `x-not-described` names them.
    """
    frozen = version_document(version)
    index = document("operations.json")["operations"]
    api = _Document()
    for name, files in frozen["operations"].items():
        api.add(name, index[name], files)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Signet daemon, contract {version}",
            "version": reference_daemon(version),
            "description": "What connectors call, by the frozen schemas of signet-conformance.",
        },
        "servers": [{"url": "http://127.0.0.1:3850", "description": "the daemon's default address"}],
        "security": [{}, {"token": []}],
        "paths": api.paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": api.schemas},
        "x-not-described": api.not_described,
    }


class _Document:
    """Paths and schemas as operations are added."""

    def __init__(self) -> None:
        self.paths: dict[str, dict[str, Any]] = {}
        self.schemas: dict[str, Any] = {}
        self.not_described: list[str] = []

    def add(self, name: str, entry: Mapping[str, Any], files: Mapping[str, Any]) -> None:
        """Describe one operation, or note that it cannot be."""
        if "*" in entry["method"] + entry["path"]:
            self.not_described.append(f"{name}: {entry['method']} {entry['path']}")
            return
        path = _PARAMETER.sub(r"{\1}", entry["path"])
        request = self._without_address(document(files["request"]["file"]), f"{name}.request")
        answer = self._without_address(document(files["response"]["file"]), f"{name}.response")
        parameters = [
            {"name": word, "in": "path", "required": True, "schema": {"type": "string"}}
            for word in _PARAMETER.findall(entry["path"])
        ]
        if "query" in entry["request_in"]:
            parameters += _query(request)
        made: dict[str, Any] = {"operationId": name, "summary": entry.get("action", name), "tags": [entry["phase"]]}
        if parameters:
            made["parameters"] = parameters
        if "body" in entry["request_in"] and entry["method"] != "GET":
            self.schemas[f"{name}.request"] = request
            made["requestBody"] = {"content": {_JSON: {"schema": {"$ref": f"{_SCHEMAS}{name}.request"}}}}
        made["responses"] = dict(_responses(answer))
        self.paths.setdefault(path, {})[entry["method"].lower()] = made

    def _without_address(self, schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """A schema without its own `$id`: some tools for OpenAPI do not resolve references against one."""

        def relocate(value: Any) -> Any:
            if isinstance(value, list):
                return [relocate(entry) for entry in value]
            if not isinstance(value, dict):
                return value
            return {
                key: entry.replace("#/$defs/", f"{_SCHEMAS}{name}.")
                if key == "$ref" and isinstance(entry, str)
                else relocate(entry)
                for key, entry in value.items()
                if key not in ("$id", "$schema", "$defs", "$comment")
            }

        for part, definition in schema.get("$defs", {}).items():
            self.schemas[f"{name}.{part}"] = relocate(definition)
        relocated: Mapping[str, Any] = relocate(schema)
        return relocated


def _query(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    required = request.get("required", ())
    for name, schema in request.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in required, "schema": schema}


def _responses(answer: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a response for each status: each branch of an answer's schema describes the bodies of one status."""
    for branch in answer.get("allOf", ()):
        status = _status(branch.get("if", {}).get("properties", {}).get("status", {}))
        body = branch.get("then", {}).get("properties", {}).get("body")
        if status is not None and body is not None:
            yield status, {"description": f"{answer['title']}, {status}", "content": {_JSON: {"schema": body}}}


def _status(condition: Mapping[str, Any]) -> str | None:
    if "const" in condition:
        return str(condition["const"])
    return _ERRORS.get(condition.get("minimum", 0))
