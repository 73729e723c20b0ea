"""Each kind of gitleaks' rules is redacted, and what is too short to be one is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from signet_recording_proxy.redaction import vendor_kinds
from signet_recording_proxy.redaction.redactor import LONG_LINE, Redactor

DATA: dict[str, Any] = json.loads(vendor_kinds._DATA.read_bytes())
KINDS = {kind["id"]: kind for kind in DATA["kinds"]}
VENDOR = {
    **{kind.id: kind.stems[0] for kind in vendor_kinds.kinds()},
    "snyk-api-token": "snyk_token",
    "sonar-api-token": "sonar_login",
}


def written(kind: dict[str, Any], secret: str) -> list[str]:
    """Ways to write a secret of a kind: by its vendor's name, or alone."""
    if kind["sort"] == "shaped":
        return [f"use {secret} there", f"x={secret}"]
    name = VENDOR[kind["id"]]
    return [f"{name} = {secret}", f'{name.upper()}_X: "{secret}"', f"'{name}_x' => '{secret}'", f"{name}={secret};"]


def redacted(text: str) -> str:
    """What is left of a text, alone and far inside a longer one."""
    filler = "The author rounds half to even.\n\n" * 600
    assert len(filler) > LONG_LINE
    line = {"kind": "exchange", "request": {"method": "GET", "path": "/", "query": [], "headers": [], "body": None}}
    answer = {"status": 200, "headers": [], "body": {"json": {"a": f"{filler}{text}\n\n{filler}"}}}
    return str(Redactor({}).document(text)) + Redactor({}).exchange({**line, "response": answer}).decode()


def test_no_secret_of_any_kind_is_recorded() -> None:
    """Its example, in each of some ways to write it."""
    recorded = []
    for name, kind in KINDS.items():
        secret = "".join(kind["example"])
        recorded += [(name, way) for way in written(kind, secret) if secret in redacted(way)]
    assert recorded == []


def test_what_is_too_short_stays() -> None:
    """The beginning of an example is none."""
    names = [name for name in KINDS if name in VENDOR and name != "snyk-api-token"]
    texts = [f"{VENDOR[name]} = {KINDS[name]['counterexample']}" for name in names]
    assert texts
    assert [text for text in texts if Redactor({}).document(text) != text] == []


def test_a_member_of_such_a_name_is_not_recorded() -> None:
    """In JSON the name stands apart from the value."""
    secret = "".join(KINDS["datadog-access-token"]["example"])
    assert Redactor({}).document({"datadog": secret, "datadogSite": "datadoghq.eu"}) == {
        "datadog": "<redacted:1>", "datadogSite": "datadoghq.eu"
    }  # fmt: skip


def test_whose_facts_they_are_is_said() -> None:
    """Their source, their version, and the licence beside them."""
    assert DATA["source"].endswith("gitleaks/gitleaks")
    assert DATA["version"].startswith("v8.")
    assert "MIT License" in Path(vendor_kinds._DATA).with_name(DATA["licence"]).read_text()
    assert len(KINDS) > 150
    assert all(DATA["left_out"].values())
