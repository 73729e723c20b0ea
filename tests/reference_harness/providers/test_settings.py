"""How settings choose a session's provider, model, address and key, and the errors if one is missing."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.config import Secret
from signet_reference_harness.errors import ConfigError, HarnessError
from signet_reference_harness.providers.settings import ProviderSettings, load, make_provider, workspace_of

KEY = "sk-planted-71d0"


def write(folder: Path, text: str | bytes, name: str = "agent.yaml") -> Path:
    """An agent's file in its workspace."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def refusal(flags: dict[str, str | None], environ: dict[str, str], workspace: Path | None = None) -> ConfigError:
    """The error that the settings raise; it never holds the planted key."""
    with pytest.raises(ConfigError) as told:
        make_provider(load(flags, environ, workspace))
    assert KEY not in "".join(traceback.format_exception(told.value))
    return told.value


def test_anthropic_is_the_default() -> None:
    """With its own address, and the key of its own variable."""
    made = load({"model": "claude"}, {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": "sk-other"}, None)
    assert (made.provider, made.api, made.base_url) == ("anthropic", "anthropic-messages", "https://api.anthropic.com")
    assert (made.key.reveal() if made.key else None, made.key_source) == (KEY, "ANTHROPIC_API_KEY")
    assert made.at_vendor


def test_a_key_that_is_missing_is_named_by_its_own_variable(tmp_path: Path) -> None:
    """By the variable in the agent's file, not by the vendor's."""
    write(tmp_path, "runtime: {provider: openai, model: m, api_key_env: TEAM_KEY}")
    assert "TEAM_KEY is not set" in refusal({}, {}, tmp_path).message
    assert load({}, {"TEAM_KEY": KEY}, tmp_path).key_source == "TEAM_KEY"
    assert load({"api_key": KEY}, {}, tmp_path).key_source == "--api-key"


def test_flags_go_before_the_environment_before_the_file(tmp_path: Path) -> None:
    """Member by member."""
    write(tmp_path, "runtime: {provider: ollama, model: from-file, base_url: 'http://file:1', api_key: file-key}")
    environ = {"SIGNET_HARNESS_BASE_URL": "http://environment:2"}
    made = load({"model": "from-flag", "provider": None}, environ, tmp_path)
    assert (made.provider, made.model, made.base_url) == ("ollama", "from-flag", "http://environment:2")
    assert made.key is not None
    assert made.key.reveal() == "file-key"


@pytest.mark.parametrize("name", ["agent.yaml", "AGENT.yaml", "config.yaml"])
def test_the_file_has_the_daemons_names(tmp_path: Path, name: str) -> None:
    """The first existing file counts; its other members are the daemon's."""
    write(tmp_path, "version: 1\nembedding: {provider: none}\nruntime: {provider: ollama, model: q}\n", name)
    assert load({}, {}, tmp_path).model == "q"


def test_a_file_says_how_to_try_again(tmp_path: Path) -> None:
    """Other settings keep their defaults."""
    write(
        tmp_path, "runtime:\n  provider: ollama\n  model: q\n  timeout_s: 5\n  retry: {attempts: 1, too_long: error}\n"
    )
    made = load({}, {}, tmp_path)
    assert (made.timeout_s, made.retry.attempts, made.retry.too_long, made.retry.total_s) == (5.0, 1, "error", 60.0)


def test_a_key_can_stand_in_a_variable_that_the_file_names(tmp_path: Path) -> None:
    """So that the file need not contain it."""
    write(tmp_path, "runtime: {provider: openai, model: gpt, api_key_env: WORK_KEY}")
    made = load({}, {"WORK_KEY": KEY}, tmp_path)
    assert made.key is not None
    assert (made.key.reveal(), made.key_source) == (KEY, "WORK_KEY")


@pytest.mark.parametrize("file", ["provider: openai, ", "api: openai-responses, ", ""])
def test_what_is_said_for_another_vendor_does_not_count(tmp_path: Path, file: str) -> None:
    """Model, address and key of a weaker source never reach another vendor."""
    chosen = "ollama"
    write(tmp_path, f"runtime: {{{file}model: m, base_url: 'http://there:1', api_key: {KEY}}}")
    made = load({"provider": chosen, "model": "mine"}, {}, tmp_path)
    assert (made.key, made.base_url, made.model) == (None, "http://127.0.0.1:11434", "mine")
    environ = {"SIGNET_HARNESS_PROVIDER": "openai", "SIGNET_HARNESS_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    assert load({"provider": chosen, "model": "mine"}, environ, None).key is None


def test_both_apis_of_openai_share_what_is_said_for_it(tmp_path: Path) -> None:
    """--api chooses another API of the same vendor."""
    write(tmp_path, f"runtime: {{provider: openai, model: gpt, api_key: {KEY}}}")
    made = load({"api": "openai-responses"}, {}, tmp_path)
    assert (made.provider, made.api, made.model, made.key is not None) == (
        "openai-responses", "openai-responses", "gpt", True
    )  # fmt: skip


@pytest.mark.parametrize("name", ["openai-completions", "openai-responses", "anthropic-messages", "ollama-chat"])
@pytest.mark.parametrize("flag", ["provider", "api"])
def test_an_api_names_a_provider(name: str, flag: str) -> None:
    """As provider or as API."""
    made = load({flag: name, "model": "m", "api_key": "k"}, {}, None)
    assert (made.api, make_provider(made).id) == (name, made.provider)


def test_a_server_may_speak_any_api() -> None:
    """With an address, a provider may speak another API, and then needs no key."""
    made = load(
        {"provider": "openai-compatible", "api": "anthropic-messages", "base_url": "http://x", "model": "m"}, {}, None
    )
    assert (made.api, made.key, made.at_vendor) == ("anthropic-messages", None, False)
    assert type(make_provider(made)).__name__ == "AnthropicProvider"


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:11434"), ("box:99", "http://box:99"), ("https://box/", "https://box")],
)
def test_ollama_host_is_read_as_ollama_writes_it(host: str, url: str) -> None:
    """A host, a host with a port, or a URL."""
    assert load({"provider": "ollama", "model": "m"}, {"OLLAMA_HOST": host}, None).base_url == url


def test_the_workspace_is_where_the_daemon_has_it() -> None:
    """SIGNET_PATH, else ~/.agents."""
    assert workspace_of({"SIGNET_PATH": "/elsewhere"}) == Path("/elsewhere")
    assert workspace_of({}) == Path("~/.agents").expanduser()


@pytest.mark.parametrize(
    ("flags", "message", "remedy"),
    [
        ({"provider": "antropic"}, "there is no provider 'antropic' (--provider)", "name anthropic"),
        ({"provider": "xyz"}, "there is no provider 'xyz'", "or a module:attribute"),
        ({"model": "m"}, "needs a key, and ANTHROPIC_API_KEY is not set", "set ANTHROPIC_API_KEY"),
        ({"api_key": "k"}, "no model is named", "give --model NAME, or set SIGNET_HARNESS_MODEL"),
        ({"provider": "openai-compatible", "model": "m"}, "has no address", "give --base-url"),
        ({"api": "openai"}, "the API 'openai' (--api) is unknown", "openai-completions"),
        ({"provider": "ollama", "api": "anthropic-messages"}, "does not speak anthropic-messages", "--base-url"),
        ({"base_url": "file:///etc"}, "(--base-url) is not an http or https URL: 'file:///etc'", "http://127.0.0.1"),
        ({"base_url": "http://[x"}, "is not an http or https URL", "http://127.0.0.1"),
        ({"base_url": f"http://me:{KEY}@host"}, "holds credentials", "--api-key"),
        ({"base_url": f"http://me:{KEY}@host:port"}, "holds credentials", "--api-key"),
        ({"base_url": f"http://host/v1?key={KEY}"}, "(--base-url) holds a query or a fragment", "http://127.0.0.1"),
        ({"base_url": f"http://host:port/v1#{KEY}"}, "(--base-url) holds a query or a fragment", "http://127.0.0.1"),
        ({"model": "m", "api_key": f"Bearer {KEY}"}, "the key (--api-key) is empty, or holds blanks", "bare key"),
        ({"model": "m", "api_key": ""}, "the key (--api-key) is empty", "bare key"),
        ({"provider": "no.such:thing", "model": "m"}, "cannot be made from no.such:thing", "PYTHONPATH"),
        ({"provider": "json:dumps", "model": "m", "api_key": KEY}, "cannot be made from json:dumps", "a callable"),
        ({"provider": "builtins:repr", "model": "m", "api_key": KEY}, "available, aclose", "Provider"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told(flags: dict[str, str | None], message: str, remedy: str) -> None:
    """The error has problem, source and remedy, and never the key."""
    error = refusal(flags, {})
    assert message in error.message
    assert remedy in (error.remedy or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"runtime: {{api_key: '{KEY}'\n", ":2:1: is not YAML"),
        (f"runtime: {{api_key: *{KEY}}}\n", "is not YAML: found undefined alias"),
        ("\x00", ":1: is not YAML: character 0x00"),
        ("ä: \U0001f600\nruntime: \x07\n", ":2: is not YAML: character 0x07"),
        (b"runtime:\n  model: caf\xe9\n", ":2: is not YAML: character 0xe9"),
        ("- a\n", "holds no mapping"),
        ("runtime: ollama\n", "/runtime: is not a mapping"),
        ("runtime: {model: 3}\n", "/runtime: /model: is 3"),
        ("runtime: {modle: m}\n", "/runtime: unknown member 'modle'"),
        ("runtime: {api: grpc}\n", '/runtime: /api: is "grpc"'),
        (f"runtime: {{api_key: [{KEY}]}}\n", "/runtime/api_key: is not a text"),
        ("runtime: {retry: {attempts: 0}}\n", "/runtime: /retry/attempts: is 0"),
        ("runtime: {retry: {tries: 1}}\n", "/runtime: /retry/tries: unknown member"),
        (f"runtime: !!python/object/apply:os.system ['{KEY}']\n", "is not YAML"),
    ],
)
def test_a_malformed_file_is_told(tmp_path: Path, text: str | bytes, message: str) -> None:
    """The error names the file and the place in it, and shows no key."""
    error = refusal({"provider": "ollama", "model": "m"}, {}, write(tmp_path, text))
    assert str(tmp_path / "agent.yaml") in error.message
    assert message in error.message
    assert error.remedy


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """For example, a folder in its place, or a huge file."""
    (tmp_path / "agent.yaml").mkdir()
    assert "agent.yaml: Is a directory" in refusal({}, {}, tmp_path).message
    (tmp_path / "agent.yaml").rmdir()
    write(tmp_path, "#" * (1024 * 1024 + 1))
    assert "is larger than" in refusal({}, {}, tmp_path).message


def test_unknown_members_may_be_the_daemons(tmp_path: Path) -> None:
    """Only a probable misspelling is refused."""
    write(tmp_path, "runtime: {provider: ollama, model: m, channels: [cli]}")
    assert load({}, {}, tmp_path).model == "m"


class Mine:
    """A provider of another author."""

    id = "mine"
    complete = stream = available = aclose = None

    def __init__(self, given: ProviderSettings) -> None:
        self.given = given


def test_a_strangers_provider_is_named_by_module_and_attribute() -> None:
    """It gets the settings, which need not be complete."""
    made = make_provider(load({"provider": f"{__name__}:Mine", "api_key": KEY}, {}, None))
    assert isinstance(made, Mine)
    assert made.given.key is not None
    assert made.given.key.reveal() == KEY


def test_a_strangers_provider_is_registered_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its own name, which an error proposes for a misspelling."""
    distribution = tmp_path / "mine-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text(
        f"[signet_reference_harness.providers]\nmy-models = {__name__}:Mine\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert isinstance(make_provider(load({"provider": "my-models"}, {}, None)), Mine)
    assert refusal({"provider": "my-model"}, {}).remedy == "name my-models"


def test_a_key_shows_nowhere() -> None:
    """Neither the secret itself, nor an object with it, nor its serialised form shows it."""
    secret = Secret(KEY)
    made = load({"model": "m", "api_key": KEY}, {}, None)
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r}", repr(made), str(made), f"{[secret]}"):
        assert KEY not in shown
    for write_away in (pickle.dumps, json.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            write_away(secret)
    assert secret.hide_in(f"Bearer {KEY}!") == "Bearer [key]!"


def test_errors_of_configuration_are_the_harness_own() -> None:
    """So commands show them without a traceback."""
    assert isinstance(refusal({}, {}), HarnessError)
    any_value: Any = refusal({"provider": "ollama"}, {}).remedy
    assert "SIGNET_HARNESS_MODEL" in any_value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect API key provided: abc.", "Incorrect API key provided: [key]."),
        ("curl -H 'Authorization: Bearer abc'", "curl -H 'Authorization: Bearer [key]'"),
        ('{"x-api-key": "abc", "abc": 1}', '{"x-api-key": "[key]", "abc": 1}'),
        ("as easy as abc, a token abcd", "as easy as abc, a token abcd"),
    ],
)
def test_a_short_key_is_hidden_where_a_credential_stands(text: str, shown: str) -> None:
    """A key of fewer than six characters is hidden after words that introduce a key; common words stay."""
    assert Secret("abc").hide_in(text) == shown
    assert Secret("").hide_in(text) == text
