"""Secrets that text assigns to a name: in settings, scripts, command lines, markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from signet_recording_proxy.redaction.glued_letters import LINE_BREAK
from signet_recording_proxy.redaction.secret_names import is_secret_member, is_secret_name, is_value

Token = Callable[[str], str]

STRING_PREFIX = "(?:[bB][rR]?|[rR][bB]?|[uULN])"
"""What marks a string that holds no variable: of bytes, raw, wide, national."""
_ASSIGNMENT = re.compile(
    r"(?<![A-Za-z0-9_.])(?<![A-Za-z0-9_.]-)([A-Za-z_][A-Za-z0-9_.-]{1,63}+)(\\{0,4}[\"'])?[ \t]{0,40}+"
    rf"(:=|=>|=|:)[ \t]{{0,40}}+(?:{STRING_PREFIX}(?=\\{{0,4}}[\"'`]))?(\\{{0,4}}[\"'`])?"
)
_BLOCK = re.compile(
    rf"[|>][+-]?[1-9]?[+-]?[ \t]{{0,40}}{LINE_BREAK}(?:[ \t]{{0,64}}{LINE_BREAK}){{0,8}}([ \t]{{1,64}}+)(?=\S)"
)
_BLOCK_LINE = re.compile(rf"{LINE_BREAK}([ \t]{{1,64}}+)(\S{{1,4096}}+)[ \t]{{0,64}}(?=[\r\n\x0b]|\Z)")
_BARE_LINE = re.compile(r"\S{1,4096}+(?=[ \t]{0,64}(?:[\r\n\x0b]|\Z))")
_INDENTED = re.compile(rf"[ \t]{{0,64}}{LINE_BREAK}([ \t]{{1,64}}+)\S")
_LONGEST = 4096
_BARE = re.compile(r"[^\s\"'<>;&|,(){}\[\]`\\]{4,512}+")
_ELEMENT = re.compile(r"<([A-Za-z_][A-Za-z0-9_.:-]{1,63}+)(?:\s[^<>]{0,200}+)?>([^<>]{3,400}+)</")
_NAMED = re.compile(r"(?:name|key)=\\{0,4}[\"']?([A-Za-z0-9_.\[\]-]{1,64}+)")
_VALUED = re.compile(r"value=\\{0,4}[\"']([^\"'<>\\]{3,400}+)")
_INPUT = re.compile(r"<(?:input|add|property|setting|param)\s[^<>]{1,600}+>", re.IGNORECASE)
ELEMENTS = (b"<input", b"<add", b"<property", b"<setting", b"<param")
"""How elements begin that name a value beside it."""
_KEYS = re.compile(r"(?:[A-Z0-9]{1,30}_){0,6}KEY\Z")
_NO_KEYS = re.compile(r"(?:SESSION|PRIMARY|PUBLIC|FOREIGN|CACHE|PARTITION|SORT|HOT|ROW|MAP|IDEMPOTENCY|SAVE)_KEY\Z")
_GIVEN = r"\\{0,4}[\"']?([^\s\"'\\|;&<>$-][^\s\"'\\|;&<>]{3,255}+)"
"""The value of an option: a word, without a variable."""


def _option(name: str) -> re.Pattern[str]:
    return re.compile(rf"\s{name}\s{{1,4}}{_GIVEN}")


_NAME = (
    r"(?i:passw(?:or[dt]|d)|pass_?phrase|secret|token"
    r"|(?:api|app|secret|access|private|auth|signing|encryption|master)_?key)"
)
_WITH_A_DIGIT = r"(?=[^\s\"'`<&]{0,255}[0-9])"


class _Command(NamedTuple):
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


_COMMANDS = (
    _Command(
        ("curl",),
        re.compile(r"\s(?:-u|--(?:proxy-)?user)[ =]?\\{0,4}[\"']?[^\s:\"'\\]{1,64}+:([^\s\"'\\]{3,}+)"),
        re.compile(r"\bcurl\b"),
        ("-u", "--user", "--proxy-user"),
    ),
    _Command(
        ("mysql", "mariadb"),
        re.compile(r"\s-p\\{0,4}[\"']?([^\s\"'\\-][^\s\"'\\]{2,}+)"),
        re.compile(r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b"),
        ("-p",),
    ),
    _Command(("sshpass",), re.compile(r"\bsshpass\b\s{1,4}-p\s{0,4}\\{0,4}[\"']?([^\s\"'\\]{3,}+)")),
    _Command(
        ("docker login", "podman login", "helm registry login"),
        re.compile(r"\s-p[ =]?\\{0,4}[\"']?([^\s\"'\\]{4,}+)"),
        re.compile(r"\b(?:docker|podman|helm registry) login\b"),
    ),
    _Command(
        ("redis-cli",),
        re.compile(r"\s-a\s{1,4}\\{0,4}[\"']?([^\s\"'\\]{4,}+)"),
        re.compile(r"\bredis-cli\b"),
    ),
    _Command(("-pass",), re.compile(r"\s-pass(?:in|out|word)?\s{1,4}pass:([^\s\"'\\]{3,}+)"), marks=("pass:",)),
    _Command(("ldap",), _option("-w"), re.compile(r"\bldap[a-z]{0,8}\b"), ("-w",)),
    _Command(("openssl enc",), _option("-k"), re.compile(r"\bopenssl enc\b")),
    _Command(
        ("zip ", "sqlcmd", "bcp "),
        _option("-P"),
        re.compile(r"\b(?:zip|unzip|sqlcmd|bcp)\b"),
        ("-P",),
    ),
    _Command(
        ("useradd", "usermod", "az login", "az acr login"),
        _option("-p"),
        re.compile(r"\b(?:useradd|usermod|az login|az acr login)\b"),
    ),
    _Command(
        ("7z ", "7za ", "7zz ", "rar "),
        re.compile(rf"\s-p{_GIVEN}"),
        re.compile(r"\b(?:7za?|7zz|rar|unrar)\b"),
        ("-p",),
    ),
    _Command(
        ("keytool", "signer"),
        re.compile(rf"\s--?[a-z-]{{0,12}}pass\s{{1,4}}(?:pass:)?{_GIVEN}"),
        re.compile(r"\b(?:keytool|jarsigner|apksigner)\b"),
        ("pass",),
    ),
    _Command(
        ("htpasswd",),
        re.compile(
            r"\s-(?:(?=[A-Za-z]{0,4}n)[A-Za-z]{0,4}b[A-Za-z]{0,4}|[A-Za-z]{0,4}b[A-Za-z]{0,4}\s++\S++)\s++\S++\s++"
            + _GIVEN
        ),
        re.compile(r"\bhtpasswd\b"),
    ),
    _Command(("twine",), _option("(?:-p|--password)"), re.compile(r"\btwine upload\b")),
    _Command(("mosquitto",), _option("-P"), re.compile(r"\bmosquitto_(?:pub|sub|rr)\b"), ("-P",)),
    _Command(("ssh-keygen",), _option("-[NP]"), re.compile(r"\bssh-keygen\b")),
    _Command(("security ",), _option("-w"), re.compile(r"\bsecurity (?:add|set)-[a-z-]{1,40}\b"), ("-w",)),
    _Command(
        ("lftp",), re.compile(r"\s-u[ =]?\\{0,4}[\"']?[^\s,\"'\\]{1,64},([^\s\"'\\]{4,}+)"), re.compile(r"\blftp\b")
    ),
    _Command(
        ("mc alias set", "mc config host add"),
        re.compile(rf"\bmc (?:alias set|config host add)(?:\s++\S{{1,200}}){{3}}\s++{_GIVEN}"),
    ),
    _Command(("encrypt_string",), re.compile(rf"\bansible-vault encrypt_string\s{{1,4}}{_GIVEN}")),
    _Command(("requirepass",), re.compile(rf"\brequirepass\s{{1,4}}{_WITH_A_DIGIT}{_GIVEN}")),
    _Command(
        ("cookie:",),
        re.compile(
            r"[;:]\s{0,4}(?!(?i:domain|path|expires|max-age|samesite)=)[\w.-]{1,64}="
            r"(?=[^\s\"'\\;,]{0,255}?[0-9])(?=[^\s\"'\\;,]{0,255}?[A-Za-z])([^\s\"'\\;,]{16,}+)"
        ),
        re.compile(r"(?i:\bcookie):"),
        ("=",),
        "\n",
    ),
    _Command(
        ("str =", "str=", "string =", "string=", "string? ="),
        re.compile(
            rf"{_NAME}\s{{0,4}}:?\s{{0,4}}(?:&(?:'static\s)?)?(?i:str(?:ing)?)\?? ?= ?\\{{0,4}}[\"'`]"
            rf"{_WITH_A_DIGIT}([^\s\"'`\\]{{8,256}}+)\\{{0,4}}[\"'`]"
        ),
        near=r"str(?:ing)?\?? ?= ?\\{0,40}[\"'`]",
    ),
    _Command(
        ("word(", "passwd(", "phrase(", "secret(", "token(", "key("),
        re.compile(
            rf"(?:\b(?:set|with|use)_?|\.)[A-Za-z_]{{0,24}}?{_NAME}\( ?\\{{0,4}}[\"']"
            rf"{_WITH_A_DIGIT}([^\s\"'\\]{{8,256}}+)\\{{0,4}}[\"']\s{{0,4}}[,)]"
        ),
        near=r"[a-z]+\( ?\\{0,40}[\"']",
    ),
    _Command(
        ("value:",),
        re.compile(
            rf"\bname:\s{{1,4}}(?:\\{{0,4}}[\"'])?[A-Za-z0-9_.-]{{0,48}}{_NAME}"
            rf"(?:\\{{0,4}}[\"'])?[ \t]{{0,4}}{LINE_BREAK}"
            rf"\s{{1,64}}value:\s{{1,4}}(?:\\{{0,4}}[\"'])?{_WITH_A_DIGIT}([^\s\"'#\\]{{6,}}+)"
        ),
        marks=("name:",),
        near=r"value:\s{1,4}\\{0,40}[\"']?[^\s\"'#]{5}",
    ),
    _Command(
        ("<string>",),
        re.compile(rf"<key>[^<]{{0,48}}{_NAME}</key>[\s\\]{{0,64}}<string>([^<\s]{{6,}}+)</string>"),
    ),
    _Command(
        ("&quot;", "&#34;", "&#39;", "&#x22;", "&#x27;"),
        re.compile(
            rf"{_NAME}(?:&(?:quot|#34|#39|#x22|#x27);) {{0,4}}[:=,] {{0,4}}(?:&(?:quot|#34|#39|#x22|#x27);)"
            r"([^\s&\"'<>]{6,256}+)&"
        ),
        near=r"&(?:quot|#34|#39|#x22|#x27); {0,4}[:=,] {0,4}&(?:quot|#)",
    ),
    _Command(("gh secret",), re.compile(rf"\s(?:-b|--body)[ =]{_GIVEN}"), re.compile(r"\bgh secret set\b")),
    _Command(("mongo",), _option("-p"), re.compile(r"\bmongo(?:sh|dump|restore|export|import)?\b"), ("-p",)),
    _Command(("--secret-string",), re.compile(rf"\s--secret-string[ =]{_GIVEN}")),
    _Command(
        ("put-parameter",),
        re.compile(rf"\s--value[ =]{_GIVEN}"),
        re.compile(r"\bput-parameter\b[^\n]{0,300}SecureString"),
    ),
    _Command(
        ("define(",),
        re.compile(
            r"\bdefine\(\s{0,4}\\{0,4}[\"'][A-Z_]{0,40}(?:PASSWORD|SECRET|TOKEN|_KEY|_SALT)\\{0,4}[\"']\s{0,4},"
            r"\s{0,4}\\{0,4}[\"'](?=[^\"'\n]{0,255}[0-9])([^\s\"']{6,256}+)[\"']"
        ),
    ),
    _Command(("net use",), re.compile(rf"\s/user:\S++\s++{_GIVEN}"), re.compile(r"\bnet use\b"), ("/user:",)),
    _Command(("net user",), re.compile(rf"\bnet user\s{{1,4}}[^\s/]\S{{0,64}}\s{{1,4}}{_GIVEN}\s{{1,4}}/")),
    _Command(
        ("smbclient",),
        re.compile(r"\s-U\s{0,4}\\{0,4}[\"']?[^\s%\"']{1,64}%([^\s\"'\\]{4,}+)"),
        re.compile(r"\bsmbclient\b"),
    ),
    _Command(
        ("-value",),
        re.compile(rf"(?i:-name\s{{1,4}}\S{{0,48}}(?:key|token|secret|password)\s{{1,4}}-value)\s{{1,4}}{_GIVEN}"),
    ),
    _Command(
        ("securestring",),
        re.compile(r"(?i:convertto-securestring)\s{1,4}(?:-String\s{1,4})?\\{0,4}[\"']([^\s\"'\\]{4,}+)"),
    ),
    _Command(
        ("curl", "wget", "http "),
        re.compile(r"\s(?:-b|--cookie)[ =]\\{0,4}[\"']?[\w.-]{1,64}=([^\s\"'\\;]{6,}+)"),
        re.compile(r"\b(?:curl|wget|http)\b"),
        ("-b", "--cookie"),
    ),
    _Command(
        ("wandb login", "vault login", "rclone obscure", "snyk auth", "auth token", "signin --raw"),
        re.compile(
            r"\b(?:wandb login|vault login|rclone obscure|snyk auth|auth token(?=\s{1,4}\S{0,255}[0-9])|signin --raw)"
            rf"\s{{1,4}}{_GIVEN}"
        ),
    ),
    _Command(
        ("echo ", "printf "),
        re.compile(
            r"\b(?:echo|printf)\s{1,4}(?:-n\s{1,4}|\\{0,4}[\"']%s\\{0,4}[\"']\s{1,4})?\\{0,4}[\"']?(?:[\w.-]{1,32}:)?"
            r"([^\s\"'|\\:]{6,256}+)\\{0,4}[\"']?\s{0,4}\|[^\n]{0,160}?"
            r"(?:--password-stdin|--with-token|chpasswd|--stdin|kv put|secrets? (?:set|create|put)|login|sudo -S"
            r"|secret-tool store|pass insert|cryptsetup|-passin stdin|--passphrase-fd)"
        ),
        marks=("|",),
    ),
    _Command(
        ("<<<",),
        re.compile(
            r"(?:--password-stdin|--with-token|--stdin|chpasswd|login|secrets? (?:set|create|put)|env add)"
            rf"[^\n|;]{{0,160}}?<<<\s{{0,4}}{_GIVEN}"
        ),
    ),
    _Command(
        ("auth=(", "auth(", "auth = (", "login(", "credentials(", "authenticate("),
        re.compile(
            r"(?i:\b(?:auth|login|log_in|basic_?auth|httpbasicauth|authenticate|credentials?)\s{0,4}=?\s{0,4}\()"
            r"\s{0,8}\\{0,4}[\"'][^\"'\n\\]{1,64}\\{0,4}[\"']\s{0,4},\s{0,8}\\{0,4}[\"'](?=\D{0,99}[0-9])([^\s\"'\\]{6,256}+)\\{0,4}[\"']"
        ),
    ),
    _Command(
        ("'] =", '"] =', "']=", '"]=', "'] !=", '"] !='),
        re.compile(
            rf"\[\\{{0,4}}[\"'][A-Za-z0-9_.-]{{0,48}}{_NAME}\\{{0,4}}[\"']\]\s{{0,4}}(?:=|[!=]==?)\s{{0,4}}\\{{0,4}}[\"'`]"
            rf"{_WITH_A_DIGIT}([^\s\"'`\\]{{8,256}}+)\\{{0,4}}[\"'`]"
        ),
    ),
    _Command(
        ("env ", "arg ", "set -x ", "set -gx ", "set -ux "),
        re.compile(
            rf"\b(?:ENV|ARG|set -[gu]?x)\s{{1,4}}[A-Z0-9_]{{0,48}}{_NAME}\s{{1,4}}\\{{0,4}}[\"']?"
            rf"{_WITH_A_DIGIT}([^\s\"'`$\\]{{8,256}}+)(?=[\s\"'\\]|\Z)"
        ),
        near=r"(?:env|arg|set -[gu]?x)\s{1,4}[a-z0-9_]{2}",
    ),
    _Command(
        ("variable ",),
        re.compile(
            rf"\bvariable\s{{1,4}}\\{{0,4}}\"[a-z0-9_-]{{0,48}}{_NAME}\\{{0,4}}\"\s{{0,4}}\{{[^{{}}]{{0,300}}?"
            rf"\bdefault\s{{0,8}}=\s{{0,4}}\\{{0,4}}\"{_WITH_A_DIGIT}([^\s\"\\$]{{8,256}}+)\\{{0,4}}\""
        ),
        near=r"variable\s{1,4}\\{0,40}\"",
    ),
    _Command(
        ("jwt.sign(", "jwt.encode(", "hmac.new(", "createhmac(", "fernet(", "pgp_sym_"),
        re.compile(
            r"\b(?:jwt\.(?:sign|encode)|hmac\.[Nn]ew|createHmac|Fernet|pgp_sym_(?:en|de)crypt(?:_bytea)?)\([^\n;]{0,120}?"
            rf"\\{{0,4}}[\"'`]{_WITH_A_DIGIT}([^\s\"'`\\]{{12,256}}+)\\{{0,4}}[\"'`]"
        ),
    ),
    _Command(
        ("getconnection(", "new pdo(", "->connect(", "networkcredential("),
        re.compile(
            r"\b(?:getConnection|new PDO|DBI->connect|NetworkCredential)\("
            r"(?:\s{0,8}\\{0,4}[\"'][^\"'\n\\]{1,200}\\{0,4}[\"']\s{0,4},){1,2}"
            r"\s{0,8}\\{0,4}[\"'](?=[^\"'\n]{0,255}[0-9])([^\s\"'\\]{6,256}+)\\{0,4}[\"']\s{0,4}[,)]"
        ),
    ),
    _Command(
        (".send_keys(", ".sendkeys(", ".fill(", ".type("),
        re.compile(
            r"(?i:passw|passphrase|pwd)[^\n]{0,60}?\)\.(?:send_keys|sendKeys|fill|type)\("
            r"\\{0,4}[\"'`]([^\s\"'`\\]{6,256}+)\\{0,4}[\"'`]"
        ),
    ),
    _Command(
        ("?? ", "|| "),
        re.compile(
            rf"{_NAME}[A-Z_]{{0,8}}\s?(?:\?\?|\|\|)\s?\\{{0,4}}[\"'`]"
            rf"{_WITH_A_DIGIT}([^\s\"'`\\]{{12,256}}+)\\{{0,4}}[\"'`]"
        ),
        near=r"(?:\?\?|\|\|) \\{0,40}[\"'`]",
    ),
    _Command(
        ("identified by ",),
        re.compile(rf"(?i:\bidentified by)\s{{1,4}}(?![\"']){_WITH_A_DIGIT}([^\s\"';,\\]{{6,256}}+)"),
    ),
    _Command(
        ("rabbitmqctl ",),
        re.compile(rf"\brabbitmqctl (?:add_user|change_password)\s{{1,4}}\S{{1,64}}\s{{1,4}}{_GIVEN}"),
    ),
    _Command(
        ("sqlplus ", "jdbc:oracle:"),
        re.compile(
            r"(?:\bsqlplus(?:\s-\S{1,16}){0,4}\s|jdbc:oracle:[a-z]{2,8}:)"
            r"[\"']?[^\s/\"'\\]{1,64}/([^\s@\"'\\]{4,256}+)@"
        ),
    ),
    _Command(
        ("@tcp(",),
        re.compile(r"(?<![\w.])[\w.-]{1,64}+:([^\s\"'@/\\]{4,128}+)@tcp\("),
    ),
    _Command(
        ("http ", "https ", "xh "),
        re.compile(r"\s(?:-a|--auth)[ =]\\{0,4}[\"']?[^\s:\"'\\]{1,64}:([^\s\"'\\]{4,256}+)"),
        re.compile(r"\b(?:https?|xhs?)\b"),
        (" -a", "--auth"),
    ),
    _Command(("unseal key",), re.compile(r"(?i:\bunseal key)(?: [0-9])?\s{0,4}:\s{1,4}([A-Za-z0-9+/=]{40,256}+)")),
    _Command(
        ("secret_id",),
        re.compile(
            r"\bsecret_id\\{0,4}[\"']?\s{0,4}[:=]\s{0,4}\\{0,4}[\"']?"
            r"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"
        ),
    ),
    _Command(
        ("enable secret ", "enable password ", "snmp-server community "),
        re.compile(
            rf"\b(?:enable (?:secret|password)|snmp-server community)"
            rf"\s{{1,4}}(?:[0-9]\s{{1,4}})?{_WITH_A_DIGIT}{_GIVEN}"
        ),
    ),
    _Command(("setuser ",), re.compile(r"(?i:\bsetuser)\s[^\n]{1,100}?\s>([^\s\"'\\]{6,256}+)")),
    _Command(('psk "', "psk \\"), re.compile(r"\bPSK\s{1,2}\\{0,4}\"([^\s\"\\]{8,256}+)\\{0,4}\"")),
    _Command(
        ("accounts:",),
        re.compile(r"\baccounts:\s{0,2}\[\s{0,8}\\{0,4}[\"'](0x[0-9a-f]{64})\\{0,4}[\"']"),
        near=r"accounts:\s{0,2}\[",
    ),
    _Command(
        ("setup key", "app password", "application password", "app-specific password"),
        re.compile(
            r"(?i:\bsetup key|\b(?:app|application)(?:-specific)? password)[^\n:=]{0,40}[:=]\s{1,4}"
            r"([A-Z2-7]{16,64}+|(?:[A-Za-z0-9]{4}[ -]){3,7}[A-Za-z0-9]{4}(?![A-Za-z0-9]))"
        ),
    ),
    _Command(
        ("/private-", "/reset-password/", "/reset_password/"),
        re.compile(r"/(?:private-|reset[-_]password/)(?=[A-Za-z_-]{0,255}[0-9])([A-Za-z0-9_-]{24,256}+)"),
    ),
    _Command(
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
    _Command(
        ("copy it now", "shown again", "see it again"),
        re.compile(
            rf"(?i:copy it now|shown again|see it again)[^\n]{{0,60}}(?:{LINE_BREAK}[ \t]{{0,16}}){{1,3}}"
            rf"{_WITH_A_DIGIT}"
            r"([^\s\"'<>\\]{16,4096}+)(?=[\s\\]|\Z)"
        ),
    ),
)
_OPTION_REACH = 400
_ASCII_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[^\W\d_]")


def _is_assigned(name: str, value: str, *, quoted: bool, sets_variable: bool) -> bool:
    """Whether assigning this value to this name in text gives away a secret.

    Prose and code name secrets all the time: `token: string`, `password = get_password()`. So a value without quotes
    has to look like a secret, unless it is given to a shell variable.
    """
    if not is_value(value):
        return False
    variable = sets_variable and name.isupper()
    if not (quoted or variable or _has_digit(value)):
        return False
    names_key = name.isupper() and _KEYS.match(name) is not None and _NO_KEYS.search(name) is None
    if names_key and sets_variable and len(value) >= 8 and _mixes(value):
        return True
    if not is_secret_member(name, value):
        return False
    if quoted:
        return len(value) >= 4 and (_has_digit(value) or is_secret_name(name)) and not value.isspace()
    return len(value) >= 6 and (variable or len(value) >= 8 or _mixes(value))


def _has_digit(value: str) -> bool:
    return _ASCII_DIGIT.search(value) is not None or (not value.isascii() and any(map(str.isdigit, value)))


def _mixes(value: str) -> bool:
    return _has_digit(value) and _LETTER.search(value) is not None


class _Assignments:
    """`name = value` in any of the spellings of settings and scripts."""

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        pieces: list[str] = []
        done = 0
        for match in _ASSIGNMENT.finditer(text):
            start = match.end()
            if start < done:
                continue
            name, opened = match[1], match[4]
            block = _BLOCK.match(text, start) if opened is None else None
            if block is not None:
                start, opened = block.end(), ""
                end = self._end_of_block(text, match.start(), block)
            else:
                end = self.end_of_value(text, start, opened)
            value = text[start:end]
            around = text[match.end(1) : match.end(3)]
            if end > start and _is_assigned(name, value, quoted=opened is not None, sets_variable=around == "="):
                pieces += (text[done:start], token(value))
                done = end
        return "".join((*pieces, text[done:])) if pieces else text

    def end_of_value(self, text: str, start: int, opened: str | None) -> int:
        """Where the value ends that begins at `start`, behind the quote `opened` if there is one."""
        if opened is not None:
            line_end = text.find("\n", start, start + _LONGEST)
            line_end = min(start + _LONGEST, len(text)) if line_end < 0 else line_end
            first = end = text.find(opened, start, line_end)
            while end >= 0 and not _ends(text, start, end, opened):
                end = text.find(opened, end + len(opened), line_end)
            # In some languages a backslash before a quote escapes nothing.
            return max(start, first if end < 0 else end)
        value = _BARE.match(text, start)
        if value is None or text[value.end() : value.end() + 1] in ("(", "[", "{"):
            return start
        return start + len(value[0] if value[0].endswith("...") else value[0].rstrip(".:!?"))

    def _end_of_block(self, text: str, name: int, block: re.Match[str]) -> int:
        """Where a block of YAML ends whose lines are one word each; its beginning where it is one of sentences."""
        indented = text[text.rfind("\n", max(0, name - _LONGEST), name) + 1 : name]
        if len(block[1]) <= len(indented) - len(indented.lstrip(" \t")):
            return block.end()
        word = _BARE_LINE.match(text, block.end())
        if word is None:
            return block.end()
        end = word.end()
        while (line := _BLOCK_LINE.match(text, end)) is not None and len(line[1]) >= len(block[1]):
            end = line.end(2)
        rest = _INDENTED.match(text, end)
        return block.end() if rest is not None and len(rest[1]) >= len(block[1]) else end


def _ends(text: str, start: int, quote: int, opened: str) -> bool:
    """Whether a quote ends the value that begins at `start`: what is escaped has more backslashes before it."""
    before = quote
    while before > start and text[before - 1] == "\\":
        before -= 1
    depth = len(opened) - 1
    return (quote - before + depth) % (2 * depth + 2) == depth


class _Markup:
    """`<password>…</password>` and fields of HTML forms."""

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        if "<" not in text:
            return text
        text = _ELEMENT.sub(lambda match: self._element(match, token), text)
        return _INPUT.sub(lambda match: self._input(match[0], token), text) if "value=" in text else text

    def _element(self, match: re.Match[str], token: Token) -> str:
        name, value = match[1].rpartition(":")[2], match[2].strip()
        if not is_secret_member(name, value) or len(value.split()) > 1:
            return match[0]
        return match[0].replace(value, token(value))

    def _input(self, element: str, token: Token) -> str:
        name, value = _NAMED.search(element), _VALUED.search(element)
        if name is None or value is None or not is_secret_member(name[1], value[1]):
            return element
        return element.replace(value[1], token(value[1]))


class _Commands:
    """Passwords that programs take on their command lines. Text without any of `STEMS` (lower case) holds none."""

    STEMS = tuple(dict.fromkeys(stem for command in _COMMANDS for stem in command.stems))

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        lowered = text.encode("ascii", "replace").lower()
        stems = {stem for stem, _, _ in _stems().find_matches_as_indexes(lowered, overlapping=True)}
        for number in sorted({number for stem in stems for number in _NUMBERS[stem]}):
            command = _COMMANDS[number]
            if _has_a_mark(text, command.marks):
                text = self._without(text, command, token)
        return text

    def is_near(self, stem: str, text: str, at: int) -> bool:
        """Whether a command with this stem may stand around this place, where the stem stands in a text."""
        return any(near is None or near.match(text, at) is not None for near, _ in _OF_STEMS[stem])

    def may_follow(self, stem: str, part: str) -> bool:
        """Whether the option of a command with this stem may stand in this part of a text."""
        return any(_has_a_mark(part, marks) for _, marks in _OF_STEMS[stem])

    def gates(self) -> list[str]:
        """What stands in an encoded line that may hold one of them, as expressions of Rust's."""
        return [command.near or "|".join(map(re.escape, command.stems)) for command in _COMMANDS]

    @staticmethod
    def _without(text: str, command: _Command, token: Token) -> str:
        pieces: list[str] = []
        done = 0
        for match in command.option.finditer(text):
            start, end = match.span(1)
            if not is_value(match[1]) or not _is_option_of(text, match.start(), command):
                continue
            pieces += (text[done:start], token(match[1]))
            done = end
        return "".join((*pieces, text[done:])) if pieces else text


_OF_STEMS = {
    stem: [
        (re.compile(command.near, re.IGNORECASE) if command.near else None, command.marks)
        for command in _COMMANDS
        if stem in command.stems
    ]
    for stem in _Commands.STEMS
}


_NUMBERS = [[number for number, command in enumerate(_COMMANDS) if stem in command.stems] for stem in _Commands.STEMS]


@cache
def _stems() -> BytesAhoCorasick:
    return BytesAhoCorasick([stem.encode() for stem in _Commands.STEMS], implementation=Implementation.DFA)


def _has_a_mark(text: str, marks: tuple[str, ...]) -> bool:
    return not marks or any(mark in text for mark in marks)


def _is_option_of(text: str, at: int, command: _Command) -> bool:
    """Whether the program of a command stands before a place, with nothing between that ends the command."""
    if command.program is None:
        return True
    first = max(0, at - _OPTION_REACH)
    begins = max(first, *(text.rfind(mark, first, at) + 1 for mark in command.apart))
    return command.program.search(text, begins, at + 1) is not None


ASSIGNMENTS, MARKUP, COMMANDS = _Assignments(), _Markup(), _Commands()
