"""The routes in the daemon's order, from `routes.json`: method, path, handler or answer, and the permission needed."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from signet_conformance.daemon.handlers import canned
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest

Handler: TypeAlias = "Callable[[Daemon, DaemonRequest], DaemonAnswer | Awaitable[DaemonAnswer]]"


@dataclass(frozen=True)
class RequiredPermission:
    """The permission that a caller needs, and the name of the `rate` limit on its calls.

    With `loses_answer` the caller gets a 500 in place of the refusal, as from the real daemon.
    """

    permission: str
    rate: str | None = None
    loses_answer: bool = False


@dataclass(frozen=True)
class Endpoint:
    """One route. `failure` is the error in the JSON answer to a crash; without it, that answer is plain text.

    `right` applies to every method on the path, since the real daemon checks it before it looks for a route. `only`
    names the trait of `Behaviour` of the versions that have the route (None: all).
    """

    method: str
    path: str
    handler: Handler
    failure: str | None = None
    only: str | None = None
    right: RequiredPermission | None = None


@dataclass(frozen=True)
class GuardedArea:
    """Paths that need a permission for these `methods` (empty: all), whether or not a route exists."""

    path: str
    right: RequiredPermission
    methods: Sequence[str] = ()
    only: str | None = None


def _pattern_of(path: str) -> re.Pattern[str]:
    """The expression for a path: ``:name`` matches one segment, ``*`` at the end anything."""
    text = re.sub(r":(\w+)", r"(?P<\1>[^/]+)", path.replace(".", r"\."))
    return re.compile(text.removesuffix("/*") + "(?:/.*)?" if text.endswith("/*") else text)


_TABLE: Final = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_RIGHTS: Final = {name: RequiredPermission(**right) for name, right in _TABLE["rights"].items()}


def _endpoint(row: Mapping[str, Any]) -> Endpoint:
    right = None if "right" not in row else _RIGHTS[row["right"]]
    return Endpoint(row["method"], row["path"], _handler(row), row.get("failure"), row.get("only"), right)


def _handler(row: Mapping[str, Any]) -> Handler:
    """The function below `handlers` that a row names, else a handler that gives the answer in the row."""
    if "handler" not in row:
        answer = {name: row[name] for name in ("body", "status", "headers", "text") if name in row}
        return canned.CannedHandler(DaemonAnswer(**answer), row.get("scoped", False))
    module, _, function = row["handler"].rpartition(".")
    handler: Handler = getattr(import_module(f"signet_conformance.daemon.handlers.{module}"), function)
    return handler


#: Every route; the first that matches answers. memory/:id hides a GET memory/search, as in the real daemon. The answers
#: in the table are those of a daemon without marketplace servers, standalone entities and messages between agents.
ROUTES: Final = tuple(_endpoint(row) for row in _TABLE["routes"])

#: The rights that hold for more than one route, checked after those of the routes.
AREAS: Final = tuple(GuardedArea(**{**row, "right": _RIGHTS[row["right"]]}) for row in _TABLE["areas"])

#: The expression of each path. Compiled with this module, which the fork server imports once for all its daemons.
PATTERNS: Final = {path: _pattern_of(path) for path in {each.path for each in ROUTES} | {each.path for each in AREAS}}
