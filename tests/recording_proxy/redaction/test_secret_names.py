"""Which names say that their value is a secret, and which do not."""

from __future__ import annotations

import pytest

from signet_recording_proxy.redaction.secret_names import (
    is_secret_header,
    is_secret_member,
    is_secret_name,
    is_secret_parameter,
)

VALUE = "Hx003QzwT7kLm"


@pytest.mark.parametrize(
    "name",
    [
        *("password", "newPassword", "db_password", "password2", "password_hash", "passphrase", "PASSWD", "passcode"),
        *("apiToken", "api_token", "sessionToken", "botToken", "githubToken", "GITHUB_TOKEN", "token", "refresh-token"),
        *("apiKey", "api.key", "x-api-key", "api_keys", "secretAccessKey", "aws_secret_access_key"),
        *("accessKey", "signing_key", "encryptionKey", "masterKey", "sharedAccessKey", "PRIVATE_KEY"),
        *("secret", "webhookSecret", "signing_secret", "jwtSecret", "clientSecret", "connectionString"),
        *("pwd", "pass", "DB_PASS", "dbPass", "jwt", "auth", "basicAuth", "cookie", "sessionCookie", "GH_PAT"),
        *("credential", "credentials", "authorization", "bearer", "otp"),
    ],
)
def test_a_member_of_this_name_is_a_secret(name: str) -> None:
    """Whatever marks and capitals its words have, and whatever stands before them."""
    assert is_secret_member(name, VALUE)


@pytest.mark.parametrize(
    "name",
    [
        *("confirmToken", "confirm_token", "sessionKey", "session_key", "parentSessionKey", "parentKey"),
        *("currentSessionKey", "idempotencyKey", "idempotency_key", "agentId", "harnessAgentId", "key", "id"),
        *("tokens", "tokenCount", "token_count", "maxTokens", "tokenBudget", "estimated_token_count", "max_token"),
        *("progressToken", "nextPageToken", "continuation_token", "eos_token", "keyTerms", "keywordQuery", "keyboard"),
        *("author", "authored", "authority", "oauthors", "passage", "compass", "bypass", "bypassed", "passing"),
        *("secrets", "secretName", "secretary", "patch", "compat", "passwordPolicy", "cookies", "credentialType"),
        *(
            "monkey",
            "accessCount",
            "content",
            "userMessage",
            "transcript",
            "",
            "Enter your password",
            "x" * 200 + "password",
        ),
    ],
)
def test_a_member_of_this_name_is_none(name: str) -> None:
    """What the contract reads, counts of tokens, and words that hold a shorter word stay readable."""
    assert not is_secret_member(name, VALUE)
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("pwd", "/home/me/src2"), ("pwd", "~/src2/api"), ("pwd", "C:\\src2\\api"), ("auth", "none")),
        *(("auth", "application-default"), ("credentials", "same-origin"), ("pass", "12 of 14"), ("pass", "100.00%")),
        *(("cookie", "session"), ("token", "short"), ("botToken", "what it is"), ("secret", "ACME_TOKEN")),
        *(("password", ""), ("password", "  "), ("apiKey", "$API_KEY"), ("apiKey", "[REDACTED]"), ("token", "***")),
        ("webhookSecret", "<redacted:1>"),
    ],
)
def test_a_value_may_show_that_it_is_none(name: str, value: str) -> None:
    """Folders, methods, tallies, names of variables and what was redacted already are no secrets."""
    assert not is_secret_member(name, value)


@pytest.mark.parametrize(
    "name",
    [
        *("x-auth-key", "x-secret-key", "x-access-key", "ocp-apim-subscription-key", "x-functions-key", "x-api-key"),
        *("x-vault-token", "x-passwd", "x-bearer", "x-credential", "api-key", "x-goog-api-key"),
    ],
)
def test_a_header_of_this_name_is_a_secret(name: str) -> None:
    """Keys, tokens and passwords are secrets in any header."""
    assert is_secret_header(name, VALUE)
    assert not is_secret_header(name, " ")


@pytest.mark.parametrize(
    "name",
    [
        *("sec-websocket-key", "idempotency-key", "x-signet-agent-id", "x-session-id", "mcp-session-id", "etag"),
        *("x-request-id", "x-author", "surrogate-key", "www-authenticate"),
    ],
)
def test_a_header_of_this_name_is_none(name: str) -> None:
    """Identifiers of requests, sessions and agents stay readable."""
    assert not is_secret_header(name, VALUE)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "token",
            "api_token",
            "apiToken",
            "session_token",
            "access_key",
            "jwt",
            "code",
            "auth",
            "token[]",
            "token[0]",
        ),
        *("user[password]", "key", "sig", "X-Amz-Signature", "api-key", "pwd"),
    ],
)
def test_a_parameter_of_this_name_is_a_secret(name: str) -> None:
    """In queries and forms, brackets and short names included."""
    assert is_secret_parameter(name, VALUE)


@pytest.mark.parametrize("name", ["limit", "session_key", "confirm_token", "pageToken", "reason", "tags[]", "keys"])
def test_a_parameter_of_this_name_is_none(name: str) -> None:
    """What a query is read for stays readable."""
    assert not is_secret_parameter(name, VALUE)


def test_numbers_are_secrets_under_certain_names_only() -> None:
    """A password may be a number; a number of tokens is not."""
    assert is_secret_name("password")
    assert is_secret_name("clientSecret")
    assert not is_secret_name("inputToken")
    assert not is_secret_name("pass")
