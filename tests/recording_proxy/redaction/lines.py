"""Exchanges as the recorder hands them over to be redacted, and secrets of known shapes."""

from __future__ import annotations

import json
from typing import Any

from signet_recording_proxy.redaction.redactor import Redactor

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq8\n-----END RSA PRIVATE KEY-----"


SHAPED = [
    "sig_sk_0123456789abcdef",
    JWT,
    "sk-ant-api03-AbCdEf0123456789-xyz",
    "sk-proj-abcdefghij0123456789",
    "ghp_0123456789abcdefABCDEF0123456789abcd",
    "github_pat_11ABCDEFG0123456789_abcdefghij",
    "xoxb-123456789012-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-0123456789abcdefghijklmnopqrstu",
    PEM,
]


def line(
    body: Any = None,
    *,
    text: str | None = None,
    method: str = "POST",
    path: str = "/api/hooks/x",
    query: list[tuple[str, str]] | None = None,
    headers: list[tuple[str, str]] | None = None,
    response: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """An exchange as the recorder hands it over."""
    kept = {"text": text, "media_type": "text/plain"} if text is not None else None if body is None else {"json": body}
    request = {"method": method, "path": path, "query": query or [], "headers": headers or [], "body": kept}
    return {"kind": "exchange", "seq": 1, "conn": 1, "t0": 0.0, "t1": 1.0, "request": request, "response": response}


def redacted(*arguments: Any, canaries: dict[str, str] | None = None, **members: Any) -> dict[str, Any]:
    """The request of that exchange as it reaches the disk."""
    request: dict[str, Any] = json.loads(Redactor(canaries or {}).exchange(line(*arguments, **members)))["request"]
    return request


def body_json(*arguments: Any, **members: Any) -> Any:
    """The JSON body of that exchange as it reaches the disk."""
    return redacted(*arguments, **members)["body"]["json"]
