"""The harness's settings, read once from the environment variables that Signet connectors share."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

from signet_reference_harness.errors import ConfigError

HARNESS_NAME: Final = "reference"
"""The harness's own name, unless its user gives another."""
RuntimePath = Literal["plugin", "legacy"]
"""How the harness reaches the daemon: from inside the program that the agent runs in, or by hooks outside it."""
DEFAULT_ORIGIN: Final = "http://127.0.0.1:3850"
DEFAULT_AGENT: Final = "default"
DEFAULT_TIMEOUTS_S: Final[Mapping[str, float]] = {
    # A user waits for these, so they stay below one second.
    "health": 0.9,
    "session-start": 0.9,
    "user-prompt-submit": 0.9,
    "marketplace-servers": 0.9,
}
OTHER_TIMEOUT_S: Final = 5.0
LONGEST_TIMEOUT_MS: Final = 120_000
TIMEOUT_VARIABLES: Final = {
    "health": "SIGNET_HEALTH_TIMEOUT",
    "session-start": "SIGNET_SESSION_START_TIMEOUT",
    "user-prompt-submit": "SIGNET_PROMPT_SUBMIT_TIMEOUT",
}
ON: Final = frozenset({"1", "true", "yes", "on"})
OFF: Final = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class HarnessConfig:
    """The daemon's address, the harness's identity, and the bounds of their exchanges.

    `harness` and `runtime_path` are sent with every hook; ConfigError refuses those that the contract forbids. `origin`
    is scheme, host and port. `bypassed` means that no request at all is made. `timeouts_s` holds deadlines of whole
    exchanges in seconds by operation; an operation it lacks has five seconds.
    """

    origin: str = DEFAULT_ORIGIN
    token: str | None = field(default=None, repr=False)
    agent: str = DEFAULT_AGENT
    bypassed: bool = False
    timeouts_s: Mapping[str, float] = field(default_factory=lambda: DEFAULT_TIMEOUTS_S)
    provider_key: str | None = field(default=None, repr=False)
    """The model provider's key, which is never sent to the daemon."""
    harness: str = HARNESS_NAME
    runtime_path: RuntimePath = "plugin"

    def __post_init__(self) -> None:
        # The name is also sent in a header.
        if not self.harness or not all("!" <= character <= "~" for character in self.harness):
            raise ConfigError(
                f"the harness's name is {self.harness!r}", remedy="give it a name without blanks, such as acme-shell"
            )
        if self.runtime_path not in get_args(RuntimePath):
            raise ConfigError(
                f"the runtime path is {self.runtime_path!r}", remedy=f"use one of {', '.join(get_args(RuntimePath))}"
            )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> HarnessConfig:
        """The settings in `environ`; a blank variable counts as absent.

        SIGNET_DAEMON_URL (else SIGNET_HOST and SIGNET_PORT), SIGNET_API_KEY (else SIGNET_TOKEN),
        SIGNET_AGENT_ID, SIGNET_BYPASS, SIGNET_NO_HOOKS, SIGNET_ENABLED, and in milliseconds
        SIGNET_SESSION_START_TIMEOUT, SIGNET_PROMPT_SUBMIT_TIMEOUT and SIGNET_HEALTH_TIMEOUT. Raises ConfigError.
        """
        given = {name: value.strip() for name, value in environ.items() if value.strip()}
        timeouts = dict(DEFAULT_TIMEOUTS_S)
        for operation, variable in TIMEOUT_VARIABLES.items():
            if variable in given:
                timeouts[operation] = _milliseconds(variable, given[variable]) / 1000
        return cls(
            origin=_origin(given),
            token=_token(given),
            agent=given.get("SIGNET_AGENT_ID", DEFAULT_AGENT),
            bypassed=_bypassed(given),
            timeouts_s=timeouts,
        )

    @property
    def credentials(self) -> tuple[str, ...]:
        """The credentials that outgoing text must not contain."""
        return tuple(each for each in (self.token, self.provider_key) if each)

    def timeout_s(self, operation: str) -> float:
        """The deadline of a whole exchange of `operation`, in seconds."""
        return self.timeouts_s.get(operation, OTHER_TIMEOUT_S)


def _bypassed(given: Mapping[str, str]) -> bool:
    is_bypassed = any(given.get(name, "").lower() in ON for name in ("SIGNET_BYPASS", "SIGNET_NO_HOOKS"))
    return is_bypassed or given.get("SIGNET_ENABLED", "").lower() in OFF


def _origin(given: Mapping[str, str]) -> str:
    url = given.get("SIGNET_DAEMON_URL")
    if url is None:
        if "SIGNET_HOST" not in given and "SIGNET_PORT" not in given:
            return DEFAULT_ORIGIN
        url = f"http://{given.get('SIGNET_HOST', '127.0.0.1')}:{given.get('SIGNET_PORT', '3850')}"
    return origin_of(url, "the daemon's address", remedy=f"set SIGNET_DAEMON_URL to an origin such as {DEFAULT_ORIGIN}")


def origin_of(url: str, what: str, *, remedy: str) -> str:
    """Scheme, host and port of `url`. Raises ConfigError, whose message calls it `what`."""
    problem = url_problem(url)
    if problem:
        raise ConfigError(f"{what} {problem}", remedy=remedy)
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" if parts.port is None else f"{parts.scheme}://{host}:{parts.port}"


def url_problem(url: str) -> str:
    """Describe what makes an http or https URL unusable; empty for a good one. Parts that may be a key are left out."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        parts, valid = urlsplit(""), False
    if "@" in (parts.netloc if valid else url):
        # They would be sent as Basic credentials, which the contract forbids.
        return "holds credentials"
    shown = "" if "?" in url or "#" in url else f": {url[:80]!r}"
    return "" if valid else f"is not an http or https URL{shown}"


def certificates_for(url: str) -> ssl.SSLContext | bool:
    """Return httpx's `verify`. Loading certificates takes longer than many turns, and http needs none."""
    return True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _token(given: Mapping[str, str]) -> str | None:
    token = given.get("SIGNET_API_KEY") or given.get("SIGNET_TOKEN")
    remedy = "set SIGNET_TOKEN to the bare token, without 'Bearer'"
    return None if token is None else bare_token(token, "the token", remedy=remedy)


def bare_token(token: str, what: str, *, remedy: str) -> str:
    """`token`, if a header can carry it. Raises ConfigError, whose message calls it `what` and does not show it."""
    if not token or not all("!" <= character <= "~" for character in token):
        raise ConfigError(f"{what} is empty, or holds blanks or characters that no header can carry", remedy=remedy)
    return token


def _milliseconds(variable: str, value: str) -> float:
    try:
        milliseconds = float(value)
    except ValueError:
        milliseconds = 0.0
    if not 0 < milliseconds <= LONGEST_TIMEOUT_MS:
        raise ConfigError(
            f"{variable} is {value!r}, not a number of milliseconds up to {LONGEST_TIMEOUT_MS}",
            remedy=f"set {variable}=900, or unset it",
        )
    return milliseconds


HIDDEN: Final = "[key]"
SHORTEST: Final = 6
"""Characters. A shorter text is rarely a key: local servers get `x` or `none` instead of one."""
_CREDENTIAL: Final = r"(?i:(?:bearer|basic|api[-_ ]?key(?: provided)?|token|authorization|secret|password)[\s\"':=]+)"
"""Words that a credential follows, in a header, a command, JSON or a vendor's message."""


class Secret:
    """A provider's key. :meth:`reveal` returns its text; no repr, format or pickle holds it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The key itself, for the header of a request and nothing else."""
        return self._text

    @property
    def is_secret(self) -> bool:
        """Whether it is long enough to be a key; common words contain shorter texts, too."""
        return len(self._text) >= SHORTEST

    def hide_in(self, text: str) -> str:
        """`text` with `[key]` in place of the key; a short key is replaced only after a credential's words."""
        if self.is_secret:
            return text.replace(self._text, HIDDEN)
        if not self._text or self._text not in text:
            return text
        return re.sub(rf"({_CREDENTIAL}){re.escape(self._text)}(?![\w-])", rf"\1{HIDDEN}", text)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")
