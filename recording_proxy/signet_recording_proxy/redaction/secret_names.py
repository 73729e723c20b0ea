"""Which names say that their value is a secret: the whole decision, as data.

Names are compared in lower case, without the marks between their words and without digits at their end: `GITHUB_TOKEN`,
`githubToken2` and `x-github-token` are one name. A secret in a request fails SIG-HTTP-009, so a name that ordinary
fields have too needs a value that looks like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

ALWAYS = (
    *("password", "passwords", "passwd", "passphrase", "passcode", "passwordhash"),
    *("passwort", "kennwort", "senha", "contrasena", "wachtwoord"),
    *("apikey", "apikeys", "secretkey", "privatekey", "privkey", "secretaccesskey", "secretkeybase"),
    *("secret", "secretvalue", "connectionstring", "authorization"),
    *(f"{kind}token" for kind in ("access", "api", "auth", "bearer", "id", "refresh", "session")),
)
"""Endings of names whose value is a secret whatever it looks like; of these, a number is one too."""
ONE_WORD = (
    *("token", "pepper"),
    *(
        f"{kind}key"
        for kind in (
            *("access", "auth", "encryption", "functions", "license", "master", "shared", "signing", "subscription"),
        )
    ),
)
"""Endings of names whose value is a secret when it is one word of eight characters or more."""
MIXED_KEYS = (
    *("pw", "masterauth"),
    *(
        f"{kind}key"
        for kind in (
            *("account", "activation", "admin", "aes", "app", "application", "cipher", "consumer", "cookie", "crypto"),
            *("decryption", "deploy", "hmac", "jwt", "product", "recovery", "root", "server", "service", "stream"),
            *("unlock", "unseal", "validation", "webhook"),
        )
    ),
)
"""Endings of names whose value is a secret when it is one word that mixes letters and digits."""
MIXED = ("auth", "bearer", "cookie", "credential", "credentials", "jwt", "otp", "pass", "pat", "psk", "pwd", "totp")
"""Last words (`dbPass`, not `compass`) whose value is a secret when it is one word that mixes letters and digits."""
QUERY_ALWAYS = ("key", "sig", "signature", "xamzsignature", "xgoogsignature")
"""Whole names that are secrets in a query or a form alone."""
QUERY_MIXED = ("code", "passkey")
"""Whole names that are secrets in a query or a form alone, when the value mixes letters and digits."""
NEVER = (
    # The contract reads them; a confirmation token is worth nothing after its use.
    "confirmtoken",
    # Places in a list, numbers of a job, and the vocabulary of models.
    *(f"{kind}token" for kind in ("cancel", "cancellation", "continuation", "cursor", "page", "progress", "sync")),
    *(f"{kind}token" for kind in ("bos", "cls", "eos", "mask", "pad", "sep", "special", "stop", "unk")),
    *(f"{kind}token" for kind in ("design", "first", "last", "max", "per")),
    *(f"{kind}secret" for kind in ("has", "is", "no")),
)
"""Endings that do not mean a secret, though they look like it."""
VALUE_MEMBERS = frozenset({"value", "plain", "plaintext", "raw", "text"})
"""What holds the value itself where a secret member is an object."""
CHANGED_MEMBERS = frozenset({"current", "new", "old", "previous", "confirm", "confirmation", "repeat", "repeated"})
"""What holds one of several values there, one word each: `{"password": {"current": …, "new": …}}`."""
IDENTIFYING_MEMBERS = frozenset(
    {
        *("agent", "agentId", "agent_id", "agents", "harnessAgentId", "harness"),
        *("session", "sessionId", "sessionKey", "session_key", "currentSessionKey", "parentKey", "parentSessionKey"),
        *("idempotencyKey", "idempotency_key"),
    }
)
"""Members and parameters that say who calls and what about: the contract reads them, and they may look like a key."""
PLACE_MEMBERS = frozenset({"project", "cwd"})
"""Members that say where; parameters of such names may hold anything."""
IDENTIFYING_HEADERS = "x-signet-"
"""How the headers begin that say the same."""
KEY_TYPE = "kty"
PRIVATE_KEY_MEMBERS = ("d", "k", "p", "q", "dp", "dq", "qi")
"""What is secret in a JSON Web Key, which has a member `KEY_TYPE`."""
NAME_MEMBERS = ("name", "key", "header", "variable")
"""What names the `value` beside it, as in `{"name": "API_KEY", "value": …}`."""

MARKS = b"_-."
"""What may stand between the words of a name."""
_MARKS = re.compile(r"[_\-.]+")
_LAST_WORD = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)\Z")
_BRACKETS = re.compile(r"[\[\]]+")
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_CODE = re.compile(r"(?=[A-Z]*+[0-9]++[A-Z]++[0-9])[A-Z0-9]{16,}+")
_NO_VALUE = re.compile(
    r"\${1,2}(?:[A-Za-z_]+[0-9]*|env:\w+|\{.*|\(.*)|\$\{\{.*|\[?\*{3,}\]?|\[REDACTED\]|ENC\[.*"
    r"|[\w.-]{0,16}(?:\.{3}|…)|(?:process\.env|import\.meta\.env|os\.environ|env|secrets|vars)\.[a-z_]\w*|[\^~<>=]{0,2}v?\d+\.\d+\.\d+(?:[-+][\w.-]*)?",
    re.IGNORECASE | re.DOTALL,
)
"""A variable of a shell, a program or a template, a version, an ellipsis, and what others put in a secret's place."""
_PLACEHOLDER = re.compile(
    r"dummy|placeholder|undefined|<[a-z][^<>]{0,60}>|\{\{.*\}\}|(?:bearer|basic|token) (?:\$?\{.*|<.*>|\$\w+)"
    r"|passw(?:or)?d|mysecretpassword"
    r"|(?:[a-z]{2,8}[-_]){0,2}(?:your|my|some|insert|enter|replace|put|add)[-_ ](?:[a-z]+[-_ ]){0,5}"
    r"(?:api[-_ ]?)?(?:key|token|secret|password|value|here)"
    r"|(?:test|fake|dummy|mock|sample|example)[-_](?:[a-z]+[-_]){0,4}(?:api)?(?:key|token|secret)"
    r"|[\w-]{0,24}?([\w*.#•])\1{5,}",
    re.IGNORECASE | re.DOTALL,
)
"""What stands in documents and tests where a secret will: a name for it in brackets, one character again and again."""
_KEYS = re.compile(r"(?:[A-Z0-9]{1,30}_){0,6}KEY\Z")
_NO_KEYS = re.compile(r"(?:SESSION|PRIMARY|PUBLIC|FOREIGN|CACHE|PARTITION|SORT|HOT|ROW|MAP|IDEMPOTENCY|SAVE)_KEY\Z")
_PASSES = ("bypass", "compass", "overpass", "surpass", "trespass", "underpass")
_IDENTIFIER = re.compile(r"[a-z]+(?:[A-Z][a-z]+){1,6}|(?:[A-Z][a-z]+){2,6}")
_LONGEST = 128
_Accepts = Callable[[str], bool]


def is_value(value: str) -> bool:
    """Whether a text may be a secret at all: not blank, no variable, nothing that was redacted."""
    if not value.strip() or value.startswith("<redacted:") or _NO_VALUE.fullmatch(value) is not None:
        return False
    return not is_placeholder(value)


def is_placeholder(value: str) -> bool:
    """Whether a text only marks where a secret will be."""
    return len(value) <= _LONGEST and _PLACEHOLDER.fullmatch(value) is not None


def is_secret_member(name: str, value: str) -> bool:
    """Whether a JSON member of this name with this string value carries a secret."""
    accepts = _rule(name)
    return accepts is not None and is_value(value) and accepts(value)


def is_value_of(name: str, inner: str, value: str) -> bool:
    """Whether the member `inner` of an object that is the value of `name` carries that secret."""
    inner = inner.lower()
    holds = inner in VALUE_MEMBERS or (inner in CHANGED_MEMBERS and len(value.split()) == 1)
    return holds and is_secret_member(name, value)


def is_secret_name(name: str) -> bool:
    """Whether the value of this name is a secret whatever it looks like."""
    return _rule(name) in (_any, _no_variable)


def names_key(name: str) -> bool:
    """Whether a variable or a constant of this name holds a key that is secret: `SIGNING_KEY`, not `CACHE_KEY`."""
    return name.isupper() and _KEYS.match(name) is not None and _NO_KEYS.search(name) is None


def is_secret_header(name: str, value: str) -> bool:
    """Whether a header of this name carries a secret; in headers even a short token is one."""
    accepts = _rule(name)
    return accepts is not None and bool(value.strip()) and (accepts is not _mixed or _mixed(value.strip()))


def is_secret_parameter(name: str, value: str) -> bool:
    """Whether a field of a query or of a form carries a secret: `token`, `token[]` and `user[password]` do."""
    for part in (name, *_BRACKETS.split(name)) if "[" in name else (name,):
        plain = _squeezed(part)
        if is_value(value) and (plain in QUERY_ALWAYS or (plain in QUERY_MIXED and _mixed(value))):
            return True
        if is_value(value) and is_secret_header(part, value):
            return True
    return False


@lru_cache(maxsize=4096)
def _rule(name: str) -> _Accepts | None:
    # What has blanks is a sentence, such as those of a catalogue of messages.
    if len(name) > _LONGEST or any(map(str.isspace, name)):
        return None
    plain = _squeezed(name)
    if plain.endswith(NEVER):
        return None
    if plain.endswith("secret"):
        return _no_variable
    if plain.endswith(ALWAYS) or (name.isupper() and plain.endswith("token")):
        return _any
    if plain.endswith(ONE_WORD):
        return _one_word
    # `SSHPASS` and `storepass`, where no mark and no letter of another case tells the last word.
    if plain.endswith(MIXED_KEYS) or (plain.endswith("pass") and not plain.endswith(_PASSES)):
        return _mixed
    word = _LAST_WORD.search(name.rstrip("0123456789_-."))
    if word is None or word[0].lower() not in MIXED:
        return None
    return _cookies if word[0].lower() == "cookie" else _mixed


def _squeezed(name: str) -> str:
    return _MARKS.sub("", name).lower().rstrip("0123456789") if len(name) <= _LONGEST else ""


def _any(_value: str) -> bool:
    return True


def _no_variable(value: str) -> bool:
    # The NAME of a secret is not secret; digits among its letters are none of a name.
    return _VARIABLE_NAME.match(value) is None or _CODE.fullmatch(value) is not None


def mixes(value: str) -> bool:
    """Whether a value has letters and digits, as most secrets have and few words."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _one_word(value: str) -> bool:
    # `"output_token": "nextToken"` names a member.
    return len(value) >= 8 and value.split(None, 1) == [value] and _IDENTIFIER.fullmatch(value) is None


def _mixed(value: str) -> bool:
    """`pwd` may name a folder, `auth` a method, `pass` a tally: none of them is a word of letters and digits."""
    folder = value.startswith(("/", "~", "./", "../")) or value[1:3] == ":\\"
    return _one_word(value) and not folder and mixes(value)


def _cookies(value: str) -> bool:
    return "=" in value or _mixed(value)
