"""Facts about a contract version as an OpenAPI document."""

from __future__ import annotations

import pytest

from signet_conformance.contract import contract_versions, version_document
from signet_conformance.contract.openapi import openapi


@pytest.mark.parametrize("version", contract_versions())
def test_it_is_openapi_and_holds_every_operation(version: str) -> None:
    """A validator has nothing to say; an operation is described, or named as one that cannot be."""
    # Imported here: it takes a quarter of a second, which every worker would spend that collects this file.
    from openapi_spec_validator import OpenAPIV31SpecValidator

    made = openapi(version)
    assert [error.message for error in OpenAPIV31SpecValidator(dict(made)).iter_errors()] == []
    described = {operation["operationId"] for path in made["paths"].values() for operation in path.values()}
    left = {line.partition(":")[0] for line in made["x-not-described"]}
    assert described | left == set(version_document(version)["operations"])
    assert not described & left


def test_what_is_answered_is_told_by_status() -> None:
    """The schema of a body stands at its status, as in the frozen schema of the answer."""
    start = openapi("0.145")["paths"]["/api/hooks/session-start"]["post"]
    assert set(start["responses"]) == {"200", "4XX", "5XX"}
    schema = start["responses"]["200"]["content"]["application/json"]["schema"]
    assert {"$ref": "#/components/schemas/session-start.response.stub"} in schema["anyOf"]
