"""The table of kinds: what each says of itself is something that profiles, faces and hosts have."""

from __future__ import annotations

import pytest

from signet_conformance import targets
from signet_conformance.targets.face_document import FaceDocument
from signet_conformance.targets.kinds import DEFAULT, HOSTS, KINDS, ConnectorKind
from signet_conformance.targets.profile import Profile


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_a_kind_reads_is_there(kind: ConnectorKind) -> None:
    """Its settings are members of a profile, and what it plays is a member of a face."""
    assert kind.reads | set(kind.instead) <= set(Profile.model_fields)
    assert kind.plays is None or kind.plays in FaceDocument.model_fields
    assert kind.has_face is ("face" in kind.reads)


@pytest.mark.parametrize("name", targets.names())
def test_a_shipped_target_is_of_a_known_kind(name: str) -> None:
    """Every profile of the kit names a kind of the table."""
    assert targets.load(name).kind is KINDS[targets.load(name).driver]


def test_a_target_without_a_kind_runs_a_command() -> None:
    """The kind of settings that name none is the one whose author provides the program."""
    assert DEFAULT.own_program
    assert [kind.name for kind in KINDS.values() if kind.own_program] == [DEFAULT.name]


def test_hosts_stand_where_they_are_launched_from() -> None:
    """The folder of the hosts holds the programs of every kind that plays a harness."""
    assert {"node_host.mjs", "install.mjs", "command_hooks.py", "python_plugin.py", "mcp.py", "http_adapter.py"} <= {
        path.name for path in HOSTS.iterdir()
    }
