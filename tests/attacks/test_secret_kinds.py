"""A hundred kinds of secrets, and the ways in which people write them: none stands in a recording."""

from __future__ import annotations

import base64
import json
import random
from typing import Any
from urllib.parse import quote

import pytest

from signet_recording_proxy.redaction.redactor import Redactor
from signet_recording_proxy.redaction.secret_patterns import KINDS

HEX, LOWER = "0123456789abcdef", "abcdefghijklmnopqrstuvwxyz0123456789"
MIXED = LOWER + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
UPPER, UUID = MIXED.upper(), "366659fd-0f23-4577-b9d7-16bcba37a8e9"


def some(count: int, letters: str = MIXED, seed: str = "") -> str:
    """So many characters, the same ones each time; a digit and a letter are among them."""
    drawn = random.Random(f"{count}{letters}{seed}")
    return "".join(drawn.choice(letters) for _ in range(count - 2)) + "7" + letters[10 % len(letters)]


TOKENS = {
    "gitlab": f"glpat-{some(20)}", "gitlab runner": f"glrt-{some(20)}", "npm": f"npm_{some(36)}",
    "hugging face": f"hf_{some(34)}", "stripe": f"sk_live_{some(24)}", "stripe restricted": f"rk_test_{some(24)}",
    "stripe webhook": f"whsec_{some(32)}", "pypi": f"pypi-AgEIcHlwaS5vcmc{some(60)}",
    "sendgrid": f"SG.{some(22)}.{some(43)}", "slack app": f"xapp-1-A{some(10)}-{some(13)}-{some(40)}",
    "discord bot": f"M{some(25)}.{some(6)}.{some(38)}", "telegram": f"123456789:AA{some(33)}",
    "shopify": f"shpat_{some(32, HEX)}", "twilio": f"SK{some(32, HEX)}", "mailgun": f"key-{some(32, HEX)}",
    "mailchimp": f"{some(32, HEX)}-us12", "brevo": f"xkeysib-{some(64, HEX)}-{some(16)}",
    "digitalocean": f"dop_v1_{some(64, HEX)}", "databricks": f"dapi{some(32, HEX)}", "vault": f"hvs.{some(24)}",
    "terraform": f"{some(14)}.atlasv1.{some(64)}", "linear": f"lin_api_{some(40)}", "notion": f"ntn_{some(46)}",
    "figma": f"figd_{some(40)}", "grafana": f"glsa_{some(32)}_{some(8, HEX)}", "doppler": f"dp.pt.{some(43)}",
    "planetscale": f"pscale_tkn_{some(43)}", "postman": f"PMAK-{some(24, HEX)}-{some(34, HEX)}",
    "new relic": f"NRAK-{some(27, MIXED.upper())}", "sentry": f"sntrys_{some(60)}", "square": f"sq0atp-{some(22)}",
    "atlassian": f"ATATT3{some(60)}", "bitbucket": f"ATBB{some(32)}", "google access": f"ya29.{some(60)}",
    "google secret": f"GOCSPX-{some(28)}", "google refresh": f"1//0{some(40)}", "azure app": f"ab37Q~{some(34)}",
    "facebook": f"EAAC{some(60)}", "groq": f"gsk_{some(52)}", "perplexity": f"pplx-{some(48)}",
    "xai": f"xai-{some(80)}", "replicate": f"r8_{some(37)}", "tavily": f"tvly-{some(32)}",
    "supabase": f"sbp_{some(40, HEX)}", "netlify": f"nfp_{some(36)}", "fly": f"fo1_{some(43)}",
    "render": f"rnd_{some(28)}", "docker": f"dckr_pat_{some(27)}", "rubygems": f"rubygems_{some(48, HEX)}",
    "crates": f"cio{some(32)}", "clojars": f"CLOJARS_{some(60, LOWER)}", "nuget": f"oy2{some(43, LOWER)}",
    "artifactory": f"AKCp{some(69)}", "age": f"AGE-SECRET-KEY-1{some(58, MIXED.upper())}",
    "pulumi": f"pul-{some(40, HEX)}", "buildkite": f"bkua_{some(40, HEX)}", "circleci": f"CCIPAT_{some(40)}",
    "airtable": f"pat{some(14)}.{some(64, HEX)}", "contentful": f"CFPAT-{some(43)}",
    "dynatrace": f"dt0c01.{some(24, MIXED.upper())}.{some(64, MIXED.upper())}", "easypost": f"EZAK{some(54)}",
    "heroku": f"HRKU-{some(40)}", "mapbox": f"sk.eyJ{some(60)}.{some(22)}", "prefect": f"pnu_{some(36, LOWER)}",
    "readme": f"rdme_{some(70, LOWER)}", "shippo": f"shippo_live_{some(40, HEX)}", "typeform": f"tfp_{some(59)}",
    "tailscale": f"tskey-auth-{some(12)}-{some(32)}", "onepassword": f"ops_eyJ{some(80)}",
    "adafruit": f"aio_{some(28)}", "alibaba": f"LTAI{some(20)}", "asana": f"1/1234567890123456:{some(32, HEX)}",
    "openai": f"sk-proj-{some(48)}", "anthropic": f"sk-ant-api03-{some(60)}", "github": f"ghp_{some(36)}",
    "github fine": f"github_pat_{some(40)}", "slack": f"xoxb-{some(11)}-{some(24)}", "aws": "AKIAIOSFODNN7EXAMPLE",
    "google key": f"AIza{some(35)}", "signet": f"sig_sk_{some(40)}",
    "cloudflare": f"v1.0-{some(24, HEX)}-{some(146, HEX)}",
    "gitlab oauth": f"gloas-{some(64)}", "gitlab flags": f"glffct-{some(20)}", "gitlab old": f"GR1348941{some(20)}",
    "gitlab workspace": f"glwt-{some(20)}", "hugging face oauth": f"hf_oauth_eyJ{some(40)}.{some(40)}.{some(43)}",
    "nvidia": f"nvapi-{some(64)}", "cerebras": f"csk-{some(48, LOWER)}", "pinecone": f"pcsk_{some(6)}_{some(63)}",
    "langsmith": f"lsv2_pt_{some(32, HEX)}_{some(10, HEX)}",
    "langsmith service": f"lsv2_sk_{some(32, HEX)}_{some(10, HEX)}",
    "sourcegraph": f"sgp_{some(40, HEX)}", "sourcegraph instance": f"sgp_{some(16, HEX)}_{some(40, HEX)}",
    "sonar": f"squ_{some(40, HEX)}", "sonar project": f"sqp_{some(40, HEX)}", "sonar analysis": f"sqa_{some(40, HEX)}",
    "openshift": f"sha256~{some(43)}", "hubspot": f"pat-na1-{UUID}", "hubspot eu": f"pat-eu1-{UUID}",
    "plaid": f"access-production-{UUID}", "plaid sandbox": f"access-sandbox-{UUID}",
    "duffel": f"duffel_live_{some(43)}", "duffel test": f"duffel_test_{some(43)}", "fireworks": f"fw_A{some(23)}",
    "jina": f"jina_{some(32, HEX)}{some(28)}", "together": f"tgp_v1_{some(43)}", "elevenlabs": f"sk_{some(48, HEX)}",
    "bedrock": f"ABSK{some(120)}==", "bedrock short": f"bedrock-api-key-{some(200)}",
    "amazon": f"amzn1.oa2-cs.v1.{some(64, HEX)}", "amazon seller": f"amzn.mws.{UUID}",
    "aws old": "A3TXABCDEFGHIJKLMNO2",
    "onepassword device": f"A3-{some(6, UPPER)}-{some(11, UPPER)}-{some(5, UPPER)}-{some(5, UPPER)}-{some(5, UPPER)}",
    "adobe": f"p8e-{some(32, LOWER)}",
    "authress": f"sc_{some(12, LOWER)}.{some(5, LOWER)}.acc_{some(12, LOWER)}.{some(60)}",
    "clickhouse": f"4b1d{some(38)}", "defined": f"dnkey-{some(26, LOWER)}-{some(52, LOWER)}",
    "dropbox": f"sl.{some(135)}", "dropbox user": f"sl.u.{some(135)}", "flutterwave": f"FLWSECK_TEST-{some(32, HEX)}-X",
    "frameio": f"fio-u-{some(64)}", "harness": f"pat.{some(22)}.{some(24)}.{some(20)}", "infracost": f"ico-A{some(31)}",
    "intra": f"s-s4t2ud-{some(64, HEX)}", "maxmind": f"{some(6)}_{some(29)}_mmk", "octopus": f"API-{some(26, UPPER)}",
    "scalingo": f"tk-us-A{some(47)}", "settlemint": f"sm_pat_{some(16)}", "yandex": f"t1.{some(40)}.{some(86)}",
    "yandex key": f"AQVN{some(36)}", "resend": f"re_A{some(7)}_{some(24)}", "posthog": f"phx_{some(43)}",
    "neon": f"napi_{some(64, LOWER)}", "apify": f"apify_api_{some(36)}", "e2b": f"e2b_{some(40, HEX)}",
    "runpod": f"rpa_{some(46, UPPER)}", "browserbase": f"bb_live_{some(28)}",
    "vercel": f"vercel_blob_rw_{some(16)}_{some(30)}", "aiven": f"AVNS_A{some(18)}", "wakatime": f"waka_{UUID}",
    "trello": f"ATTA{some(64, HEX)}", "mem0": f"m0-A{some(39)}", "context7": f"ctx7sk-{UUID}",
    "stripe prod": f"rk_prod_{some(24)}", "facebook user": f"EAAG{some(120)}", "prefect mixed": f"pnu_A{some(35)}",
    "dynatrace platform": f"dt0s16.{some(24, UPPER)}.{some(64, UPPER)}",
    "artifactory reference": f"cmVmdGtuOj{some(54)}",
    "grafana old": f"eyJrIjoi{some(44)}LCJuIjoi{some(20)}",
    "brevo mail": f"xsmtpsib-{some(64, HEX)}-{some(16)}", "mailersend": f"mlsn.{some(64, HEX)}",
    "supermemory": f"sm_{some(22)}_A{some(60)}", "revenuecat": f"sk_A{some(27)}", "tencent": f"AKIDA{some(31)}",
    "firebase": f"{some(11)}:APA91b{some(134)}", "cal.com": f"cal_live_{some(32, HEX)}",
    "onepassword slash": f"ops_eyJ{some(60)}/{some(60)}+{some(60)}",
    "salesforce": f"00D{some(12)}!{some(96)}",
}  # fmt: skip
P = "hunter2Correct"
WRITTEN = {
    "aws ini": (f"aws_secret_access_key = {some(40)}", some(40)), "yaml": (f"password: {P}", P),
    "yaml quoted": (f'api_key: "{P}"', P), "python dict": ("{'password': '" + P + "'}", P),
    "shell": (f"DB_PASS={P}", P), "powershell": (f"$env:API_TOKEN = '{P}'", P),
    "powershell key": (f'$env:OPENAI_API_KEY="{P}"', P), "curl": (f"curl -sS -u robin:{P} https://h/x", P),
    "curl user": (f"curl --user 'robin:{P}' https://h", P), "mysql": (f"mysql -h db -u root -p{P} atlas", P),
    "mysqldump": (f"mysqldump -uroot -p'{P}' atlas", P), "sshpass": (f"sshpass -p {P} ssh h", P),
    "sshpass quoted": (f"sshpass -p '{P}' ssh h", P), "docker": (f"docker login -u robin -p {P} registry", P),
    "redis": (f"redis-cli -h h -a {P} ping", P), "openssl": (f"openssl rsa -passin pass:{P} -in k", P),
    "xml": (f"<password>{P}</password>", P), "xml attributes": (f'<api-key type="x">{P}</api-key>', P),
    "html": (f'<input type="hidden" name="api_key" value="{P}">', P), "env output": (f"A=1\nDEPLOY_KEY={P}\nB=2", P),
    "env key": (f"KEY={P}", P), "toml": (f'client_secret = "{P}"', P), "ruby": (f":password => '{P}'", P),
    "go": (f'password := "{P}"', P), "javascript": (f"const apiKey = '{P}';", P), "backticks": (f"token = `{P}`", P),
    "slack hook": (f"https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{some(24)}", some(24)),
    "discord hook": (f"https://discord.com/api/webhooks/123456789012345678/{some(68)}", some(68)),
    "teams hook": (f"https://acme.webhook.office.com/webhookb2/{some(36)}@{some(36)}", some(36)),
    "azure": (f"AccountName=a;AccountKey={some(86)}==;X=y", some(86)),
    "pgp": (f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{some(64)}\n-----END PGP PRIVATE KEY BLOCK-----", some(64)),
    "putty": (f"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{some(48)}\nPrivate-MAC: {some(64, HEX)}",
              some(48)),
    "multipart": (f"--x\r\nContent-Disposition: form-data; name=password\r\n\r\n{P}\r\n--x--", P),
    "percent": (f"q=password%3D{P}", P), "twice percent": (quote(quote(f"token={TOKENS['gitlab']}")), some(20)),
    "blanks": (f"password          =   {P}", P), "option": (f"app --db-password={P}", P),
    "option apart": (f"app --db-password {P}", P), "property": (f"java -Dspring.datasource.password={P}", P),
    "rails": (f"SECRET_KEY_BASE={some(40, HEX)}", some(40, HEX)), "escaped quote": (f'password="ab\\"c{P}"', P),
    "escaped quote in a variable": (f'DB_PASSWORD="ab\\"c{P}"', P), "separators": (f'password="ab&c,{P}"', P),
    "upper secret": ('clientSecret: "A1BCDEFGHIJ234KLMNOP"', "A1BCDEFGHIJ234KLMNOP"),
    "netrc": (f"machine api.example.org login robin password {P}", P),
    "netrc lines": (f"machine api.example.org\n  login robin\n  password {P}", P),
    "netrc default": (f"default login robin password {P}", P), "pgpass": (f"db:5432:atlas:robin:{P}", P),
    "pgpass any": (f"*:*:*:robin:{P}", P), "yaml block": (f"password: |\n  {P}\nuser: robin", P),
    "yaml folded": (f"stringData:\n  api_key: >-\n    {P}\n  x: y", P),
    "sql": (f"ALTER USER robin IDENTIFIED BY '{P}';", P), "postgres": (f"CREATE ROLE robin LOGIN PASSWORD '{P}';", P),
    "mysql statement": (f"CREATE USER 'r'@'h' IDENTIFIED WITH mysql_native_password BY '{P}'", P),
    "mysql set": (f"SET PASSWORD FOR r = PASSWORD('{P}')", P), "url at": (f"postgres://robin:ab@{P}@db.org/atlas", P),
    "url slash": (f"postgres://robin:ab/{P}@db.org/atlas", P), "url hash": (f"https://robin:a@b/w#{P}@host/x", P),
    "json list": (f'{{"password": ["{P}"]}}', P), "json pair": (f'[["password", "{P}"]]', P),
    "json name": (f'{{"name": "API_KEY", "value": "{P}"}}', P),
    "json twice": (json.dumps(f'[{{"password":["{P}"]}}]'), P),
    "json changed": (f'{{"password": {{"current": "{P}", "new": "{P}"}}}}', P),
    "json value first": (json.dumps(f'{{"value":"{P}","name":"API_KEY"}}'), P),
    "gitlab session": (f"_gitlab_session={some(32, LOWER)}", some(32, LOWER)),
    "alchemy": (f"https://eth-mainnet.g.alchemy.com/v2/{some(32)}", some(32)),
    "infura": (f"wss://mainnet.infura.io/ws/v3/{some(32, HEX)}", some(32, HEX)),
    "zapier hook": (f"https://hooks.zapier.com/hooks/catch/1234567/{some(13, LOWER)}/", some(13, LOWER)),
    "telegram path": (f"https://api.telegram.org/bot1234567890:AA{some(33)}/getMe", some(33)),
    "mongo": (f"mongosh -u admin -p '{P}' --quiet", P), "sudo": (f"echo '{P}' | sudo -S apt install jq", P),
    "aws secret": (f"aws secretsmanager create-secret --name db --secret-string '{P}'", P),
    "aws parameter": (f"aws ssm put-parameter --name /db --type SecureString --value '{P}'", P),
    "php": (f"define('DB_PASSWORD', '{P}');", P), "wifi": (f'network={{ ssid="Home" psk="{P}" }}', P),
    "mnemonic": (f"seed phrase: {' '.join(['able', 'river', 'stone'] * 4)}", "river stone able"),
    "table": (f"| API_TOKEN | {some(40)} |", some(40)),
    "url": (f"postgres://robin:{P}@db/atlas", P), "query": (f"https://h/x?api_key={P}", P),
}  # fmt: skip
CODED = {
    "base64": base64.b64encode(f"password={P}".encode()).decode(),
    "base64 token": base64.b64encode(f"deploy with {TOKENS['gitlab']} now".encode()).decode(),
    "base64url": base64.urlsafe_b64encode(f"?>?>{TOKENS['npm']}".encode()).decode().rstrip("="),
    "hex": f"api_key={P}".encode().hex(),
    "hex token": TOKENS["stripe"].encode().hex(),
    "base64 between escapes": quote(f"decode {base64.b64encode(TOKENS['npm'].encode()).decode()} please"),
}


def recorded(text: str) -> str:
    """All that a recording holds of text that stands in a prompt, an answer, a header, a path, a query and a mark."""
    redactor = Redactor({})
    body: dict[str, Any] = {"json": {"userMessage": text, "tool": {"stdout": text}}}
    request = {"method": "POST", "path": "/x", "query": [("q", text)], "headers": [("x-a", text)], "body": body}
    response = {"status": 200, "headers": [], "body": {"text": text, "media_type": "text/plain"}}
    line = {"kind": "exchange", "seq": 1, "conn": 1, "t0": 0, "t1": 1, "request": request, "response": response}
    return redactor.exchange(line).decode() + json.dumps(redactor.document({"text": text}))


@pytest.mark.parametrize("around", ["{}", "use {} there", '"{}"', "x={}", "({}),"])
def test_a_token_is_not_recorded(around: str) -> None:
    """Of no kind, wherever it stands in text."""
    assert [kind for kind, token in TOKENS.items() if token in recorded(around.format(token))] == []


@pytest.mark.parametrize("around", ["{}", "Please run this:\n{}\nand tell me."])
def test_a_secret_that_is_written_out_is_not_recorded(around: str) -> None:
    """By what names it, in settings, scripts, command lines, markup and addresses."""
    ways = [way for way, (text, secret) in WRITTEN.items() if secret in recorded(around.replace("{}", text))]
    assert ways == []


@pytest.mark.parametrize("coding", CODED)
def test_a_secret_that_is_encoded_is_not_recorded(coding: str) -> None:
    """Nor what decodes to one."""
    assert CODED[coding] not in recorded(f"decode {CODED[coding]} please")


def test_there_are_a_hundred_kinds() -> None:
    """Each issuer of the table is among them."""
    assert len(TOKENS) + len(WRITTEN) + len(CODED) >= 100
    assert len(KINDS) >= 70


SUBJECTS = ("The billing service", "Our token budget", "A password policy", "The API key rotation", "Secret santa",
            "The session", "My keyboard", "The auth flow", "This passage", "The credential helper")  # fmt: skip
VERBS = ("stores", "needs", "explains", "replaces", "documents", "mentions", "forgets")
OBJECTS = (
    "password: required", "token: string", "the key is under the mat", "password = get_password()",
    "api_key=os.environ['KEY']", "MAX_TOKENS=4096", "x = tokens[0]", "see https://example.org/a/b?page=2#top",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "id 366659fd-0f23-4577-b9d7-16bcba37a8e9", "100% of it",
    "port 3850: open", "secret: null", "the sort_key=created_at of rows", "if (token == null) return;",
    "<token>", "-p 8080:80", "SESSION_KEY=session-12", "/home/robin/projects/atlas-billing/src/index.ts",
    "naïve façade",
)  # fmt: skip
NEARLY = (
    "fw_applicationConfigurationLoader", f"fw_{some(32, HEX)}", f"ico-{some(32, HEX)}", f"m0-{some(40, HEX)}",
    "API-01ARZ3NDEKTSV4RRFFQ69G5FAV", "API-FIRST-DESIGN-OF-2026", "sqp_helper_for_the_longest_name_of_all_of_them",
    "sha256~latest", f"sha256:{some(64, HEX)}", "access-sandbox-of-the-billing-team-2026", "pat-na1-billing",
    "tk-us-billing-service-with-a-rather-long-name-for-2026", "re_compiled_expressions_of_the_parser", "sm_part_of_it",
    "csk-toolkit", "jina_embeddings_v3_for_the_memories_of_2026", "duffel_test_client", "nvapi-client-for-python-3",
    "t1.column_name", "pat.name.first", "sl.strip()", "sk_buff_of_the_network_stack_in_version_6", "AVNS_DEFAULT_VALUE",
    "sgp_localization_of_everything_in_2026", "hf_oauth_redirect_uri", "glossary-of-all-the-words-2026", "EAAA",
    "sk_learn_pipeline_of_the_year_2026_for_the_billing_team", "AKIDS_OF_THE_YEAR_2026_AND_OF_THE_NEXT",
    "cal_live_events", "mlsn.example", "sm_" + some(22, LOWER), "https://docs.alchemy.com/v2/reference-of-2026",
    "https://mainnet.infura.io/v3/YOUR_KEY", "define('DB_NAME', 'atlas2026')", "mnemonic: twelve words, for the wallet",
    "token='sig_sk_...'", "mongosh --port 27017",
    "waka_waka_this_time_for_africa_2010", "ATTACHMENT_OF_THE_MESSAGE_OF_2026", f"4b1d{some(36, HEX)}",
)  # fmt: skip
"""What only begins as a token does: names, hashes, ids that say when they were made."""


def test_what_only_begins_like_a_token_is_left_alone() -> None:
    """Wherever it stands."""
    for text in NEARLY:
        document = {"text": f"see {text} there", "note": text, "in": f'x="{text}"', "sessionKey": text, "project": text}
        assert Redactor({}).document(document) == document


def test_ordinary_text_is_left_alone() -> None:
    """1,400 sentences about passwords, tokens and keys that give none away: not one character changes."""
    texts = [f"{subject} {verb} {what}." for subject in SUBJECTS for verb in VERBS for what in OBJECTS]
    assert len(texts) == 1400
    redactor = Redactor({})
    changed = [text for text in texts if redactor.document({"text": text}) != {"text": text}]
    assert changed == []
