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
        "psexec \\\\host -u ada -p {} cmd",
        "sqlcmd -S h -U sa -P '{};&x'",
        "xfreerdp /u:ada /p:{} /v:h",
        "schtasks /create /ru ada /rp {} /tn x",
        "cryptsetup luksOpen x y <<< {}",
        "vault kv put secret/x key={}",
        "poetry config pypi-token.pypi {}",
        "expect -c 'spawn ssh h; send \"{}\\r\"'",
        "snmpwalk -v3 -A {} -X other h",
        "a1 LOGIN ada {}",
        'new Client("{}")',
        "CryptoJS.AES.encrypt(m, '{}')",
        "EXEC sp_addlinkedsrvlogin 'x', 'false', NULL, 'sa', '{}';",
        'api_key = (\n    "{}"\n)',
        "'secret' => env('X', '{}'),",
        'let pw = r#"{}"#;',
        "assert pw == '{}'",
        "password=os.environ.get('PW') or '{}'",
        "if (token !== '{}') return",
        '<input type="password" value="{}">',
        '<meta content="{}" name="api-token">',
        '<setting name="Token" serializeAs="String"><value>{}</value></setting>',
        '<string name="maps_secret" translatable="false">{}</string>',
        "DB_PW={}",
        "rootpw {}",
        "storepass {}",
        "HMAC_PEPPER={}",
        "$ gcloud secrets versions access latest --secret=db\n{}",
        "$ op item get Prod --fields password --reveal\n{}",
        "$ pwgen -s 16 1\n{}\n$",
        "mysqladmin password {}",
        "curl https://acme.io -H 'accept: */*' -b 'theme=dark; session={}'",
        'lena : EAP "{}"',
        "WIFI:T:WPA;S:Guests;P:{};;",
        "<keyMaterial>{}</keyMaterial>",
        "    Key Content            : {}",
        "A temporary password is generated for root@localhost: {}",
        "Password reset.\nNew value: {}\n",
        '"type": "random_password", "instances": [{{"attributes": {{"length": 16, "result": "{}"}}}}]',
        "331 Please specify the password.\nPASS {}\n230 Login successful.",
        "username admin privilege 15 password 0 {}",
        "SetEnv SECRET_TOKEN {}",
        "redis:auth('{}')",
        'wandb.login(key="{}")',
        "Please use the following password to proceed:\n\n{}\n",
        "│ DB_PASSWORD       │ {} │",
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
        "mkdir -p build2026/Release-x64 && cp -u a b -p",
        "wc -l <<< 'two words of 2026'",
        "gh secret set NPM_TOKEN --repos acme/shop2",
        "new Client(baseUrl2, options)",
        'client.get("https://example.org/v2/items")',
        "password = input('Enter the password for user2: ')",
        "expect(token).toBe('not-a-token-2')",
        '<input type="text" name="city" value="Q7RtZ2mXw9Kp4Ls8">',
        '<option value="Q7RtZ2mXw9Kp4Ls8">one</option>',
        "the bypass: v2feature2026",
        "curl -b cookies.txt 'https://acme.io/?page=Q7RtZ2mXw9Kp4Ls8'",
        "$ openssl rand --help\nUsage: rand [options] num2",
        "331 Please specify the password.\n530 Login incorrect.",
        "New value: enabled2",
        "arn:aws:secretsmanager:eu-west-1:482913375512:secret:prod/db-drQf70",
        "│ LOG_LEVEL         │ info2026                         │",
        "username admin privilege 15",
        'kv.get(key="users-2026-list")',
    ],
)
def test_code_that_looks_alike_stays(text: str) -> None:
    """Variables, names of algorithms, prose."""
    assert redacted({"prompt": text})["body"]["json"]["prompt"] == text


@pytest.mark.parametrize(
    "text",
    [
        "codecov -t {}",
        "app --encryption-key {}",
        "secret: Buffer.from('{}', 'hex')",
        'privKey, _ := hex.DecodeString("{}")',
        "ed25519 seed = {0}{0}",
        "doctl auth init -t {}",
    ],
)
def test_a_long_number_is_redacted(text: str) -> None:
    """Where a program or a statement takes it for a key."""
    assert HEX not in str(redacted({"prompt": text.format(HEX)}))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("TOTP seed: {}", "7VURIRKOHFEQM57RPHYHKDDZBTJMW4DV"),
        ("untrusted comment: minisign encrypted secret key\n{}", "RWQAAEIyzZg5G4m5BqaE8wKXiAUV35PnJFwvnX5s96USUfyc"),
        ("DB_PASSWORD={}", "QIxpnSPLUruIKH"),
        ("ethers.Wallet.fromMnemonic('{}')", "boat cube dust echo fern glow hill iris jade kelp lamp moss"),
        ("define('AUTH_SALT', '{}');", "p9DgMzRn%`Ca!]JcmYzgUAt CpXRryy|6&dEnvtaE C2?:GQT@dxcsh~*j"),
        ("AWS Secret Access Key [None]: {}", "h2do42/mRGVLM7k/z0nlqUAWz1C0OTtAGyGFK3pe"),
        ("curl_setopt($c, CURLOPT_USERPWD, 'ada:{}');", "Pd3KRg0jTz73ML"),
        ("storePassword={}", "FvXHRUZrbcEqPfX"),
        ("Recovery phrase (12 words):\n{}", "boat cube dust echo fern glow hill iris jade kelp lamp moss"),
        ("mi frase semilla: {}", "igual diamante revés bazar cuidar cuna andén broma tumor hurto paleta elemento"),
        ("334 UGFzc3dvcmQ6\n{}\n235 ok", "ZkZDbuMGVEqWKTRhYIlM"),
        (
            "-----BEGIN OpenVPN Static key V1-----\n{}\n-----END OpenVPN Static key V1-----",
            "fd6c633951c9145fa2e35f0cb6e1997b\n71e76b9b78a52d9b4d10578a5a511de3",
        ),
    ],
)
def test_a_secret_of_letters_is_redacted(text: str, secret: str) -> None:
    """In an alphabet of its own, or without a digit."""
    assert secret not in str(redacted({"prompt": text.format(secret)}))
