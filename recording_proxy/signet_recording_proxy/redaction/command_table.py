"""Programs that take a secret on their command line, or print one, and where it stands: data."""

from __future__ import annotations

import re
from typing import Final

from signet_recording_proxy.redaction.appearance import is_drawn, is_made
from signet_recording_proxy.redaction.arguments import GIVEN, NAME, WITH_A_DIGIT, Arguments, Command, option
from signet_recording_proxy.redaction.call_table import CALLS
from signet_recording_proxy.redaction.shown_text import LINE_BREAK

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
    Command(("ldap",), option("-w"), re.compile(r"\bldap[a-z]{0,8}\b"), ("-w",)),
    Command(("openssl enc",), option("-k"), re.compile(r"\bopenssl enc\b")),
    Command(
        ("zip ", "sqlcmd", "bcp "),
        option("-P"),
        re.compile(r"\b(?:zip|unzip|sqlcmd|bcp)\b"),
        ("-P",),
    ),
    Command(
        ("useradd", "usermod", "az login", "az acr login"),
        option("-p"),
        re.compile(r"\b(?:useradd|usermod|az login|az acr login)\b"),
    ),
    Command(
        ("7z ", "7za ", "7zz ", "rar "),
        re.compile(rf"\s-p{GIVEN}"),
        re.compile(r"\b(?:7za?|7zz|rar|unrar)\b"),
        ("-p",),
    ),
    Command(
        ("keytool", "signer"),
        re.compile(rf"\s--?[a-z-]{{0,12}}pass\s{{1,4}}(?:pass:)?{GIVEN}"),
        re.compile(r"\b(?:keytool|jarsigner|apksigner)\b"),
        ("pass",),
    ),
    Command(
        ("htpasswd",),
        re.compile(
            r"\s-(?:(?=[A-Za-z]{0,4}n)[A-Za-z]{0,4}b[A-Za-z]{0,4}|[A-Za-z]{0,4}b[A-Za-z]{0,4}\s++\S++)\s++\S++\s++"
            + GIVEN
        ),
        re.compile(r"\bhtpasswd\b"),
    ),
    Command(("twine",), option("(?:-p|--password)"), re.compile(r"\btwine upload\b")),
    Command(("mosquitto",), option("-P"), re.compile(r"\bmosquitto_(?:pub|sub|rr)\b"), ("-P",)),
    Command(("ssh-keygen",), option("-[NP]"), re.compile(r"\bssh-keygen\b")),
    Command(("security ",), option("-w"), re.compile(r"\bsecurity (?:add|set)-[a-z-]{1,40}\b"), ("-w",)),
    Command(
        ("lftp",), re.compile(r"\s-u[ =]?\\{0,4}[\"']?[^\s,\"'\\]{1,64},([^\s\"'\\]{4,}+)"), re.compile(r"\blftp\b")
    ),
    Command(
        ("mc alias set", "mc config host add"),
        re.compile(rf"\bmc (?:alias set|config host add)(?:\s++\S{{1,200}}){{3}}\s++{GIVEN}"),
    ),
    Command(("encrypt_string",), re.compile(rf"\bansible-vault encrypt_string\s{{1,4}}{GIVEN}")),
    Command(("gh secret",), re.compile(rf"\s(?:-b|--body)[ =]?{GIVEN}"), re.compile(r"\bgh secret set\b")),
    Command(("mongo",), option("-p"), re.compile(r"\bmongo(?:sh|dump|restore|export|import)?\b"), ("-p",)),
    Command(("--secret-string",), re.compile(rf"\s--secret-string[ =]{GIVEN}")),
    Command(
        ("put-parameter",),
        re.compile(rf"\s--value[ =]{GIVEN}"),
        re.compile(r"\bput-parameter\b[^\n]{0,300}SecureString"),
    ),
    Command(("net use",), re.compile(rf"\s/user:\S++\s++{GIVEN}"), re.compile(r"\bnet use\b"), ("/user:",)),
    Command(("net user",), re.compile(rf"\bnet user\s{{1,4}}[^\s/]\S{{0,64}}\s{{1,4}}{GIVEN}\s{{1,4}}/")),
    Command(
        ("smbclient",),
        re.compile(r"\s-U\s{0,4}\\{0,4}[\"']?[^\s%\"']{1,64}%([^\s\"'\\]{4,}+)"),
        re.compile(r"\bsmbclient\b"),
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
            rf"\s{{1,4}}{GIVEN}"
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
            rf"[^\n|;]{{0,160}}?<<<\s{{0,4}}{GIVEN}"
        ),
    ),
    Command(
        ("env ", "arg ", "set -x ", "set -gx ", "set -ux "),
        re.compile(
            rf"\b(?:ENV|ARG|set -[gu]?x)\s{{1,4}}[A-Z0-9_]{{0,48}}{NAME}\s{{1,4}}\\{{0,4}}[\"']?"
            rf"{WITH_A_DIGIT}([^\s\"'`$\\]{{8,256}}+)(?=[\s\"'\\]|\Z)"
        ),
        near=r"(?:env|arg|set -[gu]?x)\s{1,4}[a-z0-9_]{2}",
    ),
    Command(
        ("rabbitmqctl ",),
        re.compile(rf"\brabbitmqctl (?:add_user|change_password)\s{{1,4}}\S{{1,64}}\s{{1,4}}{GIVEN}"),
    ),
    Command(
        ("sqlplus ", "jdbc:oracle:"),
        re.compile(
            r"(?:\bsqlplus(?:\s-\S{1,16}){0,4}\s|jdbc:oracle:[a-z]{2,8}:)"
            r"[\"']?[^\s/\"'\\]{1,64}/([^\s@\"'\\]{4,256}+)@"
        ),
    ),
    Command(
        ("http ", "https ", "xh "),
        re.compile(r"\s(?:-a|--auth)[ =]\\{0,4}[\"']?[^\s:\"'\\]{1,64}:([^\s\"'\\]{4,256}+)"),
        re.compile(r"\b(?:https?|xhs?)\b"),
        (" -a", "--auth"),
    ),
    Command(
        (
            *("printenv ", "op read", "pass show", "bw get password", "print-access-token", "initial-password"),
            *("wg genkey", "wg genpsk", "gh auth token", "base64 -d", "get-login-password", "node-token"),
            *("secrets versions access", "--reveal", "bw unlock", "pwgen", "openssl rand", "join-token"),
        ),
        re.compile(
            r"(?:\b|(?=--))(?:printenv [A-Z0-9_]{0,40}(?:PASSWORD|TOKEN|SECRET|KEY)|op read|pass show|bw get password"
            r"|auth print-access-token|admin initial-password|wg gen(?:key|psk)|gh auth token|base64 -d"
            r"|secrets versions access|--reveal|bw unlock|pwgen|openssl rand|join-token"
            rf"|get-login-password|/node-token)\b[^\n]{{0,120}}{LINE_BREAK}[ \t]{{0,24}}{WITH_A_DIGIT}"
            r"([^\s\"'<>\\]{8,4096}+)(?=[\s\\]|\Z)"
        ),
        apart="|;",
    ),
    Command(
        (" -p", "\t-p"),
        re.compile(
            rf"\s-[uU][ =]?\\{{0,4}}[\"']?[^\s\"'-][^\s\"']{{0,63}}+[\"']?\s(?:[^\n|;]{{0,80}}?\s)?-[pP][ =]?{GIVEN}"
        ),
        marks=("-u", "-U"),
        near=r"\s-p[ =]?\\{0,40}[\"']?[^\s\"'-]{6}",
        accepts=is_made,
    ),
    Command(
        ("/p:", "/pass:", "/password:", "/pw:", "/rp "),
        re.compile(rf"\s/(?:(?:p|pass|password|pw):|rp\s{{1,4}}){GIVEN}"),
        accepts=is_made,
    ),
    Command(("<<<",), re.compile(rf"<<<\s{{0,4}}{GIVEN}"), accepts=is_made),
    Command(
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
        re.compile(
            r"\b(?:secrets? (?:set|create|put)|kv put|authtoken|from-literal=|cargo login|auth init|pypi-token"
            r"|http-basic|bundle config|codecov|config[ :]set|env:set|env add|password-command|variables set)\b"
        ),
        accepts=is_drawn,
    ),
    Command(
        ('send "', "send \\", "(echo ", "'echo "),
        re.compile(
            r"(?:\bsend\s{1,4}(?:--\s)?\\{0,4}\"([^\s\"\\]{6,256}+)\\{1,8}r"
            r"|[('][ \t]?echo\s{1,4}([^\s\"'\\)]{6,256}+)[)'])"
        ),
        accepts=is_made,
    ),
    Command(("snmp",), re.compile(rf"\s-[AX]\s{{1,4}}{GIVEN}"), re.compile(r"\bsnmp[a-z]{2,8}\b"), ("-A", "-X")),
    Command(("wpa_passphrase ",), re.compile(rf"\bwpa_passphrase\s{{1,4}}\S{{1,64}}\s{{1,4}}{GIVEN}"), accepts=is_made),
    Command(("security unlock",), option("-p"), re.compile(r"\bsecurity unlock-keychain\b")),
    Command(("mysqladmin",), option("password"), re.compile(r"\bmysqladmin\b"), accepts=is_made),
    Command(
        ("curl",),
        re.compile(
            r"(?:\s(?:-b|--cookie)[ =]?\\{0,4}[\"']|;\s{0,4})[\w.-]{1,64}="
            r"(?=[^\s\"'\\;,]{0,255}?[0-9])([^\s\"'\\;,]{16,}+)"
        ),
        re.compile(r"\bcurl\b"),
        ("-b ", "--cookie"),
        "\n\n",
    ),
    Command(
        ("key1", "key2"),
        re.compile(
            r"(?<![\w-])key[12]\\{0,4}\"?[ :\t]{1,12}(?:[A-Z][A-Za-z]{2,11} {1,12})?\\{0,4}\"?([A-Za-z0-9+/=]{32,100}+)"
        ),
        near=r"key[12]\\{0,40}\"?[ :\t]",
        accepts=is_drawn,
    ),
)

ARGUMENTS: Final = Arguments((*COMMANDS, *CALLS))
"""The secrets of all programs and calls."""
