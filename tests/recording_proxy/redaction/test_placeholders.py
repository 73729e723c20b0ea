"""What only marks the place of a secret stays readable; weak passwords are passwords nevertheless."""

from __future__ import annotations

import pytest

from tests.recording_proxy.redaction.lines import redacted


@pytest.mark.parametrize(
    "text",
    [
        "OPENAI_API_KEY=dummy npm test",
        'TOKEN="<your-token>"',
        "ANTHROPIC_API_KEY=sk-ant-...",
        "export STRIPE_SECRET_KEY=sk_test_...",
        "GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxxxxxxxxxx",
        "AWS_SECRET_ACCESS_KEY=0000000000000000000000",
        "password: \"{{ lookup('env', 'DB_PASSWORD') }}\"",
        '"apiKey": "YOUR_API_KEY"',
        'api_key = "your-api-key-here"',
        'process.env.OPENROUTER_API_KEY = "test-openrouter-key";',
        '{"token": "<your token>"}',
        "headers: { Authorization: `Bearer ${token}` }",
        '{"input_token": "nextToken", "output_token": "LastEvaluatedKey"}',
        "decoded_secret = base64.b64decode(secret[6:])",
        "SLACK_BOT_TOKEN=xoxb-your-token-here",
        'kubectl create secret generic db --from-literal=password="$$DB_PASSWORD"',
        '$headers = @{ Authorization = "Bearer $token" }',
        "Authorization: 'SOME_TOKEN'",
        '{"user": "ada", "password": "[***]"}',
        '{"login.password": "Password"}',
        "postgres://user:password@localhost:5432/db",
        "See https://h.example/x?token={token} and https://h.example/x?token={}.",
        'print("https://h.example/7?token=%s")',
        "The key starts with `-----BEGIN OPENSSH PRIVATE KEY-----` and stays on your machine.",
    ],
)
def test_a_placeholder_stays(text: str) -> None:
    """In documents, tests and templates."""
    assert redacted({"prompt": text})["body"]["json"]["prompt"] == text


@pytest.mark.parametrize("password", ["changeme", "hunter2", "admin123", "test1234", "dummyPass9"])
def test_a_weak_password_is_one(password: str) -> None:
    """Given to a password, in settings and in JSON."""
    for text in (f"DB_PASSWORD={password}", f'password = "{password}"', f'{{"password": "{password}"}}'):
        assert password not in str(redacted({"prompt": text}))
