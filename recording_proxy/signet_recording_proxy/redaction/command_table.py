"""The table of secrets in command lines and in what commands print. `ArgumentPattern` explains its fields."""

from __future__ import annotations

import re
from typing import Final

from signet_recording_proxy.redaction.appearance import is_random_or_invented, is_random_or_key
from signet_recording_proxy.redaction.arguments import (
    DIGIT_AHEAD,
    OPTION_VALUE,
    SENSITIVE_NAME,
    ArgumentPattern,
    Arguments,
    option,
)
from signet_recording_proxy.redaction.call_table import CALLS
from signet_recording_proxy.redaction.shown_text import LINE_BREAK

COMMANDS: Final = (
    ArgumentPattern(
        ("curl",),
        re.compile(r"\s(?:-u|--(?:proxy-)?user)[ =]?\\{0,4}[\"']?[^\s:\"'\\]{1,64}+:([^\s\"'\\]{3,}+)"),
        preceded_by=re.compile(r"\bcurl\b"),
        literals=("-u", "--user", "--proxy-user"),
    ),
    ArgumentPattern(
        ("mysql", "mariadb"),
        re.compile(r"\s-p\\{0,4}[\"']?([^\s\"'\\-][^\s\"'\\]{2,}+)"),
        preceded_by=re.compile(r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b"),
        literals=("-p",),
    ),
    ArgumentPattern(("sshpass",), re.compile(r"\bsshpass\b\s{1,4}-p\s{0,4}\\{0,4}[\"']?([^\s\"'\\]{3,}+)")),
    ArgumentPattern(
        ("docker login", "podman login", "helm registry login"),
        re.compile(r"\s-p[ =]?\\{0,4}[\"']?([^\s\"'\\]{4,}+)"),
        preceded_by=re.compile(r"\b(?:docker|podman|helm registry) login\b"),
    ),
    ArgumentPattern(
        ("redis-cli",),
        re.compile(r"\s-a\s{1,4}\\{0,4}[\"']?([^\s\"'\\]{4,}+)"),
        preceded_by=re.compile(r"\bredis-cli\b"),
    ),
    ArgumentPattern(
        ("-pass",), re.compile(r"\s-pass(?:in|out|word)?\s{1,4}pass:([^\s\"'\\]{3,}+)"), literals=("pass:",)
    ),
    ArgumentPattern(("ldap",), option("-w"), preceded_by=re.compile(r"\bldap[a-z]{0,8}\b"), literals=("-w",)),
    ArgumentPattern(("openssl enc",), option("-k"), preceded_by=re.compile(r"\bopenssl enc\b")),
    ArgumentPattern(
        ("zip ", "sqlcmd", "bcp "),
        option("-P"),
        preceded_by=re.compile(r"\b(?:zip|unzip|sqlcmd|bcp)\b"),
        literals=("-P",),
    ),
    ArgumentPattern(
        ("useradd", "usermod", "az login", "az acr login"),
        option("-p"),
        preceded_by=re.compile(r"\b(?:useradd|usermod|az login|az acr login)\b"),
    ),
    ArgumentPattern(
        ("7z ", "7za ", "7zz ", "rar "),
        re.compile(rf"\s-p{OPTION_VALUE}"),
        preceded_by=re.compile(r"\b(?:7za?|7zz|rar|unrar)\b"),
        literals=("-p",),
    ),
    ArgumentPattern(
        ("keytool", "signer"),
        re.compile(rf"\s--?[a-z-]{{0,12}}pass\s{{1,4}}(?:pass:)?{OPTION_VALUE}"),
        preceded_by=re.compile(r"\b(?:keytool|jarsigner|apksigner)\b"),
        literals=("pass",),
    ),
    ArgumentPattern(
        ("htpasswd",),
        re.compile(
            r"\s-(?:(?=[A-Za-z]{0,4}n)[A-Za-z]{0,4}b[A-Za-z]{0,4}|[A-Za-z]{0,4}b[A-Za-z]{0,4}\s++\S++)\s++\S++\s++"
            + OPTION_VALUE
        ),
        preceded_by=re.compile(r"\bhtpasswd\b"),
    ),
    ArgumentPattern(("twine",), option("(?:-p|--password)"), preceded_by=re.compile(r"\btwine upload\b")),
    ArgumentPattern(
        ("mosquitto",), option("-P"), preceded_by=re.compile(r"\bmosquitto_(?:pub|sub|rr)\b"), literals=("-P",)
    ),
    ArgumentPattern(("ssh-keygen",), option("-[NP]"), preceded_by=re.compile(r"\bssh-keygen\b")),
    ArgumentPattern(
        ("security ",), option("-w"), preceded_by=re.compile(r"\bsecurity (?:add|set)-[a-z-]{1,40}\b"), literals=("-w",)
    ),
    ArgumentPattern(
        ("lftp",),
        re.compile(r"\s-u[ =]?\\{0,4}[\"']?[^\s,\"'\\]{1,64},([^\s\"'\\]{4,}+)"),
        preceded_by=re.compile(r"\blftp\b"),
    ),
    ArgumentPattern(
        ("mc alias set", "mc config host add"),
        re.compile(rf"\bmc (?:alias set|config host add)(?:\s++\S{{1,200}}){{3}}\s++{OPTION_VALUE}"),
    ),
    ArgumentPattern(("encrypt_string",), re.compile(rf"\bansible-vault encrypt_string\s{{1,4}}{OPTION_VALUE}")),
    ArgumentPattern(
        ("gh secret",), re.compile(rf"\s(?:-b|--body)[ =]?{OPTION_VALUE}"), preceded_by=re.compile(r"\bgh secret set\b")
    ),
    ArgumentPattern(
        ("mongo",),
        option("-p"),
        preceded_by=re.compile(r"\bmongo(?:sh|dump|restore|export|import)?\b"),
        literals=("-p",),
    ),
    ArgumentPattern(("--secret-string",), re.compile(rf"\s--secret-string[ =]{OPTION_VALUE}")),
    ArgumentPattern(
        ("put-parameter",),
        re.compile(rf"\s--value[ =]{OPTION_VALUE}"),
        preceded_by=re.compile(r"\bput-parameter\b[^\n]{0,300}SecureString"),
    ),
    ArgumentPattern(
        ("net use",),
        re.compile(rf"\s/user:\S++\s++{OPTION_VALUE}"),
        preceded_by=re.compile(r"\bnet use\b"),
        literals=("/user:",),
    ),
    ArgumentPattern(
        ("net user",), re.compile(rf"\bnet user\s{{1,4}}[^\s/]\S{{0,64}}\s{{1,4}}{OPTION_VALUE}\s{{1,4}}/")
    ),
    ArgumentPattern(
        ("smbclient",),
        re.compile(r"\s-U\s{0,4}\\{0,4}[\"']?[^\s%\"']{1,64}%([^\s\"'\\]{4,}+)"),
        preceded_by=re.compile(r"\bsmbclient\b"),
    ),
    ArgumentPattern(
        ("curl", "wget", "http "),
        re.compile(r"\s(?:-b|--cookie)[ =]\\{0,4}[\"']?[\w.-]{1,64}=([^\s\"'\\;]{6,}+)"),
        preceded_by=re.compile(r"\b(?:curl|wget|http)\b"),
        literals=("-b", "--cookie"),
    ),
    ArgumentPattern(
        ("wandb login", "vault login", "rclone obscure", "snyk auth", "auth token", "signin --raw"),
        re.compile(
            r"\b(?:wandb login|vault login|rclone obscure|snyk auth|auth token(?=\s{1,4}\S{0,255}[0-9])|signin --raw)"
            rf"\s{{1,4}}{OPTION_VALUE}"
        ),
    ),
    ArgumentPattern(
        ("echo ", "printf "),
        re.compile(
            r"\b(?:echo|printf)\s{1,4}(?:-n\s{1,4}|\\{0,4}[\"']%s\\{0,4}[\"']\s{1,4})?\\{0,4}[\"']?(?:[\w.-]{1,32}:)?"
            r"([^\s\"'|\\:]{6,256}+)\\{0,4}[\"']?\s{0,4}\|[^\n]{0,160}?"
            r"(?:--password-stdin|--with-token|chpasswd|--stdin|kv put|secrets? (?:set|create|put)|login|sudo -S"
            r"|secret-tool store|pass insert|cryptsetup|-passin stdin|--passphrase-fd)"
        ),
        literals=("|",),
    ),
    ArgumentPattern(
        ("<<<",),
        re.compile(
            r"(?:--password-stdin|--with-token|--stdin|chpasswd|login|secrets? (?:set|create|put)|env add)"
            rf"[^\n|;]{{0,160}}?<<<\s{{0,4}}{OPTION_VALUE}"
        ),
    ),
    ArgumentPattern(
        ("env ", "arg ", "set -x ", "set -gx ", "set -ux "),
        re.compile(
            rf"\b(?:ENV|ARG|set -[gu]?x)\s{{1,4}}[A-Z0-9_]{{0,48}}{SENSITIVE_NAME}\s{{1,4}}\\{{0,4}}[\"']?"
            rf"{DIGIT_AHEAD}([^\s\"'`$\\]{{8,256}}+)(?=[\s\"'\\]|\Z)"
        ),
        at_stem=r"(?:env|arg|set -[gu]?x)\s{1,4}[a-z0-9_]{2}",
    ),
    ArgumentPattern(
        ("rabbitmqctl ",),
        re.compile(rf"\brabbitmqctl (?:add_user|change_password)\s{{1,4}}\S{{1,64}}\s{{1,4}}{OPTION_VALUE}"),
    ),
    ArgumentPattern(
        ("sqlplus ", "jdbc:oracle:"),
        re.compile(
            r"(?:\bsqlplus(?:\s-\S{1,16}){0,4}\s|jdbc:oracle:[a-z]{2,8}:)"
            r"[\"']?[^\s/\"'\\]{1,64}/([^\s@\"'\\]{4,256}+)@"
        ),
    ),
    ArgumentPattern(
        ("http ", "https ", "xh "),
        re.compile(r"\s(?:-a|--auth)[ =]\\{0,4}[\"']?[^\s:\"'\\]{1,64}:([^\s\"'\\]{4,256}+)"),
        preceded_by=re.compile(r"\b(?:https?|xhs?)\b"),
        literals=(" -a", "--auth"),
    ),
    ArgumentPattern(
        (
            *("printenv ", "op read", "pass show", "bw get password", "print-access-token", "initial-password"),
            *("wg genkey", "wg genpsk", "gh auth token", "base64 -d", "get-login-password", "node-token"),
            *("secrets versions access", "--reveal", "bw unlock", "pwgen", "openssl rand", "join-token"),
        ),
        re.compile(
            r"(?:\b|(?=--))(?:printenv [A-Z0-9_]{0,40}(?:PASSWORD|TOKEN|SECRET|KEY)|op read|pass show|bw get password"
            r"|auth print-access-token|admin initial-password|wg gen(?:key|psk)|gh auth token|base64 -d"
            r"|secrets versions access|--reveal|bw unlock|pwgen|openssl rand|join-token"
            rf"|get-login-password|/node-token)\b[^\n]{{0,120}}{LINE_BREAK}[ \t]{{0,24}}{DIGIT_AHEAD}"
            r"([^\s\"'<>\\]{8,4096}+)(?=[\s\\]|\Z)"
        ),
        separators="|;",
    ),
    ArgumentPattern(
        (" -p", "\t-p"),
        re.compile(
            rf"\s-[uU][ =]?\\{{0,4}}[\"']?[^\s\"'-][^\s\"']{{0,63}}+[\"']?\s(?:[^\n|;]{{0,80}}?\s)?"
            rf"-[pP][ =]?{OPTION_VALUE}"
        ),
        literals=("-u", "-U"),
        at_stem=r"\s-p[ =]?\\{0,40}[\"']?[^\s\"'-]{6}",
        accepts=is_random_or_invented,
    ),
    ArgumentPattern(
        ("/p:", "/pass:", "/password:", "/pw:", "/rp "),
        re.compile(rf"\s/(?:(?:p|pass|password|pw):|rp\s{{1,4}}){OPTION_VALUE}"),
        accepts=is_random_or_invented,
    ),
    ArgumentPattern(("<<<",), re.compile(rf"<<<\s{{0,4}}{OPTION_VALUE}"), accepts=is_random_or_invented),
    ArgumentPattern(
        (
            *(
                "secret set ",
                "secrets set ",
                "secret create ",
                "secret put ",
                "secrets create ",
                "kv put ",
                "authtoken",
            ),
            *("authtoken", "from-literal=", "cargo login ", "auth init ", "pypi-token", "http-basic", "bundle config "),
            *("codecov ", "config set ", "config:set ", "env:set ", "env add ", "password-command ", "variables set "),
        ),
        re.compile(r"[\s=:]\\{0,4}[\"']?([^\s\"'=:\\|;&<>$-][^\s\"'\\|;&<>]{9,511}+)"),
        preceded_by=re.compile(
            r"\b(?:secrets? (?:set|create|put)|kv put|authtoken|from-literal=|cargo login|auth init|pypi-token"
            r"|http-basic|bundle config|codecov|config[ :]set|env:set|env add|password-command|variables set)\b"
        ),
        accepts=is_random_or_key,
    ),
    ArgumentPattern(
        ('send "', "send \\", "(echo ", "'echo "),
        re.compile(
            r"(?:\bsend\s{1,4}(?:--\s)?\\{0,4}\"([^\s\"\\]{6,256}+)\\{1,8}r"
            r"|[('][ \t]?echo\s{1,4}([^\s\"'\\)]{6,256}+)[)'])"
        ),
        accepts=is_random_or_invented,
    ),
    ArgumentPattern(
        ("snmp",),
        re.compile(rf"\s-[AX]\s{{1,4}}{OPTION_VALUE}"),
        preceded_by=re.compile(r"\bsnmp[a-z]{2,8}\b"),
        literals=("-A", "-X"),
    ),
    ArgumentPattern(
        ("wpa_passphrase ",),
        re.compile(rf"\bwpa_passphrase\s{{1,4}}\S{{1,64}}\s{{1,4}}{OPTION_VALUE}"),
        accepts=is_random_or_invented,
    ),
    ArgumentPattern(("security unlock",), option("-p"), preceded_by=re.compile(r"\bsecurity unlock-keychain\b")),
    ArgumentPattern(
        ("mysqladmin",), option("password"), preceded_by=re.compile(r"\bmysqladmin\b"), accepts=is_random_or_invented
    ),
    ArgumentPattern(
        ("curl",),
        re.compile(
            r"(?:\s(?:-b|--cookie)[ =]?\\{0,4}[\"']|;\s{0,4})[\w.-]{1,64}="
            r"(?=[^\s\"'\\;,]{0,255}?[0-9])([^\s\"'\\;,]{16,}+)"
        ),
        preceded_by=re.compile(r"\bcurl\b"),
        literals=("-b ", "--cookie"),
        separators="\n\n",
    ),
    ArgumentPattern(
        ("key1", "key2"),
        re.compile(
            r"(?<![\w-])key[12]\\{0,4}\"?[ :\t]{1,12}(?:[A-Z][A-Za-z]{2,11} {1,12})?\\{0,4}\"?([A-Za-z0-9+/=]{32,100}+)"
        ),
        at_stem=r"key[12]\\{0,40}\"?[ :\t]",
        accepts=is_random_or_key,
    ),
)

ARGUMENTS: Final = Arguments((*COMMANDS, *CALLS))
"""The secrets of all programs and calls."""
