"""Programs, functions and settings that take a secret, and where it stands in what is written of them: data."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from signet_recording_proxy.redaction.shown_text import LINE_BREAK

_GIVEN = r"\\{0,4}[\"']?([^\s\"'\\|;&<>$-][^\s\"'\\|;&<>]{3,255}+)"
"""The value of an option: a word, without a variable."""


def _option(name: str) -> re.Pattern[str]:
    return re.compile(rf"\s{name}\s{{1,4}}{_GIVEN}")


_NAME = (
    r"(?i:passw(?:or[dt]|d)|pass_?phrase|secret|token"
    r"|(?:api|app|secret|access|private|auth|signing|encryption|master)_?key)"
)
_WITH_A_DIGIT = r"(?=[^\s\"'`<&]{0,255}[0-9])"


class Command(NamedTuple):
    """Programs, and an option by which they take a password; without a program the option names it itself.

    Text that holds it has one of `stems` in lower case, and there what `near` matches (in Python's expressions and in
    Rust's, in any case, in text and in an encoded line); and one of `marks` as they are, if there are any. `apart` is
    what the option cannot stand behind.
    """

    stems: tuple[str, ...]
    option: re.Pattern[str]
    program: re.Pattern[str] | None = None
    marks: tuple[str, ...] = ()
    apart: str = "\n|;"
    near: str = ""


COMMANDS: Final = (
    Command(
        ("curl",),
        re.compile(r"\s(?:-u|--(?:proxy-)?user)[ =]?\\{0,4}[\"']?[^\s:\"'\\]{1,64}+:([^\s\"'\\]{3,}+)"),
        re.compile(r"\bcurl\b"),
        ("-u", "--user", "--proxy-user"),
    ),
    Command(
        ("mysql", "mariadb"),
        re.compile(r"\s-p\\{0,4}[\"']?([^\s\"'\\-][^\s\"'\\]{2,}+)"),
        re.compile(r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b"),
        ("-p",),
    ),
    Command(("sshpass",), re.compile(r"\bsshpass\b\s{1,4}-p\s{0,4}\\{0,4}[\"']?([^\s\"'\\]{3,}+)")),
    Command(
        ("docker login", "podman login", "helm registry login"),
        re.compile(r"\s-p[ =]?\\{0,4}[\"']?([^\s\"'\\]{4,}+)"),
        re.compile(r"\b(?:docker|podman|helm registry) login\b"),
    ),
    Command(
        ("redis-cli",),
        re.compile(r"\s-a\s{1,4}\\{0,4}[\"']?([^\s\"'\\]{4,}+)"),
        re.compile(r"\bredis-cli\b"),
    ),
    Command(("-pass",), re.compile(r"\s-pass(?:in|out|word)?\s{1,4}pass:([^\s\"'\\]{3,}+)"), marks=("pass:",)),
    Command(("ldap",), _option("-w"), re.compile(r"\bldap[a-z]{0,8}\b"), ("-w",)),
    Command(("openssl enc",), _option("-k"), re.compile(r"\bopenssl enc\b")),
    Command(
        ("zip ", "sqlcmd", "bcp "),
        _option("-P"),
        re.compile(r"\b(?:zip|unzip|sqlcmd|bcp)\b"),
        ("-P",),
    ),
    Command(
        ("useradd", "usermod", "az login", "az acr login"),
        _option("-p"),
        re.compile(r"\b(?:useradd|usermod|az login|az acr login)\b"),
    ),
    Command(
        ("7z ", "7za ", "7zz ", "rar "),
        re.compile(rf"\s-p{_GIVEN}"),
        re.compile(r"\b(?:7za?|7zz|rar|unrar)\b"),
        ("-p",),
    ),
    Command(
        ("keytool", "signer"),
        re.compile(rf"\s--?[a-z-]{{0,12}}pass\s{{1,4}}(?:pass:)?{_GIVEN}"),
        re.compile(r"\b(?:keytool|jarsigner|apksigner)\b"),
        ("pass",),
    ),
    Command(
        ("htpasswd",),
        re.compile(
            r"\s-(?:(?=[A-Za-z]{0,4}n)[A-Za-z]{0,4}b[A-Za-z]{0,4}|[A-Za-z]{0,4}b[A-Za-z]{0,4}\s++\S++)\s++\S++\s++"
            + _GIVEN
        ),
        re.compile(r"\bhtpasswd\b"),
    ),
    Command(("twine",), _option("(?:-p|--password)"), re.compile(r"\btwine upload\b")),
    Command(("mosquitto",), _option("-P"), re.compile(r"\bmosquitto_(?:pub|sub|rr)\b"), ("-P",)),
    Command(("ssh-keygen",), _option("-[NP]"), re.compile(r"\bssh-keygen\b")),
    Command(("security ",), _option("-w"), re.compile(r"\bsecurity (?:add|set)-[a-z-]{1,40}\b"), ("-w",)),
    Command(
        ("lftp",), re.compile(r"\s-u[ =]?\\{0,4}[\"']?[^\s,\"'\\]{1,64},([^\s\"'\\]{4,}+)"), re.compile(r"\blftp\b")
    ),
    Command(
        ("mc alias set", "mc config host add"),
        re.compile(rf"\bmc (?:alias set|config host add)(?:\s++\S{{1,200}}){{3}}\s++{_GIVEN}"),
    ),
    Command(("encrypt_string",), re.compile(rf"\bansible-vault encrypt_string\s{{1,4}}{_GIVEN}")),
    Command(("requirepass",), re.compile(rf"\brequirepass\s{{1,4}}{_WITH_A_DIGIT}{_GIVEN}")),
    Command(
        ("cookie:",),
        re.compile(
            r"[;:]\s{0,4}(?!(?i:domain|path|expires|max-age|samesite)=)[\w.-]{1,64}="
            r"(?=[^\s\"'\\;,]{0,255}?[0-9])(?=[^\s\"'\\;,]{0,255}?[A-Za-z])([^\s\"'\\;,]{16,}+)"
        ),
        re.compile(r"(?i:\bcookie):"),
        ("=",),
        "\n",
    ),
    Command(
        ("str =", "str=", "string =", "string=", "string? ="),
        re.compile(
            rf"{_NAME}\s{{0,4}}:?\s{{0,4}}(?:&(?:'static\s)?)?(?i:str(?:ing)?)\?? ?= ?\\{{0,4}}[\"'`]"
            rf"{_WITH_A_DIGIT}([^\s\"'`\\]{{8,256}}+)\\{{0,4}}[\"'`]"
        ),
        near=r"str(?:ing)?\?? ?= ?\\{0,40}[\"'`]",
    ),
    Command(
        ("word(", "passwd(", "phrase(", "secret(", "token(", "key("),
        re.compile(
            rf"(?:\b(?:set|with|use)_?|\.)[A-Za-z_]{{0,24}}?{_NAME}\( ?\\{{0,4}}[\"']"
            rf"{_WITH_A_DIGIT}([^\s\"'\\]{{8,256}}+)\\{{0,4}}[\"']\s{{0,4}}[,)]"
        ),
        near=r"[a-z]+\( ?\\{0,40}[\"']",
    ),
    Command(
        ("value:",),
        re.compile(
            rf"\bname:\s{{1,4}}(?:\\{{0,4}}[\"'])?[A-Za-z0-9_.-]{{0,48}}{_NAME}"
            rf"(?:\\{{0,4}}[\"'])?[ \t]{{0,4}}{LINE_BREAK}"
            rf"\s{{1,64}}value:\s{{1,4}}(?:\\{{0,4}}[\"'])?{_WITH_A_DIGIT}([^\s\"'#\\]{{6,}}+)"
        ),
        marks=("name:",),
        near=r"value:\s{1,4}\\{0,40}[\"']?[^\s\"'#]{5}",
    ),
    Command(
        ("<string>",),
        re.compile(rf"<key>[^<]{{0,48}}{_NAME}</key>[\s\\]{{0,64}}<string>([^<\s]{{6,}}+)</string>"),
    ),
    Command(
        ("&quot;", "&#34;", "&#39;", "&#x22;", "&#x27;"),
        re.compile(
            rf"{_NAME}(?:&(?:quot|#34|#39|#x22|#x27);) {{0,4}}[:=,] {{0,4}}(?:&(?:quot|#34|#39|#x22|#x27);)"
            r"([^\s&\"'<>]{6,256}+)&"
        ),
        near=r"&(?:quot|#34|#39|#x22|#x27); {0,4}[:=,] {0,4}&(?:quot|#)",
    ),
    Command(("gh secret",), re.compile(rf"\s(?:-b|--body)[ =]{_GIVEN}"), re.compile(r"\bgh secret set\b")),
    Command(("mongo",), _option("-p"), re.compile(r"\bmongo(?:sh|dump|restore|export|import)?\b"), ("-p",)),
    Command(("--secret-string",), re.compile(rf"\s--secret-string[ =]{_GIVEN}")),
    Command(
        ("put-parameter",),
        re.compile(rf"\s--value[ =]{_GIVEN}"),
        re.compile(r"\bput-parameter\b[^\n]{0,300}SecureString"),
    ),
    Command(
        ("define(",),
        re.compile(
            r"\bdefine\(\s{0,4}\\{0,4}[\"'][A-Z_]{0,40}(?:PASSWORD|SECRET|TOKEN|_KEY|_SALT)\\{0,4}[\"']\s{0,4},"
            r"\s{0,4}\\{0,4}[\"'](?=[^\"'\n]{0,255}[0-9])([^\s\"']{6,256}+)[\"']"
        ),
    ),
    Command(("net use",), re.compile(rf"\s/user:\S++\s++{_GIVEN}"), re.compile(r"\bnet use\b"), ("/user:",)),
    Command(("net user",), re.compile(rf"\bnet user\s{{1,4}}[^\s/]\S{{0,64}}\s{{1,4}}{_GIVEN}\s{{1,4}}/")),
    Command(
        ("smbclient",),
        re.compile(r"\s-U\s{0,4}\\{0,4}[\"']?[^\s%\"']{1,64}%([^\s\"'\\]{4,}+)"),
        re.compile(r"\bsmbclient\b"),
    ),
    Command(
        ("-value",),
        re.compile(rf"(?i:-name\s{{1,4}}\S{{0,48}}(?:key|token|secret|password)\s{{1,4}}-value)\s{{1,4}}{_GIVEN}"),
    ),
    Command(
        ("securestring",),
        re.compile(r"(?i:convertto-securestring)\s{1,4}(?:-String\s{1,4})?\\{0,4}[\"']([^\s\"'\\]{4,}+)"),
    ),
    Command(
        ("curl", "wget", "http "),
        re.compile(r"\s(?:-b|--cookie)[ =]\\{0,4}[\"']?[\w.-]{1,64}=([^\s\"'\\;]{6,}+)"),
        re.compile(r"\b(?:curl|wget|http)\b"),
        ("-b", "--cookie"),
    ),
    Command(
        ("wandb login", "vault login", "rclone obscure", "snyk auth", "auth token", "signin --raw"),
        re.compile(
            r"\b(?:wandb login|vault login|rclone obscure|snyk auth|auth token(?=\s{1,4}\S{0,255}[0-9])|signin --raw)"
            rf"\s{{1,4}}{_GIVEN}"
        ),
    ),
    Command(
        ("echo ", "printf "),
        re.compile(
            r"\b(?:echo|printf)\s{1,4}(?:-n\s{1,4}|\\{0,4}[\"']%s\\{0,4}[\"']\s{1,4})?\\{0,4}[\"']?(?:[\w.-]{1,32}:)?"
            r"([^\s\"'|\\:]{6,256}+)\\{0,4}[\"']?\s{0,4}\|[^\n]{0,160}?"
            r"(?:--password-stdin|--with-token|chpasswd|--stdin|kv put|secrets? (?:set|create|put)|login|sudo -S"
            r"|secret-tool store|pass insert|cryptsetup|-passin stdin|--passphrase-fd)"
        ),
        marks=("|",),
    ),
    Command(
        ("<<<",),
        re.compile(
            r"(?:--password-stdin|--with-token|--stdin|chpasswd|login|secrets? (?:set|create|put)|env add)"
            rf"[^\n|;]{{0,160}}?<<<\s{{0,4}}{_GIVEN}"
        ),
    ),
    Command(
        ("auth=(", "auth(", "auth = (", "login(", "credentials(", "authenticate("),
        re.compile(
            r"(?i:\b(?:auth|login|log_in|basic_?auth|httpbasicauth|authenticate|credentials?)\s{0,4}=?\s{0,4}\()"
            r"\s{0,8}\\{0,4}[\"'][^\"'\n\\]{1,64}\\{0,4}[\"']\s{0,4},\s{0,8}\\{0,4}[\"'](?=\D{0,99}[0-9])([^\s\"'\\]{6,256}+)\\{0,4}[\"']"
        ),
    ),
    Command(
        ("'] =", '"] =', "']=", '"]=', "'] !=", '"] !='),
        re.compile(
            rf"\[\\{{0,4}}[\"'][A-Za-z0-9_.-]{{0,48}}{_NAME}\\{{0,4}}[\"']\]\s{{0,4}}(?:=|[!=]==?)\s{{0,4}}\\{{0,4}}[\"'`]"
            rf"{_WITH_A_DIGIT}([^\s\"'`\\]{{8,256}}+)\\{{0,4}}[\"'`]"
        ),
    ),
    Command(
        ("env ", "arg ", "set -x ", "set -gx ", "set -ux "),
        re.compile(
            rf"\b(?:ENV|ARG|set -[gu]?x)\s{{1,4}}[A-Z0-9_]{{0,48}}{_NAME}\s{{1,4}}\\{{0,4}}[\"']?"
            rf"{_WITH_A_DIGIT}([^\s\"'`$\\]{{8,256}}+)(?=[\s\"'\\]|\Z)"
        ),
        near=r"(?:env|arg|set -[gu]?x)\s{1,4}[a-z0-9_]{2}",
    ),
    Command(
        ("variable ",),
        re.compile(
            rf"\bvariable\s{{1,4}}\\{{0,4}}\"[a-z0-9_-]{{0,48}}{_NAME}\\{{0,4}}\"\s{{0,4}}\{{[^{{}}]{{0,300}}?"
            rf"\bdefault\s{{0,8}}=\s{{0,4}}\\{{0,4}}\"{_WITH_A_DIGIT}([^\s\"\\$]{{8,256}}+)\\{{0,4}}\""
        ),
        near=r"variable\s{1,4}\\{0,40}\"",
    ),
    Command(
        ("jwt.sign(", "jwt.encode(", "hmac.new(", "createhmac(", "fernet(", "pgp_sym_"),
        re.compile(
            r"\b(?:jwt\.(?:sign|encode)|hmac\.[Nn]ew|createHmac|Fernet|pgp_sym_(?:en|de)crypt(?:_bytea)?)\([^\n;]{0,120}?"
            rf"\\{{0,4}}[\"'`]{_WITH_A_DIGIT}([^\s\"'`\\]{{12,256}}+)\\{{0,4}}[\"'`]"
        ),
    ),
    Command(
        ("getconnection(", "new pdo(", "->connect(", "networkcredential("),
        re.compile(
            r"\b(?:getConnection|new PDO|DBI->connect|NetworkCredential)\("
            r"(?:\s{0,8}\\{0,4}[\"'][^\"'\n\\]{1,200}\\{0,4}[\"']\s{0,4},){1,2}"
            r"\s{0,8}\\{0,4}[\"'](?=[^\"'\n]{0,255}[0-9])([^\s\"'\\]{6,256}+)\\{0,4}[\"']\s{0,4}[,)]"
        ),
    ),
    Command(
        (".send_keys(", ".sendkeys(", ".fill(", ".type("),
        re.compile(
            r"(?i:passw|passphrase|pwd)[^\n]{0,60}?\)\.(?:send_keys|sendKeys|fill|type)\("
            r"\\{0,4}[\"'`]([^\s\"'`\\]{6,256}+)\\{0,4}[\"'`]"
        ),
    ),
    Command(
        ("?? ", "|| "),
        re.compile(
            rf"{_NAME}[A-Z_]{{0,8}}\s?(?:\?\?|\|\|)\s?\\{{0,4}}[\"'`]"
            rf"{_WITH_A_DIGIT}([^\s\"'`\\]{{12,256}}+)\\{{0,4}}[\"'`]"
        ),
        near=r"(?:\?\?|\|\|) \\{0,40}[\"'`]",
    ),
    Command(
        ("identified by ",),
        re.compile(rf"(?i:\bidentified by)\s{{1,4}}(?![\"']){_WITH_A_DIGIT}([^\s\"';,\\]{{6,256}}+)"),
    ),
    Command(
        ("rabbitmqctl ",),
        re.compile(rf"\brabbitmqctl (?:add_user|change_password)\s{{1,4}}\S{{1,64}}\s{{1,4}}{_GIVEN}"),
    ),
    Command(
        ("sqlplus ", "jdbc:oracle:"),
        re.compile(
            r"(?:\bsqlplus(?:\s-\S{1,16}){0,4}\s|jdbc:oracle:[a-z]{2,8}:)"
            r"[\"']?[^\s/\"'\\]{1,64}/([^\s@\"'\\]{4,256}+)@"
        ),
    ),
    Command(
        ("@tcp(",),
        re.compile(r"(?<![\w.])[\w.-]{1,64}+:([^\s\"'@/\\]{4,128}+)@tcp\("),
    ),
    Command(
        ("http ", "https ", "xh "),
        re.compile(r"\s(?:-a|--auth)[ =]\\{0,4}[\"']?[^\s:\"'\\]{1,64}:([^\s\"'\\]{4,256}+)"),
        re.compile(r"\b(?:https?|xhs?)\b"),
        (" -a", "--auth"),
    ),
    Command(("unseal key",), re.compile(r"(?i:\bunseal key)(?: [0-9])?\s{0,4}:\s{1,4}([A-Za-z0-9+/=]{40,256}+)")),
    Command(
        ("secret_id",),
        re.compile(
            r"\bsecret_id\\{0,4}[\"']?\s{0,4}[:=]\s{0,4}\\{0,4}[\"']?"
            r"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"
        ),
    ),
    Command(
        ("enable secret ", "enable password ", "snmp-server community "),
        re.compile(
            rf"\b(?:enable (?:secret|password)|snmp-server community)"
            rf"\s{{1,4}}(?:[0-9]\s{{1,4}})?{_WITH_A_DIGIT}{_GIVEN}"
        ),
    ),
    Command(("setuser ",), re.compile(r"(?i:\bsetuser)\s[^\n]{1,100}?\s>([^\s\"'\\]{6,256}+)")),
    Command(('psk "', "psk \\"), re.compile(r"\bPSK\s{1,2}\\{0,4}\"([^\s\"\\]{8,256}+)\\{0,4}\"")),
    Command(
        ("accounts:",),
        re.compile(r"\baccounts:\s{0,2}\[\s{0,8}\\{0,4}[\"'](0x[0-9a-f]{64})\\{0,4}[\"']"),
        near=r"accounts:\s{0,2}\[",
    ),
    Command(
        ("setup key", "app password", "application password", "app-specific password"),
        re.compile(
            r"(?i:\bsetup key|\b(?:app|application)(?:-specific)? password)[^\n:=]{0,40}[:=]\s{1,4}"
            r"([A-Z2-7]{16,64}+|(?:[A-Za-z0-9]{4}[ -]){3,7}[A-Za-z0-9]{4}(?![A-Za-z0-9]))"
        ),
    ),
    Command(
        ("/private-", "/reset-password/", "/reset_password/"),
        re.compile(r"/(?:private-|reset[-_]password/)(?=[A-Za-z_-]{0,255}[0-9])([A-Za-z0-9_-]{24,256}+)"),
    ),
    Command(
        (
            *("printenv ", "op read", "pass show", "bw get password", "print-access-token", "initial-password"),
            *("wg genkey", "wg genpsk", "gh auth token", "base64 -d", "get-login-password", "node-token"),
        ),
        re.compile(
            r"\b(?:printenv [A-Z0-9_]{0,40}(?:PASSWORD|TOKEN|SECRET|KEY)|op read|pass show|bw get password"
            r"|auth print-access-token|admin initial-password|wg gen(?:key|psk)|gh auth token|base64 -d"
            rf"|get-login-password|/node-token)\b[^\n]{{0,120}}{LINE_BREAK}{_WITH_A_DIGIT}"
            r"([^\s\"'<>\\]{8,4096}+)(?=[\s\\]|\Z)"
        ),
        apart="|;",
    ),
    Command(
        ("copy it now", "shown again", "see it again"),
        re.compile(
            rf"(?i:copy it now|shown again|see it again)[^\n]{{0,60}}(?:{LINE_BREAK}[ \t]{{0,16}}){{1,3}}"
            rf"{_WITH_A_DIGIT}"
            r"([^\s\"'<>\\]{16,4096}+)(?=[\s\\]|\Z)"
        ),
    ),
)
