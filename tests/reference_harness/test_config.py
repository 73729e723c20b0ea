"""The environment variables that the harness reads."""

from __future__ import annotations

from typing import Any

import pytest

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.errors import ConfigError


def test_empty_environment_gives_the_defaults() -> None:
    """Without variables the daemon is on loopback, unauthenticated, and both deadlines are below a second."""
    config = HarnessConfig.from_environment({"SIGNET_DAEMON_URL": " "})
    assert (config.origin, config.token, config.agent, config.bypassed) == (
        "http://127.0.0.1:3850",
        None,
        "default",
        False,
    )
    assert max(config.timeout_s("session-start"), config.timeout_s("user-prompt-submit")) < 1.0


@pytest.mark.parametrize(
    ("environ", "origin"),
    [
        ({"SIGNET_DAEMON_URL": "http://localhost:99/some/path?x=1"}, "http://localhost:99"),
        ({"SIGNET_DAEMON_URL": "https://daemon.example"}, "https://daemon.example"),
        ({"SIGNET_DAEMON_URL": "http://[::1]:99"}, "http://[::1]:99"),
        ({"SIGNET_PORT": "99"}, "http://127.0.0.1:99"),
        ({"SIGNET_HOST": "box"}, "http://box:3850"),
        ({"SIGNET_DAEMON_URL": "http://a:1", "SIGNET_PORT": "99"}, "http://a:1"),
    ],
)
def test_origin_is_taken_from_the_address(environ: dict[str, str], origin: str) -> None:
    """Only scheme, host and port of an address count."""
    assert HarnessConfig.from_environment(environ).origin == origin


def test_api_key_goes_before_token() -> None:
    """Of two tokens the API key is used."""
    assert HarnessConfig.from_environment({"SIGNET_API_KEY": "a", "SIGNET_TOKEN": "b"}).token == "a"
    assert HarnessConfig.from_environment({"SIGNET_TOKEN": "b"}).token == "b"


@pytest.mark.parametrize(
    ("variable", "value", "bypassed"),
    [
        ("SIGNET_BYPASS", "1", True),
        ("SIGNET_NO_HOOKS", "true", True),
        ("SIGNET_ENABLED", "False", True),
        ("SIGNET_ENABLED", "1", False),
        ("SIGNET_BYPASS", "0", False),
    ],
)
def test_bypass_is_read(variable: str, value: str, *, bypassed: bool) -> None:
    """Any of three variables takes Signet out of the way."""
    assert HarnessConfig.from_environment({variable: value}).bypassed is bypassed


def test_deadlines_are_given_in_milliseconds() -> None:
    """The two deadlines are configurable."""
    environ = {"SIGNET_SESSION_START_TIMEOUT": "1500", "SIGNET_PROMPT_SUBMIT_TIMEOUT": "250"}
    config = HarnessConfig.from_environment(environ)
    assert (config.timeout_s("session-start"), config.timeout_s("user-prompt-submit")) == (1.5, 0.25)


@pytest.mark.parametrize(
    "environ",
    [
        {"SIGNET_DAEMON_URL": "127.0.0.1:3850"},
        {"SIGNET_DAEMON_URL": "ftp://x"},
        {"SIGNET_DAEMON_URL": "http://x:port"},
        {"SIGNET_DAEMON_URL": "http://[x"},
        {"SIGNET_DAEMON_URL": "http://user:hidden@x"},
        {"SIGNET_TOKEN": "Bearer abc"},
        {"SIGNET_TOKEN": "tökén"},
        {"SIGNET_SESSION_START_TIMEOUT": "soon"},
        {"SIGNET_SESSION_START_TIMEOUT": "-1"},
        {"SIGNET_PROMPT_SUBMIT_TIMEOUT": "nan"},
        {"SIGNET_PROMPT_SUBMIT_TIMEOUT": "999999999"},
    ],
)
def test_unusable_value_is_refused_with_a_remedy(environ: dict[str, str]) -> None:
    """An error says what to set instead, and never repeats credentials."""
    with pytest.raises(ConfigError) as raised:
        HarnessConfig.from_environment(environ)
    assert raised.value.remedy
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"harness": ""}, "the harness's name is ''"),
        ({"harness": "my shell"}, "the harness's name is 'my shell'"),
        ({"harness": "muschel\u00e9"}, "the harness's name is 'muschel\u00e9'"),
        ({"runtime_path": "direct"}, "the runtime path is 'direct'"),
    ],
)
def test_name_or_path_that_the_contract_forbids_is_refused(given: dict[str, Any], message: str) -> None:
    """What would stand in every hook, and in a header, is checked when it is given."""
    with pytest.raises(ConfigError) as raised:
        HarnessConfig(**given)
    assert raised.value.message == message
    assert raised.value.remedy
