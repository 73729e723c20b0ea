"""Secrets as they stand in shells, scripts, sentences and connection strings, and encoded twice: none is recorded."""

# ruff: noqa: E501 - a way to write a secret is one line

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from signet_recording_proxy.redaction.redactor import LONG_LINE, Redactor
from tests.attacks.test_secret_kinds import HEX, LOWER, MIXED, UPPER, UUID, recorded, some

V, W, H = "q7RtZ2mXw9Kp4Ls8Vn3B", "kf93hs72bd61", "9f86d081884c7d659a2feaa0c55ad015"
BLOCK = "483920-483920"
FORMS = [
    f"setx OPENAI_API_KEY {V}",
    f"set -gx ACME_TOKEN {V}",
    f"set -x STRIPE_SECRET {V}",
    f"setenv ACME_SECRET {V}",
    f"ACME_API_KEY {V}",
    f"ADMIN_TOKEN {V}",
    f"my password is {W}",
    f"password {W}",
    f"the token is {V}",
    f"api key: {V}",
    f"API Key - {V}",
    f"secret key {V}",
    f"access token: {V}",
    f"bearer token {V}",
    f"client secret = {V}",
    f"Auth token => {V}",
    f"app --token={V}",
    f"app --token {V}",
    f"app --api-key={V}",
    f"app --apikey {V}",
    f"app --key {V}",
    f"app --secret-key={V}",
    f"app --auth {V}",
    f"app --access-key-secret {V}",
    f"tool --pat={V}",
    f"tool --pwd={W}",
    f"tool --pass={W}",
    f"tool --password '{W}'",
    f'tool --token "{V}"',
    f"tool --with-token={V}",
    f"tool --registration-token {V}",
    f"tool --client-secret={V}",
    f"curl -H 'X-Acme-Key: {V}' https://h/x",
    f"curl -H 'X-Custom-Auth: {V}' https://h",
    f'curl -H "apikey: {V}" https://h',
    f"curl -H 'X-Vault-Token: {V}' h",
    f"curl --header='X-Token: {V}' h",
    f"curl -H 'Api-Token:{V}'",
    f"http GET h X-Auth-Key:{V}",
    f"curl -H 'Cookie: session={V}' h",
    f"curl -b 'sid={V}' h",
    f"curl --oauth2-bearer {V} h",
    f"wget --header='PRIVATE-TOKEN: {V}' h",
    f"wget --password={W} h",
    f"curl -d 'password={W}' h",
    f"""curl -d '{{"apiKey":"{V}"}}' h""",
    f"curl -F token={V} h",
    f'curl -d "{{\\"password\\":\\"{W}\\"}}" h',
    f"cat > .env <<EOF\nDB_PASSWORD={W}\nEOF",
    f"cat <<'EOF' | kubectl apply -f -\nstringData:\n  password: {W}\nEOF",
    f"docker login -u robin --password-stdin reg <<< '{W}'",
    f"echo {W} | docker login -u robin --password-stdin",
    f"echo '{V}' | gh auth login --with-token",
    f"gh secret set ACME --body {V}",
    f"printf '%s' '{V}' | vault kv put secret/x value=-",
    f"vault kv put secret/x password={W}",
    f"kubectl create secret generic x --from-literal=password={W}",
    f"aws configure set aws_secret_access_key {V}{V}",
    f"npm config set //registry.example.org/:_authToken={V}",
    f"//registry.example.org/:_authToken={V}",
    f"git config credential.helper 'store --password {W}'",
    f"git clone https://robin:{W}@example.org/x.git",
    f"git remote add o https://oauth2:{V}@example.org/x",
    f"svn --username robin --password {W} co x",
    f"PGPASSWORD={W} psql -h h",
    f"psql 'host=h user=u password={W} dbname=d'",
    f"mysql -u root --password={W} d",
    f"mongosh 'mongodb+srv://robin:{W}@c0.example.org/d'",
    f"redis://default:{W}@h:6379",
    f"amqp://robin:{W}@h:5672/v",
    f"Server=h;Database=d;User Id=u;Password={W};",
    f"Data Source=h;User ID=u;Pwd={W};",
    f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey={V}{V}ab=",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={V}{V}{V}{V}abcdef==;EndpointSuffix=core.windows.net",
    f"jdbc:postgresql://h/d?user=u&password={W}",
    f"jdbc:sqlserver://h;user=u;password={W};",
    f"smtp://robin:{W}@mail.example.org:587",
    f"ldap bind -D cn=x -w {W}",
    f"ldapsearch -x -D cn=admin -w {W} -b dc=x",
    f"sshpass -p{W} ssh h",
    f"openssl enc -k {W} -in x",
    f"openssl enc -aes-256-cbc -pass pass:{W}",
    f"zip -P {W} a.zip b",
    f"7z x -p{W} a.7z",
    f"unzip -P {W} a.zip",
    f"gpg --passphrase {W} -d x",
    f"keytool -storepass {W} -list",
    f"jarsigner -keypass {W} x",
    f"htpasswd -b f robin {W}",
    f"useradd -p {W} robin",
    f"echo 'robin:{W}' | chpasswd",
    f"net use \\\\h\\s /user:robin {W}",
    f"cmdkey /add:h /user:u /pass:{W}",
    f"az login --service-principal -u x -p {W}",
    f"az login --service-principal --password {W}",
    f"sqlcmd -S h -U sa -P {W}",
    f"bcp x out y -U sa -P {W}",
    f"rclone obscure {W}",
    f"RESTIC_PASSWORD={W} restic",
    f"ansible-vault --vault-password {W}",
    f"snyk auth {H[:8]}-{H[8:12]}-4{H[13:16]}-a{H[17:20]}-{H[20:32]}",
    f"wandb login {H}{H[:8]}",
    f"huggingface-cli login --token {V}",
    f"flyctl auth token {V}",
    f"op signin --raw {W}",
    f"railway login --token {V}",
    f"export X_TOKEN={V}; curl h",
    f" 1042  export ACME_SECRET_KEY={V}",
    f": 1712345678:0;export ACME_TOKEN={V}",
    f"#1712345678\nexport ACME_PASSWORD={W}",
    f"- cmd: export ACME_TOKEN={V}\n  when: 1712345678",
    f'$env:ACME_TOKEN = "{V}"',
    f"[Environment]::SetEnvironmentVariable('ACME_TOKEN', '{V}', 'User')",
    f"os.environ['ACME_TOKEN'] = '{V}'",
    f"process.env.ACME_TOKEN = '{V}'",
    f"os.environ.setdefault('ACME_TOKEN', '{V}')",
    f'System.setProperty("acme.token", "{V}")',
    f"ENV ACME_TOKEN {V}",
    f"ARG ACME_TOKEN={V}",
    f"- ACME_TOKEN={V}",
    f'set_secret("ACME_TOKEN", "{V}")',
    f"auth=('robin', '{W}')",
    f"HTTPBasicAuth('robin', '{W}')",
    f"Client(api_key='{V}')",
    f"new Client({{ apiKey: '{V}' }})",
    f"connect(user='u', passwd='{W}')",
    f'login("robin", "{W}")',
    f'const SIGNING_KEY: &str = "{V}";',
    f"const apiKey: string = '{V}'",
    f'var token string = "{V}"',
    f"password = b'{W}'",
    f"CREATE LOGIN app WITH PASSWORD = N'{W}';",
    f'dataSource.setPassword("{V}");',
    f"client.with_token('{V}')",
    f'.apiKey("{V}")',
    f"- name: API_TOKEN\n  value: {V}\n",
    f"<key>APIToken</key>\n<string>{V}</string>",
    f"&quot;password&quot;: &quot;{W}&quot;",
    f"Cookie: theme=dark; sessionid={V}; lang=en",
    f"set-cookie: __Host-sid={V}; Path=/",
    f"**Password:** {V}",
    f"- **API key**: `{V}`",
    f"Das Passwort lautet {V}",
    f"passwort: {W}",
    f"pip install --extra-index-url https://{V}:@pkgs.example/simple x",
    f"SSHPASS={W} sshpass -e ssh h",
    f'app_key = "{W}"',
    f"htpasswd -nbB admin {W}",
    f"twine upload -u u -p {W} dist/*",
    f"mosquitto_pub -h h -u u -P {W} -t x",
    f"ssh-keygen -t ed25519 -N '{W}' -f key",
    f"security add-generic-password -a u -s s -w {W}",
    f"lftp -u robin,{W} h",
    f"mc alias set prod https://h ADMIN {W}",
    f"ansible-vault encrypt_string '{W}' --name x",
    f"requirepass {W}",
    f"vercel env add AUTH_SECRET production <<< {W}",
    f"printf '{W}' | secret-tool store --label x",
    f"echo '{W}' | pass insert -e work/db",
    "Recovery Key: " + "-".join(["483920"] * 8),
]
ENCODED = {
    "base64 twice": base64.b64encode(base64.b64encode(f"password={W}".encode())).decode(),
    "base64 in percent escapes": quote(base64.b64encode(f"ACME_TOKEN={V}".encode()).decode()),
    "base64 in hexadecimal": base64.b64encode(f"password={W}".encode()).hex(),
    "hexadecimal in base64": base64.b64encode(f"password={W}".encode().hex().encode()).decode(),
    "percent escapes in base64": base64.b64encode(quote(f"password={W}&x").encode()).decode(),
    "JSON in base64": base64.b64encode(json.dumps({"password": W}).encode()).decode(),
    "JSON in percent escapes twice": quote(quote(json.dumps({"token": V}))),
}
TOKENS = {
    "gemini": f"AQ.{some(50)}", "vercel": f"vcp_A{some(30)}", "azure devops": f"{some(76)}AZDO{some(4)}",
    "azure ai": f"{some(52)}JQQJ9{some(27)}", "azure storage": f"{some(76)}+ASt{some(6)}==",
    "azure search": f"{some(42)}AzSe{some(6)}", "azure cosmos": f"{some(76)}ACDb{some(6)}==",
    "voyage": f"pa-A{some(42)}", "firecrawl": f"fc-{some(32, HEX)}", "wandb": f"wandb_v1_{some(48)}",
    "snyk": f"snyk_uat.{some(8)}.{some(60)}", "buildkite": f"bkaj_{some(40, HEX)}", "circleci": f"CCIPRJ_{some(22)}_{some(40, HEX)}",
    "deno": f"ddp_{some(36)}", "axiom": f"xaat-{UUID}", "honeycomb": f"hcaik_{some(26, LOWER)}{some(32)}",
    "atlas": f"mdb_sa_sk_{some(40)}", "nostr": "nsec1" + some(58, "023456789acdefghjklmnpqrstuvwxyz").replace("b", "c"),
    "bitcoin": f"xprv{some(107, MIXED.translate(str.maketrans('', '', '0OIl')))}".replace("0", "1"),
    "llamacloud": f"llx-{some(48)}", "trigger": f"tr_prod_{some(24)}", "inngest": f"signkey-prod-{some(64, HEX)}",
    "polar": f"polar_oat_{some(43)}", "paddle": f"pdl_live_apikey_{some(50, LOWER)}", "socket": f"sktsec_{some(44)}",
    "clickup": f"pk_12345678_{some(32, UPPER)}", "woocommerce": f"ck_{some(40, HEX)}", "gitea": f"gta_{some(40, HEX)}",
    "cursor": f"key_{some(64, HEX)}", "onesignal": f"os_v2_app_{some(103, LOWER)}", "modal": f"ak-A{some(21)}",
    "stytch": f"secret-live-{some(40)}", "cloudflare user": f"cfut_{some(40)}",
}  # fmt: skip


@pytest.mark.parametrize("repeated", [0, 400], ids=["alone", "far inside"])
def test_a_secret_that_is_written_out_is_not_recorded(repeated: int) -> None:
    """Alone, and far inside a long text, where it is looked for another way."""
    filler = "The author rounds half to even, and passes it on.\n\n" * repeated
    assert not repeated or len(filler) > LONG_LINE
    written = {way: recorded(f"{filler}{way}\n\n{filler}" if repeated else way) for way in FORMS}
    assert [way for way, text in written.items() if any(secret in text for secret in (V, W, H, BLOCK))] == []


@pytest.mark.parametrize("coding", ENCODED)
def test_a_secret_that_is_encoded_twice_is_not_recorded(coding: str) -> None:
    """Nor what decodes to one in two steps."""
    assert ENCODED[coding] not in recorded(f"decode {ENCODED[coding]} please")


@pytest.mark.parametrize("around", ["{}", "use {} there", '"{}"', "x={}"])
def test_a_token_is_not_recorded(around: str) -> None:
    """Of no kind, wherever it stands in text."""
    assert [kind for kind, token in TOKENS.items() if token in recorded(around.format(token))] == []


@pytest.mark.parametrize(
    "text",
    [
        "the token is refreshed-every-2-hours", "password requirements2026 apply", "key: 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "the key is 366659fd-0f23-4577-b9d7-16bcba37a8e9", "secret/data/atlas2026/config1", "token 2026-05-04T09:12:00Z",
        "pass tests/unit/test_4_of_12.py::test_a1", "auth v1.2.3-rc.4", "token count is 128000", "echo build-2026-05 | tee x",
        "login('page', 'welcome-back')", "zip -r out.zip src", "openssl version -a", "az login --tenant x",
        "const token: string = await getToken2()", "setToken(token2)", ".password('must hold 1 digit')",
        "- name: API_TOKEN\n  valueFrom: 1", "- name: RETRIES\n  value: 1000000", "<key>Token</key><string>$(TOKEN)</string>",
        "&quot;token&quot;: &quot;&quot;", "**Token:** see part 2", "**Key**: `createdAt2`", "use passwords2 or b'token'", "the mosquitto -P 1883",
        "requirepass yourpassword", "ssh-keygen -t ed25519 -N '' -f key1", "security find-generic-password -w", "twine upload dist/x-1.0.0",
        "recovery key 483920", "APP_KEY=my-app", "BYPASS=1", "set-cookie: a=1; expires=Wed, 21 Oct 2026 07:28:00 GMT; domain=app1.corp.example",
        "the bearer token expires_in_3600_seconds", "--key-file=/etc/ssl/key1.pem", "API key rotation2026",
    ],
)  # fmt: skip
def test_what_only_stands_beside_such_a_name_stays(text: str) -> None:
    """Words, ids, hashes, dates, versions, paths."""
    assert Redactor({}).document({"text": text}) == {"text": text}
