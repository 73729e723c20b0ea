"""The contract is data: requirements, routes, schemas and frozen versions, read from the `schemas` folder.

A contract version is named by the daemon release that introduced it. The requirements in force for a
trace follow from its daemon's own version: a requirement whose `since` is later is gated.
"""

from __future__ import annotations

from signet_conformance.contract.folder import (
    REFERENCE_DAEMON,
    contract_version_of,
    contract_versions,
    document,
    reference_daemon,
    schemas_folder,
    version_document,
    version_key,
)
from signet_conformance.contract.requirement import (
    MAY,
    MUST,
    SHOULD,
    Check,
    Reading,
    Requirement,
    Scope,
    Side,
    catalogue,
    daemon_requirements,
    entries,
    harness_requirements,
    requirements,
)
from signet_conformance.contract.routes import (
    Route,
    RouteTable,
    contract_set,
    operation_groups,
    operation_table,
    route_table,
    routes_of,
    served_path,
)

__all__ = [
    "MAY",
    "MUST",
    "REFERENCE_DAEMON",
    "SHOULD",
    "Check",
    "Reading",
    "Requirement",
    "Route",
    "RouteTable",
    "Scope",
    "Side",
    "catalogue",
    "contract_set",
    "contract_version_of",
    "contract_versions",
    "daemon_requirements",
    "document",
    "entries",
    "harness_requirements",
    "operation_groups",
    "operation_table",
    "reference_daemon",
    "requirements",
    "route_table",
    "routes_of",
    "schemas_folder",
    "served_path",
    "version_document",
    "version_key",
]
