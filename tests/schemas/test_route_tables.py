"""The route tables: well-formed, free of shadowed rows, and borne out by a real daemon."""

from __future__ import annotations

from typing import Any

import pytest

from signet_conformance.contract.routes import route_table
from signet_conformance.daemon.http.app import ROUTES, Endpoint
from signet_conformance.probing.replay import answers_file
from tests.support.evidence import json_lines

VERSIONS = ("0.58", "0.109", "0.145", "0.205", "0.237")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_satisfies_the_schema(schema: Any, load: Any, version: str) -> None:
    """Every route table is what the schema of route tables describes."""
    schema("routes.schema.json").demand(load(f"routes/{version}.json"), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_route_hides_behind_an_earlier_one(load: Any, version: str) -> None:
    """The first match wins, so a pattern never stands before a literal path that it would swallow."""
    rows = [(r["method"], r["path"].split("/")) for r in load(f"routes/{version}.json")["routes"]]
    for index, (method, parts) in enumerate(rows):
        for earlier_method, earlier in rows[:index]:
            swallowed = len(earlier) == len(parts) and all(
                e == p or e.startswith(":") for e, p in zip(earlier, parts, strict=True)
            )
            assert not (swallowed and earlier_method in (method, "*")), f"{method} {'/'.join(parts)}"


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("POST", "/api/hooks/user-prompt-sumbit", "POST /api/hooks/user-prompt-submit"),
        ("POST", "/api/hooks/session_start", "POST /api/hooks/session-start"),
        ("POST", "/api/memory/recall/", "POST /api/memory/recall"),
        ("PUT", "/api/memory/recall", "POST /api/memory/recall"),
        ("POST", "/api/lantern", None),
        ("POST", "/api/memory/a-memory", None),
        ("GET", "/", "GET /"),
    ],
)
def test_the_route_that_a_misspelt_one_means_is_found(method: str, path: str, meant: str | None) -> None:
    near = route_table().nearest(method, path)
    assert (near and f"{near.method} {near.path}") == meant


@pytest.mark.parametrize("version", VERSIONS)
def test_operations_of_a_table_are_those_of_the_version(load: Any, version: str) -> None:
    """A table names exactly the operations that its frozen version describes."""
    routes = load(f"routes/{version}.json")["routes"]
    assert {r["operation"] for r in routes} - {None} == set(load(f"versions/{version}.json")["operations"])


def test_index_and_table_agree_on_method_and_path(load: Any) -> None:
    """Where the index gives an operation one path, the table serves it there, aliases included."""
    routes = [r for v in ("0.145", "0.205") for r in load(f"routes/{v}.json")["routes"]]
    served = {(r["method"], r["path"], r["operation"]) for r in routes}
    for name, operation in load("operations.json")["operations"].items():
        for path in (operation["path"], *operation.get("aliases", ())):
            if path.endswith("/**"):
                assert any(p.startswith(path[:-2]) for _, p, o in served if o == name), name
            else:
                assert (operation["method"], path, name) in served, name


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_of_the_embedded_daemon_stands_in_a_table(route: Endpoint) -> None:
    """It serves what a release of the daemon serves, and nothing else."""
    path = "/".join("x" if part.startswith(":") else part for part in route.path.split("/"))
    tables = [route_table(version) for version in VERSIONS]
    missing = f"{route.method} {route.path}: add it to schemas/routes/VERSION.json of each version that serves it"
    assert any(table.find(route.method, path) for table in tables), missing


@pytest.mark.parametrize(("version", "release"), [("0.58", "0.58.1"), ("0.109", "0.109.15")])
def test_an_older_daemon_served_the_routes_of_its_table(version: str, release: str) -> None:
    """Each probe of a real older daemon found its route if and only if that version's table has it."""
    table = route_table(version)
    differing = [
        probe["id"]
        for probe in json_lines(answers_file(release))
        if (probe["status"] == 404 and probe["response_body"] == "404 Not Found")
        == bool(table.find(probe["request"]["method"], probe["request"]["path"].partition("?")[0]))
    ]
    assert differing == []


def test_a_real_daemon_serves_exactly_the_routes_of_the_table(find_operation: Any) -> None:
    """Each probe of a real 0.145.7 found its route if and only if the table has it."""
    differing = []
    for probe in json_lines(answers_file("0.145.7")):
        served = not (probe["status"] == 404 and probe["response_body"] == "404 Not Found")
        try:
            find_operation(probe["request"]["method"], probe["request"]["path"].partition("?")[0])
        except KeyError:
            served = not served
        if not served:
            differing.append(probe["id"])
    assert differing == []
