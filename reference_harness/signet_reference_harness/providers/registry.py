"""Providers by name: those that come with the harness, those of entry points, and any `module:attribute`."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from signet_reference_harness.errors import ConfigError, HarnessError
from signet_reference_harness.providers import Provider
from signet_reference_harness.providers.kinds import CLASSES, KINDS, OF_API
from signet_reference_harness.providers.settings import ProviderSettings

GROUP: Final = "signet_reference_harness.providers"
"""The entry points that register providers: each a callable that takes ProviderSettings and returns a Provider."""


def provider(settings: ProviderSettings) -> Provider:
    """The provider that `settings` names. Raises ConfigError when nothing has that name, or it cannot be made."""
    name = settings.provider
    if name in KINDS and settings.api is not None:
        return _made(CLASSES[settings.api], name, settings)
    if ":" in name:
        return _made(name, name, settings)
    registered = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    if name in registered:
        return _made(registered[name], name, settings)
    names = sorted({*KINDS, *OF_API, *registered})
    near = get_close_matches(name, names, 1)
    raise ConfigError(
        f"there is no provider {name[:80]!r} ({settings.provider_source})",
        remedy=f"name {near[0]}" if near else f"name one of {', '.join(names)}, or a module:attribute",
    )


def _made(reference: str, name: str, settings: ProviderSettings) -> Provider:
    module, _, attribute = reference.partition(":")
    try:
        factory: Any = import_module(module)
        for step in attribute.split("."):
            factory = getattr(factory, step)
        made: Provider = factory(settings)
    except HarnessError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a stranger's module may raise anything
        told = f"{type(error).__name__}: {error}"
        told = settings.key.hide_in(told) if settings.key is not None else told
        raise ConfigError(
            f"the provider {name!r} cannot be made from {reference}: {told}",
            remedy="give a callable that takes ProviderSettings and returns a Provider",
        ) from None
    missing = [each for each in ("id", "complete", "stream", "available", "aclose") if not hasattr(made, each)]
    if missing:
        raise ConfigError(
            f"the provider {name!r} made by {reference} lacks {', '.join(missing)}",
            remedy="write what signet_reference_harness.providers.Provider names",
        )
    return made
