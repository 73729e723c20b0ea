"""The plugin host for node and bun: what is said of a connector that cannot be loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.drivers.process import ConnectorNotLoadedError, DriverProcess
from signet_conformance.targets.face import find_face
from signet_conformance.targets.kinds import HOSTS

BROKEN = {
    "syntax": "export const one = 1;\nfunction two() {\n  const three = ;\n}\n",
    "thrown": "export const one = 1;\nthrow new Error('no acme');\n",
    "package": "import acme from 'acme-that-is-nowhere';\nexport default acme;\n",
}


@pytest.mark.parametrize(
    ("kind", "imported", "said"),
    [
        ("syntax", False, ("Unexpected", "syntax.mjs:3")),
        ("syntax", True, ("Unexpected", "syntax.mjs:3")),
        ("thrown", False, ("Error: no acme, at ", "thrown.mjs:2")),
        ("package", False, ("Cannot find package 'acme-that-is-nowhere'", "package.mjs")),
    ],
)
def test_what_cannot_be_loaded_is_told_with_its_place(
    runtime: str, tmp_path: Path, kind: str, imported: bool, said: tuple[str, ...]
) -> None:
    """The error and the line of the author's own file, on one line, with nothing of the runtime's inside."""
    module = tmp_path / f"{kind}.mjs"
    module.write_text(BROKEN[kind])
    if imported:
        (tmp_path / "index.mjs").write_text(f"import './{kind}.mjs';\n")
        module = tmp_path / "index.mjs"
    target = targets.load("openclaw")
    command = (runtime, str(HOSTS / "node_host.mjs"), str(find_face(target).path), str(module), "{}")
    driven = DriverProcess(replace(target, command=command), {}, str(tmp_path), 60.0)
    try:
        with pytest.raises(ConnectorNotLoadedError) as raised:
            driven.hello()
    finally:
        driven.close()
    message = raised.value.message
    assert f"the connector {module} cannot be loaded: " in message
    for piece in said:
        assert piece in message
    for piece in ("\n", "\\n", "node:internal", "modules/esm"):
        assert piece not in message
    assert raised.value.remedy is not None
    assert "fix" in raised.value.remedy
