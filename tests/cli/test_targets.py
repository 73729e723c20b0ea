"""Facts about `signet-conformance targets`."""

from __future__ import annotations

import json

from signet_conformance import targets

from .conftest import Invoke


def test_every_target_is_listed(invoke: Invoke) -> None:
    """Each known target has a line with what it declares."""
    shown = invoke("targets").stdout
    assert [line.split()[0] for line in shown.splitlines() if not line.startswith(" ")] == list(targets.names())
    assert "harness reference" in shown


def test_json_tells_what_each_declares(invoke: Invoke) -> None:
    """--json is an object of target name to its declaration."""
    document = json.loads(invoke("targets", "--json").stdout)
    assert document == {name: targets.load(name).declared.to_json() for name in targets.names()}
