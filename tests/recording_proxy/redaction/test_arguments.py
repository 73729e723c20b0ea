"""Secrets that are arguments of functions and commands, or what a command prints."""

from __future__ import annotations

import pytest

from tests.recording_proxy.redaction.lines import redacted

SECRET = "Tq7vR2mXw9Kp4Ls8"
HEX = "3f9c07be5a1d48e26b70c4f9d85a13e7"


@pytest.mark.parametrize(
    "text",
    [
        "jwt.sign(payload, '{}', {{ expiresIn: '1h' }})",
        'hmac.New(sha256.New, []byte("{}"))',
        'app.config["SECRET_KEY"] = "{}"',
        "if (req.headers['x-admin-secret'] !== '{}') return",
        "FROM debian\nENV SECRET_TOKEN {}\nRUN true",
        "set -gx DATADOG_API_KEY {}",
        'variable "db_password" {{\n  type = string\n  default = "{}"\n}}',
        '- name: DB_PASSWORD\n  value: "{}"',
        "crypto.createHmac('sha256', '{}')",
        'DriverManager.getConnection("jdbc:mysql://db/x", "root", "{}");',
        "new PDO('mysql:host=db', 'app', '{}');",
        "driver.find_element(By.ID, 'password').send_keys('{}')",
        "await page.getByLabel('Password').fill('{}');",
        "const JWT_SECRET = process.env.JWT_SECRET ?? '{}'",
        "ALTER USER scott IDENTIFIED BY {} ACCOUNT UNLOCK;",
        "rabbitmqctl add_user worker {}",
        "sqlplus system/{}@//ora01:1521/X",
        'sql.Open("mysql", "app:{}@tcp(10.0.0.5:3306)/shop")',
        "http -a jo:{} https://api.acme.io/v1/me",
        "$ printenv DATABASE_PASSWORD\n{}",
        "$ op read op://Prod/db/password\n{}\n$",
        "Created. Copy it now, it won't be shown again:\n\n    {}\n",
        "enable secret 0 {}",
    ],
)
def test_an_argument_is_redacted(text: str) -> None:
    """By the name of what takes it."""
    assert SECRET not in str(redacted({"prompt": text.format(SECRET)}))


@pytest.mark.parametrize(
    "text",
    [
        "jwt.sign(payload, process.env.JWT_SECRET, { expiresIn: '1h' })",
        "crypto.createHmac('sha256', key).update(body)",
        "hmac.new(key, body, hashlib.sha256).hexdigest()",
        "await page.getByLabel('Search').fill('release-2026-11');",
        "const port = process.env.PORT ?? '3000'",
        'rows["next_page"] = "c2Vjb25kIHBhZ2U9Mg"',
        'config["cache_key"] = "users-v2-list"',
        "Generate a signed auth token scoped to a role",
        "ENV NODE_VERSION 20.11.1-bookworm",
        "ENV API_TOKEN $TOKEN_OF_2026",
        'variable "db_name" {\n  default = "accounting2026"\n}',
        "a user is identified by their address",
        'DriverManager.getConnection(url, "root", password);',
        "$ printenv PATH\n/usr/local/bin:/usr/bin2",
        "$ op read --help\nUsage: op read <reference> [flags]",
        "this will not be shown again\n\nChapter 2 begins here.",
        "http -f https://example.org/a1",
        "see /reset-password/ and /private-beta-2026/",
        "accounts: ['first', 'second']",
    ],
)
def test_code_that_looks_alike_stays(text: str) -> None:
    """Variables, names of algorithms, prose."""
    assert redacted({"prompt": text})["body"]["json"]["prompt"] == text
