"""Which identities a session may have."""

from __future__ import annotations

import pytest

from signet_reference_harness.errors import IdentityError
from signet_reference_harness.identity import SessionIdentity


def test_key_is_stored_as_the_daemon_normalises_it() -> None:
    """Blanks around a key and one leading `session:` are no part of it."""
    assert SessionIdentity(" session:abc ", "atlas", "/workspace/acme").key == "abc"


def test_key_may_name_the_agent() -> None:
    """A key `agent:<id>:…` goes with that agent."""
    assert SessionIdentity("agent:atlas:main", "atlas", "C:\\work").key == "agent:atlas:main"


@pytest.mark.parametrize(
    ("key", "agent", "project"),
    [
        ("", "atlas", "/w"),
        (" session: ", "atlas", "/w"),
        ("hermes-default", "atlas", "/w"),
        ("MAIN", "atlas", "/w"),
        ("agent:nova:1", "atlas", "/w"),
        ("k", "", "/w"),
        ("k", "reference", "/w"),
        ("k", "atlas", ""),
        ("k", "atlas", "work/acme"),
        ("k\ud800", "atlas", "/w"),
    ],
)
def test_identity_that_breaks_the_contract_is_refused(key: str, agent: str, project: str) -> None:
    """An identity under which no session could conform is an error with a remedy."""
    with pytest.raises(IdentityError) as raised:
        SessionIdentity(key, agent, project)
    assert raised.value.remedy
