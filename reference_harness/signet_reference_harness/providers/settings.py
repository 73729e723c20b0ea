"""The provider of a session and its settings: from agent.yaml, the environment and flags, the last of which win."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import msgspec

from signet_reference_harness.config import Secret, bare_token, url_problem
from signet_reference_harness.errors import ConfigError, load_plugin
from signet_reference_harness.providers import APIS, LONGEST_ANSWER, Api, CompletionOptions, Provider, agent_file

DEFAULT: Final = "anthropic"


class ProviderKind(msgspec.Struct, frozen=True):
    """One provider. Without `base_url` the address must be configured. `needs_key` counts at that address only."""

    api: Api | None = None
    base_url: str | None = None
    needs_key: bool = False
    key_variable: str | None = None
    base_url_variable: str | None = None


_KINDS = Path(__file__).with_name("kinds.json").read_bytes()
KINDS: Final = msgspec.json.decode(_KINDS, type=dict[str, ProviderKind])
OF_API: Final[Mapping[str, str]] = {str(kind.api): name for name, kind in reversed(list(KINDS.items()))}
"""By API: the provider that is used if only the API is named."""
CLASSES: Final[Mapping[Api, str]] = {
    "anthropic-messages": "signet_reference_harness.providers.anthropic:AnthropicProvider",
    "openai-completions": "signet_reference_harness.providers.openai:OpenAIChatProvider",
    "openai-responses": "signet_reference_harness.providers.openai:OpenAIResponsesProvider",
    "ollama-chat": "signet_reference_harness.providers.ollama:OllamaProvider",
}

DEFAULT_TIMEOUT_S: Final = 300.0
BARE: Final = "give the bare key, without 'Bearer'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOptions:
    """The options of a command line that describe the provider; None for those that are absent."""

    provider: str | None = None
    api: str | None = None
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = None

    @property
    def flags(self) -> dict[str, str | None]:
        """The options by their names in FLAGS."""
        return {name: getattr(self, name) for name in FLAGS}


VARIABLES: Final = {each.name: f"SIGNET_HARNESS_{each.name.upper()}" for each in fields(ProviderOptions)}
FLAGS: Final = {name: f"--{name.replace('_', '-')}" for name in VARIABLES}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """The settings of a provider.

    `api` and `base_url` are None for a provider that does not come with the harness and has neither.
    `at_vendor` says that the address is the vendor's own. `key_source` names the place of the key, and
    `provider_source` that of the provider's name, if there is one.
    `timeout_s` is how long the provider may take to begin, and to go on, in seconds.
    """

    provider: str
    provider_source: str | None = None
    api: Api | None = None
    model: str | None = None
    base_url: str | None = None
    at_vendor: bool = False
    key: Secret | None = None
    key_source: str | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    options: CompletionOptions = field(default_factory=CompletionOptions)
    """The options of each completion."""
    prices: Mapping[str, agent_file.PricePart] = field(default_factory=dict)
    """The prices of models, by their names."""
    retry: agent_file.RetryPolicy = field(default_factory=agent_file.RetryPolicy)


@dataclass(frozen=True, slots=True)
class _Value:
    text: str
    source: str


_Layer = dict[str, _Value]


def workspace_of(environ: Mapping[str, str]) -> Path:
    """The agent's workspace: SIGNET_PATH, else ~/.agents."""
    named = environ.get("SIGNET_PATH", "").strip()
    return Path(named).expanduser() if named else Path("~/.agents").expanduser()


def load(flags: Mapping[str, str | None], environ: Mapping[str, str], workspace: Path | None) -> ProviderSettings:
    """The settings that `flags` (by the names in FLAGS), else `environ`, else the workspace's agent.yaml name.

    A weaker source does not count if it names another provider than the chosen one: its model, address and key belong
    to that provider. Raises ConfigError if a value cannot be used, or a needed one is missing.
    """
    file = agent_file.read_agent_file(workspace) if workspace is not None else None
    runtime = file.runtime if file is not None else agent_file.RuntimePart()
    by_flag = {name: _Value(text, FLAGS[name]) for name, text in flags.items() if text is not None}
    by_variable = _variables(environ, VARIABLES)
    by_file = _file_layer(file, environ) if file is not None else {}
    provider, provider_source = _provider(by_flag, by_variable, by_file)
    is_built_in, kind = provider in KINDS, KINDS.get(provider, ProviderKind())
    file_counts = _same_vendor(provider, _own_provider(by_file) or DEFAULT)
    layers = ChainMap(
        by_flag,
        by_variable if _same_vendor(provider, _own_provider(by_variable)) else {},
        _variables(environ, {"api_key": kind.key_variable, "base_url": kind.base_url_variable}),
        by_file if file_counts else {},
    )
    api = _api(layers, provider, kind)
    base_url = _base_url(layers, api) or kind.base_url
    if is_built_in and base_url is None:
        raise _missing("base_url", f"the provider {provider!r} has no address", file, "http://127.0.0.1:8000/v1")
    model, key = layers.get("model"), layers.get("api_key")
    if is_built_in and model is None:
        raise _missing("model", f"no model is named for the provider {provider!r}", file, "NAME")
    at_vendor = is_built_in and base_url == kind.base_url
    own_variable = runtime.api_key_env if file_counts else None
    if key is None and (own_variable or (kind.needs_key and at_vendor)):
        variable = own_variable or kind.key_variable
        raise ConfigError(
            f"the provider {provider!r} needs a key, and {variable} is not set",
            remedy=f"set {variable}, or name another provider by --provider",
        )
    return ProviderSettings(
        provider=provider,
        provider_source=provider_source,
        api=api,
        model=model.text if model else None,
        base_url=base_url,
        at_vendor=at_vendor,
        key=Secret(bare_token(key.text.strip(), f"the key ({key.source})", remedy=BARE)) if key else None,
        key_source=key.source if key else None,
        timeout_s=runtime.timeout_s or DEFAULT_TIMEOUT_S,
        prices=runtime.prices,
        options=CompletionOptions(longest_answer=runtime.longest_answer or LONGEST_ANSWER),
        retry=runtime.retry,
    )


def _variables(environ: Mapping[str, str], names: Mapping[str, str | None]) -> _Layer:
    """Read the variables; a blank one counts as absent."""
    values = ((name, variable, environ.get(variable, "").strip()) for name, variable in names.items() if variable)
    return {name: _Value(text, variable) for name, variable, text in values if text}


def _file_layer(file: agent_file.AgentFile, environ: Mapping[str, str]) -> _Layer:
    part: dict[str, Any] = file.runtime.model_dump(include={"provider", "api", "model", "base_url"}, exclude_none=True)
    layer = {name: _Value(text, f"runtime.{name} in {file.path}") for name, text in part.items()}
    variable = file.runtime.api_key_env
    if file.api_key is not None:
        layer["api_key"] = _Value(file.api_key, f"runtime.api_key in {file.path}")
    elif variable is not None and environ.get(variable, "").strip():
        layer["api_key"] = _Value(environ[variable].strip(), variable)
    return layer


def _own_provider(layer: _Layer) -> str | None:
    """The provider that a layer by itself names, by name or by API."""
    named = layer.get("provider") or layer.get("api")
    return None if named is None else OF_API.get(named.text, named.text if "provider" in layer else None)


def _provider(*layers: _Layer) -> tuple[str, str | None]:
    """The provider's name, and the place that named it; None for the default."""
    for layer in layers:
        own = _own_provider(layer)
        if own is not None:
            return own, (layer.get("provider") or layer["api"]).source
    return DEFAULT, None


def _same_vendor(provider: str, other: str | None) -> bool:
    """Whether the settings for one of two providers apply to the other: OpenAI has one for each of its APIs."""
    if other is None or other == provider:
        return True
    kinds = KINDS.get(provider), KINDS.get(other)
    return kinds[0] is not None and kinds[1] is not None and None is not kinds[0].base_url == kinds[1].base_url


def _api(layers: ChainMap[str, _Value], provider: str, kind: ProviderKind) -> Api | None:
    """The API: the given one, else the provider's own. A vendor's own address offers no other vendor's API."""
    named = layers.get("api")
    if named is None:
        return kind.api
    api = next((each for each in APIS if each == named.text), None)
    if api is None:
        raise ConfigError(
            f"the API {named.text[:80]!r} ({named.source}) is unknown", remedy=f"name one of {', '.join(APIS)}"
        )
    spoken = {each.api for each in KINDS.values() if each.base_url == kind.base_url}
    if provider in KINDS and api not in spoken and "base_url" not in layers:
        raise ConfigError(
            f"the provider {provider!r} does not speak {api} ({named.source})",
            remedy=f"name --provider {OF_API[api]}, or by --base-url a server that speaks it",
        )
    return api


def _base_url(layers: ChainMap[str, _Value], api: Api | None) -> str | None:
    named = layers.get("base_url")
    if named is None:
        return None
    url = named.text.rstrip("/")
    if api == "ollama-chat" and "://" not in url:
        # OLLAMA_HOST is a host, or host and port.
        url = f"http://{url}" if ":" in url else f"http://{url}:11434"
    problem = "holds a query or a fragment" if "?" in url or "#" in url else url_problem(url)
    if problem:
        raise ConfigError(
            f"the provider's address ({named.source}) {problem}",
            remedy="write it such as http://127.0.0.1:8000/v1, and give a key by --api-key",
        )
    return url


def _missing(name: str, problem: str, file: agent_file.AgentFile | None, example: str) -> ConfigError:
    where = f", or runtime.{name} in {file.path}" if file is not None else ""
    return ConfigError(problem, remedy=f"give {FLAGS[name]} {example}, or set {VARIABLES[name]}{where}")


GROUP: Final = "signet_reference_harness.providers"
"""The entry points that register providers: each a callable that takes ProviderSettings and returns a Provider."""


def make_provider(settings: ProviderSettings) -> Provider:
    """Make the provider that `settings` name. Raises ConfigError for an unknown name, or if it cannot be made."""
    name = settings.provider
    if name in KINDS and settings.api is not None:
        return _make(CLASSES[settings.api], name, settings)
    if ":" in name:
        return _make(name, name, settings)
    registered = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    if name in registered:
        return _make(registered[name], name, settings)
    names = sorted({*KINDS, *OF_API, *registered})
    near = get_close_matches(name, names, 1)
    raise ConfigError(
        f"there is no provider {name[:80]!r} ({settings.provider_source})",
        remedy=f"name {near[0]}" if near else f"name one of {', '.join(names)}, or a module:attribute",
    )


def _make(reference: str, name: str, settings: ProviderSettings) -> Provider:
    made: Provider = load_plugin(
        reference,
        f"the provider {name!r}",
        lambda value: value(settings),
        ("id", "complete", "stream", "available", "aclose"),
        remedy="name a callable that takes ProviderSettings and returns what providers.Provider names",
        scrub=str if settings.key is None else settings.key.hide_in,
    )
    return made
