"""The table of secrets beside function calls, settings and phrases of output. `ArgumentPattern` explains its fields."""

from __future__ import annotations

import re
from typing import Final

from signet_recording_proxy.redaction.appearance import is_random_or_invented, is_random_or_key
from signet_recording_proxy.redaction.arguments import (
    DIGIT_AHEAD,
    OPTION_VALUE,
    QUOTED_VALUE,
    SENSITIVE_NAME,
    ArgumentPattern,
)
from signet_recording_proxy.redaction.shown_text import LINE_BREAK

_UP_TO_A_DIGIT = r"[^\s\"'`\\]{0,60}[0-9]"

CALLS: Final = (
    ArgumentPattern(("requirepass",), re.compile(rf"\brequirepass\s{{1,4}}{DIGIT_AHEAD}{OPTION_VALUE}")),
    ArgumentPattern(
        ("cookie:",),
        re.compile(
            r"[;:]\s{0,4}(?!(?i:domain|path|expires|max-age|samesite)=)[\w.-]{1,64}="
            r"(?=[^\s\"'\\;,]{0,255}?[0-9])(?=[^\s\"'\\;,]{0,255}?[A-Za-z])([^\s\"'\\;,]{16,}+)"
        ),
        preceded_by=re.compile(r"(?i:\bcookie):"),
        literals=("=",),
        separators="\n",
    ),
    ArgumentPattern(
        ("str =", "str=", "string =", "string=", "string? ="),
        re.compile(
            rf"{SENSITIVE_NAME}\s{{0,4}}:?\s{{0,4}}(?:&(?:'static\s)?)?(?i:str(?:ing)?)\?? ?= ?\\{{0,4}}[\"'`]"
            rf"{DIGIT_AHEAD}([^\s\"'`\\]{{8,256}}+)\\{{0,4}}[\"'`]"
        ),
        at_stem=r"str(?:ing)?\?? ?= ?\\{0,40}[\"'`]" + _UP_TO_A_DIGIT,
    ),
    ArgumentPattern(
        ("word(", "passwd(", "phrase(", "secret(", "token(", "key("),
        re.compile(
            rf"(?:\b(?:set|with|use)_?|\.)[A-Za-z_]{{0,24}}?{SENSITIVE_NAME}\( ?\\{{0,4}}[\"']"
            rf"{DIGIT_AHEAD}([^\s\"'\\]{{8,256}}+)\\{{0,4}}[\"']\s{{0,4}}[,)]"
        ),
        at_stem=r"[a-z]+\( ?\\{0,40}[\"']" + _UP_TO_A_DIGIT,
    ),
    ArgumentPattern(
        ("value:",),
        re.compile(
            rf"\bname:\s{{1,4}}(?:\\{{0,4}}[\"'])?[A-Za-z0-9_.-]{{0,48}}{SENSITIVE_NAME}"
            rf"(?:\\{{0,4}}[\"'])?[ \t]{{0,4}}{LINE_BREAK}"
            rf"\s{{1,64}}value:\s{{1,4}}(?:\\{{0,4}}[\"'])?{DIGIT_AHEAD}([^\s\"'#\\]{{6,}}+)"
        ),
        literals=("name:",),
        at_stem=r"value:\s{1,4}\\{0,40}[\"']?[^\s\"'#]{5}",
    ),
    ArgumentPattern(
        ("<string>",),
        re.compile(rf"<key>[^<]{{0,48}}{SENSITIVE_NAME}</key>[\s\\]{{0,96}}<string>([^<\s]{{6,}}+)</string>"),
    ),
    # JSON or a setting inside HTML.
    ArgumentPattern(
        ("&quot;", "&#34;", "&#39;", "&#x22;", "&#x27;"),
        re.compile(
            rf"{SENSITIVE_NAME}(?:&(?:quot|#34|#39|#x22|#x27);) {{0,4}}[:=,] {{0,4}}(?:&(?:quot|#34|#39|#x22|#x27);)"
            r"([^\s&\"'<>]{6,256}+)&"
        ),
        at_stem=r"&(?:quot|#34|#39|#x22|#x27); {0,4}[:=,] {0,4}&(?:quot|#)",
    ),
    ArgumentPattern(
        ("define(",),
        re.compile(
            r"\bdefine\(\s{0,4}\\{0,4}[\"'][A-Z_]{0,40}(?:PASSWORD|SECRET|TOKEN|_KEY|_SALT)\\{0,4}[\"']\s{0,4},"
            r"\s{0,16}\\{0,4}[\"'](?:(?=[^\"'\n]{0,255}[0-9])([^\s\"']{6,256}+)[\"']|([^\"'\n]{40,80}+)[\"'])"
        ),
    ),
    ArgumentPattern(
        ("-value",),
        re.compile(
            rf"(?i:-name\s{{1,4}}\S{{0,48}}(?:key|token|secret|password)\s{{1,4}}-value)\s{{1,4}}{OPTION_VALUE}"
        ),
    ),
    ArgumentPattern(
        ("securestring",),
        re.compile(r"(?i:convertto-securestring)\s{1,4}(?:-String\s{1,4})?\\{0,4}[\"']([^\s\"'\\]{4,}+)"),
    ),
    ArgumentPattern(
        ("auth=(", "auth(", "auth = (", "login(", "credentials(", "authenticate("),
        re.compile(
            r"(?i:\b(?:auth|login|log_in|basic_?auth|httpbasicauth|authenticate|credentials?)\s{0,4}=?\s{0,4}\()"
            r"\s{0,8}\\{0,4}[\"'][^\"'\n\\]{1,64}\\{0,4}[\"']\s{0,4},\s{0,8}\\{0,4}[\"'](?=\D{0,99}[0-9])([^\s\"'\\]{6,256}+)\\{0,4}[\"']"
        ),
    ),
    # An item of a dictionary or an array, such as os.environ["TOKEN"].
    ArgumentPattern(
        ("'] =", '"] =', "']=", '"]=', "'] !=", '"] !='),
        re.compile(
            rf"\[\\{{0,4}}[\"'][A-Za-z0-9_.-]{{0,48}}{SENSITIVE_NAME}\\{{0,4}}[\"']\]\s{{0,4}}(?:=|[!=]==?)\s{{0,4}}\\{{0,4}}[\"'`]"
            rf"{DIGIT_AHEAD}([^\s\"'`\\]{{8,256}}+)\\{{0,4}}[\"'`]"
        ),
        at_stem=r"['\"]\\{0,40}\] ?[!=]{1,3} ?\\{0,40}[\"'`]" + _UP_TO_A_DIGIT,
    ),
    # Terraform's default of a variable.
    ArgumentPattern(
        ("variable ",),
        re.compile(
            rf"\bvariable\s{{1,4}}\\{{0,4}}\"[a-z0-9_-]{{0,48}}{SENSITIVE_NAME}\\{{0,4}}\"\s{{0,4}}\{{[^{{}}]{{0,300}}?"
            rf"\bdefault\s{{0,8}}=\s{{0,4}}\\{{0,4}}\"{DIGIT_AHEAD}([^\s\"\\$]{{8,256}}+)\\{{0,4}}\""
        ),
        at_stem=r"variable\s{1,4}\\{0,40}\"",
    ),
    ArgumentPattern(
        ("jwt.sign(", "jwt.encode(", "hmac.new(", "createhmac(", "fernet(", "pgp_sym_"),
        re.compile(
            r"\b(?:jwt\.(?:sign|encode)|hmac\.[Nn]ew|createHmac|Fernet|pgp_sym_(?:en|de)crypt(?:_bytea)?)\([^\n;]{0,120}?"
            rf"\\{{0,4}}[\"'`]{DIGIT_AHEAD}([^\s\"'`\\]{{12,256}}+)\\{{0,4}}[\"'`]"
        ),
    ),
    ArgumentPattern(
        ("getconnection(", "new pdo(", "->connect(", "networkcredential("),
        re.compile(
            r"\b(?:getConnection|new PDO|DBI->connect|NetworkCredential)\("
            r"(?:[^\n,()]{1,200},){1,2}"
            r"\s{0,8}\\{0,4}[\"'](?=[^\"'\n]{0,255}[0-9])([^\s\"'\\]{6,256}+)\\{0,4}[\"']\s{0,4}[,)]"
        ),
    ),
    ArgumentPattern(
        (".send_keys(", ".sendkeys(", ".fill(", ".type("),
        re.compile(
            r"(?i:passw|passphrase|pwd)[^\n]{0,60}?\)\.(?:send_keys|sendKeys|fill|type)\("
            r"\\{0,4}[\"'`]([^\s\"'`\\]{6,256}+)\\{0,4}[\"'`]"
        ),
    ),
    # The default of a variable in JavaScript.
    ArgumentPattern(
        ("?? ", "|| "),
        re.compile(
            rf"{SENSITIVE_NAME}[A-Z_]{{0,8}}\s?(?:\?\?|\|\|)\s?\\{{0,4}}[\"'`]"
            rf"{DIGIT_AHEAD}([^\s\"'`\\]{{12,256}}+)\\{{0,4}}[\"'`]"
        ),
        at_stem=r"(?:\?\?|\|\|) \\{0,40}[\"'`]" + _UP_TO_A_DIGIT,
    ),
    ArgumentPattern(
        ("identified by ",),
        re.compile(rf"(?i:\bidentified by)\s{{1,4}}(?![\"']){DIGIT_AHEAD}([^\s\"';,\\]{{6,256}}+)"),
    ),
    # The data source name of Go's MySQL driver.
    ArgumentPattern(
        ("@tcp(",),
        re.compile(r"(?<![\w.])[\w.-]{1,64}+:([^\s\"'@/\\]{4,128}+)@tcp\("),
    ),
    ArgumentPattern(
        ("unseal key",), re.compile(r"(?i:\bunseal key)(?: [0-9])?\s{0,4}:\s{1,4}([A-Za-z0-9+/=]{40,256}+)")
    ),
    ArgumentPattern(
        ("secret_id",),
        re.compile(
            r"\bsecret_id\\{0,4}[\"']?\s{0,4}[:=]\s{0,4}\\{0,4}[\"']?"
            r"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"
        ),
    ),
    # Cisco IOS, also in the row of usernames below.
    ArgumentPattern(
        ("enable secret ", "enable password ", "snmp-server community "),
        re.compile(
            rf"\b(?:enable (?:secret|password)|snmp-server community)"
            rf"\s{{1,4}}(?:[0-9]\s{{1,4}})?{DIGIT_AHEAD}{OPTION_VALUE}"
        ),
    ),
    # Redis: ACL SETUSER name >password.
    ArgumentPattern(("setuser ",), re.compile(r"(?i:\bsetuser)\s[^\n]{1,100}?\s>([^\s\"'\\]{6,256}+)")),
    # ipsec.secrets.
    ArgumentPattern(
        ('psk "', "psk \\", 'eap "', "eap \\", 'xauth "', "xauth \\"),
        re.compile(r"\b(?:PSK|EAP|XAUTH)\s{1,2}\\{0,4}\"([^\s\"\\]{8,256}+)\\{0,4}\""),
    ),
    # The text of a QR code for a WLAN.
    ArgumentPattern(("wifi:",), re.compile(r"\bWIFI:(?:[A-Z]:[^;\s]{0,64};){0,4}P:([^;\s]{8,63})(?=;)")),
    ArgumentPattern(
        ("<keymaterial>", "key content"),
        re.compile(r"(?:<keyMaterial>|\bKey Content\s{1,16}: )([^\s<\\]{8,63}+)"),
    ),
    ArgumentPattern(
        ("temporary password", "new value:", "root password"),
        re.compile(
            r"(?i:temporary password [^\n:]{0,60}|new value|generated root password(?: for \w{1,12})?): {1,4}"
            r"([^\s\"'\\]{8,256}+)"
        ),
        accepts=is_random_or_invented,
    ),
    # The state of Terraform.
    ArgumentPattern(
        ("random_password",),
        re.compile(
            r"random_password\b[^{}]{0,200}\{[^{}]{0,400}\{[^{}]{0,400}?\"result\\{0,4}\":\s?\\{0,4}\"([^\s\"\\]{8,256}+)"
        ),
    ),
    ArgumentPattern(
        ("setenv ", "fastcgi_param "),
        re.compile(
            rf"\b(?:SetEnv|fastcgi_param)\s{{1,4}}[A-Za-z0-9_]{{0,48}}(?:{SENSITIVE_NAME}|(?i:pass))\s{{1,8}}{OPTION_VALUE}"
        ),
    ),
    # FTP: the server asks for the password.
    ArgumentPattern(
        ("331 ",),
        re.compile(rf"\b331 [^\n]{{0,80}}{LINE_BREAK}[ \t>-]{{0,8}}PASS ([^\s\"'\\]{{4,256}}+)"),
    ),
    # SMTP's AUTH LOGIN: the server asks for "Password:" in base64.
    ArgumentPattern(
        ("334 ugfzc3dvcmq6",),
        re.compile(rf"\b334 UGFzc3dvcmQ6{LINE_BREAK}[ \t>-]{{0,8}}([A-Za-z0-9+/]{{8,256}}+={{0,2}})"),
    ),
    ArgumentPattern(
        (":auth(", ".auth(", "privatekeytoaccount("),
        re.compile(r"(?:[:.]auth|privateKeyToAccount)\(\\{0,4}[\"'`]([^\s\"'`\\]{8,256}+)\\{0,4}[\"'`]\s{0,4}\)"),
        accepts=is_random_or_invented,
    ),
    ArgumentPattern(
        ("privilege ", "username "),
        re.compile(
            r"\busername\s{1,4}\S{1,64}\s(?:privilege [0-9]{1,2}\s)?(?:password|secret)"
            rf"\s{{1,4}}[0-9]\s{{1,4}}{OPTION_VALUE}"
        ),
        literals=("password", "secret"),
    ),
    ArgumentPattern(
        ("login(", ".init(", "client("),
        re.compile(r"(?<=[(, ])(?:api_?)?key\s?=\s?\\{0,4}[\"']([^\s\"'\\]{16,256}+)"),
        preceded_by=re.compile(r"(?i:login|\.init|client)\("),
        accepts=is_random_or_key,
    ),
    # A private key in Hardhat's configuration.
    ArgumentPattern(
        ("accounts:",),
        re.compile(r"\baccounts:\s{0,2}\[\s{0,8}\\{0,4}[\"']((?:0x)?[0-9a-f]{64})\\{0,4}[\"']"),
        at_stem=r"accounts:\s{0,2}\[",
    ),
    ArgumentPattern(
        ("setup key", "app password", "application password", "app-specific password"),
        re.compile(
            r"(?i:\bsetup key|\b(?:app|application)(?:-specific)? password)[^\n:=]{0,40}[:=]\s{1,4}"
            r"([A-Z2-7]{16,64}+|(?:[A-Za-z0-9]{4}[ -]){3,7}[A-Za-z0-9]{4}(?![A-Za-z0-9]))"
        ),
    ),
    ArgumentPattern(
        ("/private-", "/reset-password/", "/reset_password/"),
        re.compile(r"/(?:private-|reset[-_]password/)(?=[A-Za-z_-]{0,255}[0-9])([A-Za-z0-9_-]{24,256}+)"),
    ),
    ArgumentPattern(
        ("copy it now", "shown again", "see it again", "following password"),
        re.compile(
            r"(?i:copy it now|shown again|see it again|following password)[^\n]{0,60}"
            rf"(?:{LINE_BREAK}[ \t]{{0,40}}){{1,3}}{DIGIT_AHEAD}"
            r"([^\s\"'<>\\]{16,4096}+)(?=[\s\\]|\Z)"
        ),
        at_stem=r"(?:copy it now|shown again|see it again|following password)[^\n\"]{0,60}[\n\\]",
    ),
    ArgumentPattern(
        ("totp", "otp ", "2fa", "mfa ", "authenticator", "entry key"),
        re.compile(
            r"(?i:\b(?:totp|otp|2fa|mfa|authenticator|manual entry)\b)[ _-]?(?:[a-z]{1,12}[ _-]){0,3}?"
            r"(?:seed|secret|key|code|-b)?[^A-Za-z0-9\n]{1,6}([A-Z2-7]{16,64}+)(?![A-Za-z0-9])"
        ),
        at_stem=r"(?:totp|otp|2fa|mfa|authenticator|entry key)[^a-z0-9\n]",
    ),
    ArgumentPattern(
        ("secret key", "private key"),
        re.compile(
            rf"(?i:\b(?:secret|private) key\b)[^\n]{{0,40}}{LINE_BREAK}[ \t]{{0,24}}([A-Za-z0-9+/]{{40,4096}}+={{0,2}})"
        ),
        at_stem=r"(?:secret|private) key[^\n]{0,40}\n|(?:secret|private) key[^\"]{0,40}\\n",
        separators="",
    ),
    ArgumentPattern(
        (
            *("mnemonic", "wallet words", "paper key", "seed words", "secret phrase", "seed phrase", "recovery phrase"),
            *("backup phrase", "frase semilla", "phrase de r?cup?ration", "seed-phrase", "wiederherstellungs"),
        ),
        re.compile(
            r"(?i:mnemonic|(?:wallet|seed|backup) words|paper key|(?:secret|seed|recovery|backup)[ -]phrase"
            r"|frase semilla|phrase de récupération|wiederherstellungs(?:phrase|wörter))[^\n:=]{0,60}"
            rf"(?:[^\w\n]{{1,6}}|:[ \t]{{0,4}}{LINE_BREAK}[ \t>`\"]{{0,8}})"
            r"((?:[^\W\d_A-Z]{3,10} ){11,23}[^\W\d_A-Z]{3,10})(?![^\W\d_])"
        ),
    ),
    ArgumentPattern(
        ("access key [", "userpwd"),
        re.compile(
            r"(?:(?i:secret access key) \[[^\]\n]{0,40}\]:\s{0,4}([A-Za-z0-9/+=]{16,64})"
            r"|USERPWD,\s{0,4}\\{0,4}[\"'][^\s:\"']{1,64}:([^\s\"'\\]{4,256}+))"
        ),
    ),
    ArgumentPattern(
        ("exponent", "shamir", "seed"),
        re.compile(
            r"(?i:\b(?:secret exponent|shamir share(?: [0-9])?|(?:[a-z0-9]{1,16} )?seed)\b)"
            r"[^A-Za-z0-9\n]{1,5}(?:0x)?([0-9a-f]{48,128}+|S[A-Z2-7]{50,60}+)(?![A-Za-z0-9])"
        ),
        at_stem=r"(?:exponent|shamir share(?: [0-9])?|seed)[^a-z0-9\n]{1,5}[0-9a-z]{20}",
    ),
    ArgumentPattern(
        ("login ", "identify ", "auth plain "),
        re.compile(rf"\b(?:LOGIN\s{{1,4}}\S{{1,64}}|IDENTIFY|AUTH PLAIN)\s{{1,4}}{OPTION_VALUE}"),
        literals=("LOGIN ", "IDENTIFY ", "AUTH PLAIN "),
        accepts=is_random_or_invented,
    ),
    ArgumentPattern(
        (
            *("client(", "api(", ".new(", "bearer_auth(", "basic_auth(", "credentials(", "jwt.decode(", "jwt.verify("),
            *("pbkdf2", "encrypt(", "decrypt(", "cipher(", "aes.new(", "keyspec(", "cookieparser(", "secretstr("),
            *("stripe(", ".init(", "create_user(", "plainauth(", "connect(", "wallet(", "secretkey(", "cipheriv("),
            *("fromstring(", "configure(", "mysqli", "sdk(", "linkedsrvlogin ", "basicauth("),
        ),
        re.compile(rf"(?<=[(,\[{{ =:bfru@]){QUOTED_VALUE}"),
        preceded_by=re.compile(
            r"(?i:client|api|\.new|bearer_auth|basic_auth|credentials|jwt\.(?:decode|verify)|pbkdf2\w{0,8}|(?:en|de)crypt"
            r"|cipher(?:iv)?|aes\.new|keyspec|cookieparser|secretstr|stripe|\.init|create_user|plainauth|connect|wallet"
            r"|secretkey|fromstring|configure|mysqli(?:_\w{1,16})?|sdk|basicauth)\(|sp_addlinkedsrvlogin"
        ),
        at_stem=r"[.a-z_]{0,24}(?:client|api|new|auth|credentials|decode|verify|pbkdf2[a-z_]{0,8}|crypt|cipher(?:iv)?|keyspec"
        r"|cookieparser|secretstr|stripe|init|create_user|connect|wallet|secretkey|fromstring|configure|mysqli[a-z_]{0,16}"
        r"|sdk)\(|mysqli|linkedsrvlogin",
        accepts=is_random_or_key,
    ),
)
