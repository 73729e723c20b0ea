"""Secrets that a sentence says are one, in any of some thirty languages.

`the password for the database is …`, `use … as the password`, `API-Schlüssel: …`, `パスワードを「…」に`. Between the
word and the secret may be the rest of the clause; the secret is known by being no word of it, as `looks_random` and
`_is_invented` judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from signet_recording_proxy.redaction.appearance import (
    is_hexadecimal,
    is_invented,
    is_random_or_invented,
    is_scrambled,
    looks_random,
)
from signet_recording_proxy.redaction.spans import Span, end_of_word

# What people call them, in lower case and without endings: up to twelve more letters may follow.
_LONG_PASSWORDS: Final = (
    *("password", "passphrase", "passcode", "passwd", "pass phrase", "pass code"),
    *("passwort", "kennwort", "passphrase"),
    *("mot de passe", "mots de passe", "mdp"),
    *("contraseña", "contrasena", "senha", "palavra-passe", "palavra passe", "parola d'ordine"),
    *("wachtwoord", "lösenord", "losenord", "passord", "adgangskode", "kodeord", "salasana", "lykilorð"),
    *("hasło", "haslo", "hasła", "hasłem", "heslo", "jelszó", "jelszo", "lozinka", "geslo", "parool", "slaptažodis"),
    *("parola", "parolă", "şifre", "sifre", "mật khẩu", "kata sandi"),
    *("парол", "κωδικός πρόσβασης", "συνθηματικό", "סיסמה", "סיסמא", "كلمة المرور", "كلمة السر", "पासवर्ड", "รหัสผ่าน"),
    *("パスワード", "パスフレーズ", "暗証番号", "合言葉", "密码", "密碼", "口令", "비밀번호", "패스워드", "암호"),
)
_SHORT_PASSWORDS: Final = ("pass", "pwd", "pw")
"""Whole words; verbs, some of them."""
_CREDENTIALS: Final = (
    *("credential", "creds", "login", "logins", "sign-in"),
    *("zugangsdaten", "anmeldedaten", "identifiants", "credenciales", "credenciais", "credenziali", "inloggegevens"),
    *("inloggningsuppgifter", "dane logowania", "přihlašovací údaje", "kimlik bilgileri"),
    *("учётные данные", "учетные данные", "認証情報", "凭证", "凭据", "憑證", "자격 증명", "로그인"),
)
_TOKENS: Final = (
    *("token", "secret", "apikey", "api-key"),
    *("geheimnis", "jeton", "secreto", "segredo", "segreto", "geheim", "hemlighet", "sekret"),
    *("токен", "секрет", "トークン", "シークレット", "令牌", "토큰", "시크릿"),
)
_KEYS: Final = (
    *("key", "schlüssel", "schluessel", "clé", "clef", "clave", "llave", "chave", "chiave", "sleutel"),
    *("nyckel", "nøgle", "nøkkel", "avain", "klucz", "klíč", "kulcs", "cheie", "anahtar"),
    *("ключ", "κλειδί", "מפתח", "مفتاح", "คีย์", "キー", "鍵", "密钥", "秘钥", "密鑰", "金鑰", "키"),
)
"""Other things are called so too, such as what a table is sorted by."""
_SECRET_KEYS: Final = frozenset(
    {
        *("api", "access", "secret", "private", "auth", "license", "licence", "signing", "encryption", "master"),
        *("service", "account", "admin", "deploy", "stream", "setup", "recovery", "app", "application", "shared"),
        *("product", "root", "activation", "wifi", "wlan", "security", "webhook", "subscription", "authentication"),
    }
)
"""What stands before a key that is one of these."""
_OTHER_KEYS: Final = frozenset(
    {
        *("public", "primary", "foreign", "session", "cache", "partition", "sort", "row", "map", "idempotency"),
        *("lookup", "object", "hash", "host", "storage", "group", "dedupe", "dedup", "index", "registry", "agent"),
        *("memory", "next", "page", "cursor", "sync", "continuation", "progress", "unique", "composite", "config"),
        *("json", "translation"),
    }
)
"""What stands before a key or a token that is no secret."""
_NO_VALUES: Final = frozenset(
    {
        *("hash", "hashes", "hashed", "fingerprint", "id", "ids", "digest", "checksum", "name", "named", "endpoint"),
        *("rotates", "belongs", "looks", "starts", "begins"),
        *("url", "uri", "path", "file", "count", "limit", "version", "type", "algorithm", "format", "length", "usage"),
        *("uses", "using", "via", "hashing", "expires", "expired", "since", "until", "at", "budget", "window", "model"),
        *("prefix", "suffix", "commit", "test", "tests", "see", "in", "about", "issue", "encoded", "generated", "by"),
    }
)
"""Words behind which something else follows than the secret: `token id`, `password hash`, `key in a.py`."""
_VERBS: Final = frozenset(
    {
        *("is", "was", "to", "are", "be", "now", "as", "equals", "ist", "lautet", "war", "heißt", "est", "sera", "es"),
        *("era", "será", "é", "foi", "è", "fu", "är", "er", "on", "jest", "je", "este", "это", "είναι", "là", "adalah"),
        *("use", "try", "become", "becomes", "being", "set", "zu", "auf", "in", "naar", "till", "til", "na", "на"),
    }
)
"""What a value follows directly, beside signs."""
_AS_WORDS: Final = ("als", "como", "comme", "come", "som", "jako", "как", "olarak")
"""What stands between a value and what it is said to be."""


class Noun(NamedTuple):
    """A word for a secret, and where it begins in a text."""

    at: int
    word: str


_NOUNS = {*_LONG_PASSWORDS, *_SHORT_PASSWORDS, *_CREDENTIALS, *_TOKENS, *_KEYS}
_LATIN = {noun for noun in _NOUNS if re.search("[a-z]", noun)}
"""Words in letters that are Latin, but for some of their marks."""
_OTHERS = {spelled: noun for noun in _NOUNS - _LATIN for spelled in {noun, noun.title(), noun.upper()}}
_ENGLISH = frozenset(
    {*_SHORT_PASSWORDS, "password", "passphrase", "passcode", "passwd", "credential", "creds", "login", "logins"}
    | {"token", "secret", "apikey", "api-key", "key"}
)
_AFTER_ENGLISH = (
    *(f" {word} " for word in ("is", "was", "for", "to", "from", "on", "between", "now", "as", "shall", "will", "=")),
    *(f" {word} " for word in ("that", "of", "has", "and", "with", "set", "changed", "here", "at")),
    *(f" {word} " for word in ("are", "de", "ends", "we")),
    *(f" {word} " for word in ("del", "di", "des")),
    *(" is:", " (", " —", " –", " '", ' "', " `", " “", " ?", ": ", "'s ", "?s ", "` is ", "` to ", '" is '),
    *(":* ", ":** ", "** "),
    *(f"s{between}" for between in (" are ", ": ", " for ")),
)
"""What follows English words in sentences that may say a secret: mostly they are part of a name, or nothing is said."""
_AS_ENGLISH = tuple(f" as {word} " for word in ("the", "our", "your", "my", "its", "a", "new"))


def as_stem(word: str) -> str:
    """A word as it stands in text in which one byte of ASCII stands for each character."""
    return word.encode("ascii", "replace").decode()


def _any_of(of: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(of, key=len, reverse=True)))


STEMS: Final = {
    **{as_stem(noun + after): noun for noun in _LATIN for after in (_AFTER_ENGLISH if noun in _ENGLISH else ("",))},
    **{f" {word} ": "" for word in _AS_WORDS},
    **dict.fromkeys(_AS_ENGLISH, ""),
}
"""How statements begin, spelled by `as_stem`, and their word; none where the value comes first: `… as the password`."""

_HELD = r"(?:[^\"\\]|\\.)*"
GATE: Final = rf"(?:{_any_of(_NOUNS)}){_HELD}[0-9!#$%^&+?=~]|[0-9]{_HELD}(?:{_any_of(_NOUNS)})"
"""What a string in an encoded line has that may hold one; for an expression of Rust's."""

_QUOTE = r"[\"'`“”„‚‘’«»「」『』]"
_VALUE = r"(?P<value>[!#-&*+\-./0-:=?-\[\]-_a-z|~]{7,512}+)(?!\(|\\(?!\\{0,14}\"))"
_LETTER = r"[^\W\d_]"
_WORD = rf"{_LETTER}{{1,24}}+(?:['’.-]{_LETTER}{{1,24}}+){{0,3}}+(?=[\s)\"'`*：＝]|[:=](?:\s|\Z)|[^\x00-\x7f])"
_SIGNS = rf"(?:[ \t\u00a0\u3000:：=＝—–→|*)（）]|(?<=[ \t])[/(>-](?=[ \t\"'`)\w])|->|\\{{0,4}}{_QUOTE}){{1,12}}+"
_CLAUSE = (
    rf"(?P<between>(?:(?:{_SIGNS}|(?<=[^\x00-\x7f])){_WORD}){{0,10}}+)"
    rf"(?P<signs>{_SIGNS}|(?<=[^\x00-\x7f])){_VALUE}"
)
_ENDING = re.compile(rf"(?P<ending>{_LETTER}{{0,12}}+)(?:['’]s)?")
_OTHER_ENDING = re.compile(r"(?P<ending>[^\W\d_A-Za-z]{0,12}+)")
_DIGIT = re.compile("[0-9!#$%^&+?=~]")
_MOST_AFTER = 90
_SHORTEST = 7
_CLAUSES = re.compile(_CLAUSE)
_MOST_VALUES = 3
"""A name such as `build-01` may come before the secret."""
_BEFORE_AS = re.compile(rf"(?<![^\s\"'`“„«「]){_VALUE}{_QUOTE}?\Z")
_AS = re.compile(rf" \w{{2,5}} (?:{_LETTER}{{1,24}}+[ -]){{0,5}}?(?:(?i:{_any_of(_NOUNS)}))")
_BEFORE = re.compile(r"([\w&.]{1,32})['’]?[ \t_-]?\Z")
_POSSESSIVE = re.compile(r"(?:\b(?:my|our|your|his|her|their|its)|['’]s)[ \t](?:[A-Z0-9][\w&.-]{0,24}[ \t]){1,3}\Z")
_DIRECT = frozenset(":：=＝→\"'`“„‚‘«「『|/>—–")
_ENDS = ".,:*"


class _Statements:
    """All of them."""

    @staticmethod
    def spans(text: str, nouns: Iterable[Noun]) -> Iterator[Span]:
        """Where the secrets are, in order, beside those words."""
        done = 0
        for start, end in sorted({span for noun in nouns if (span := _stated(text, noun)) is not None}):
            if start >= done:
                yield start, end
                done = end


def nouns_in_other_scripts(text: str) -> list[Noun]:
    """Those words that are not in Latin letters."""
    if text.isascii() or not any(map(text.__contains__, _FIRST_LETTERS)):
        return []
    spelled = list(_OTHERS)
    found = _others().find_matches_as_indexes(text, overlapping=True)
    return [Noun(start, _OTHERS[spelled[number]]) for number, start, _ in found]


def may_state(text: str, noun: Noun) -> bool:
    """Whether a secret may stand beside a word."""
    at, word = noun
    if not word:
        last = text[max(0, at - _MOST_AFTER) : at].rpartition(" ")[2]
        return len(last) > _SHORTEST and _DIGIT.search(last) is not None
    return _DIGIT.search(text, at + len(word), at + len(word) + _MOST_AFTER) is not None


_FIRST_LETTERS = tuple({word[0] for word in _OTHERS})


@cache
def _others() -> AhoCorasick:
    return AhoCorasick(list(_OTHERS), implementation=Implementation.DFA)


def _stated(text: str, noun: Noun) -> Span | None:
    if not noun.word:
        return _before_as(text, noun.at)
    ending = (_ENDING if noun.word in _LATIN else _OTHER_ENDING).match(text, noun.at + len(noun.word))
    clause = None if ending is None else _CLAUSES.match(text, ending.end(), ending.end() + 640)
    for _ in range(_MOST_VALUES):
        if clause is None:
            return None
        value = clause["value"].rstrip(_ENDS)
        if _is_stated(text, noun, clause, value):
            means = ending is not None and _means_secret(text, noun, ending["ending"].lower())
            start = clause.start("value")
            return (start, end_of_word(text, start, start + len(value))) if means else None
        if len(value) > _LONGEST_OTHER or len(value) < len(clause["value"]):
            return None
        clause = _CLAUSES.match(text, clause.end(), clause.end() + 640)
    return None


_LONGEST_OTHER = 24


def _is_stated(text: str, noun: Noun, clause: re.Match[str], value: str) -> bool:
    """Whether the clause between a word and a value says that it is the secret, and it looks like one."""
    between = re.findall(_LETTER + "+", clause["between"].lower())
    if not _NO_VALUES.isdisjoint(between):
        return False
    before = clause["signs"].rstrip()[-1:] or clause["between"][-1:]
    direct = before in _DIRECT or before > "\x7f" or (between[-1] if between else "") in _VERBS
    if direct and is_hexadecimal(value):
        return _may_be_hexadecimal(text, noun)
    if _CODE.fullmatch(value) is not None:
        return False
    if noun.word in _CREDENTIALS and (pair := _PAIR.fullmatch(value)) is not None and is_random_or_invented(pair[1]):
        return True
    of_password = direct and noun.word in _PASSWORDS
    return (
        _is_drawn(value)
        or is_invented(value, direct=of_password)
        or (of_password and (is_scrambled(value) or _WORDS_AND_NUMBER.fullmatch(value) is not None))
    )


_WORDS_AND_NUMBER = re.compile(r"[a-z]{8,24}[0-9]{2,4}[!?$]?")
"""A password such as `mountaincoffee1987`."""
_PAIR = re.compile(r"[A-Za-z][\w.@-]{1,40}[:/]([^/]{6,256})")
"""A user and a password, which is all taken for one."""


_CODE = re.compile(r"!![A-Za-z_]\w*|[A-Za-z_]\w*(?:\[\w+\])+")


def _is_drawn(value: str) -> bool:
    return len(value) >= _SHORTEST_DRAWN and looks_random(value)


_SHORTEST_DRAWN = 10


def _before_as(text: str, at: int) -> Span | None:
    said = _BEFORE_AS.search(text, max(0, at - _MOST_AFTER), at)
    if said is None or _AS.match(text, at) is None:
        return None
    value = said["value"].strip(_ENDS)
    start = said.end("value") - len(value)
    return (
        (start, start + len(value))
        if _is_drawn(value) or is_scrambled(value) or is_invented(value, direct=False)
        else None
    )


def _means_secret(text: str, found: Noun, ending: str) -> bool:
    """Whether a word is one of those, and no part or form of another: `keyboard`, `secretary`, `page token`."""
    at, noun = found
    # `DHPublicKey = …` and `s3_key = …` are code, whose names and values `assigned_values` knows.
    is_part = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")
    if noun in _ENGLISH and (ending not in ("", "s") or is_part):
        return False
    if noun in _PASSWORDS:
        return True
    before = _BEFORE.search(text, max(0, at - 34), at)
    return before is None or before[1].lower() not in _OTHER_KEYS


def _may_be_hexadecimal(text: str, found: Noun) -> bool:
    """Whether what is called so may be a UUID or a hexadecimal number: a `key` alone is mostly that of a row."""
    at, noun = found
    if noun != "key":
        return noun not in _PASSWORDS
    before = _BEFORE.search(text, max(0, at - 34), at)
    return before is not None and (
        before[1].lower() in _SECRET_KEYS or _POSSESSIVE.search(text, max(0, at - 90), at) is not None
    )


_PASSWORDS = frozenset({*_LONG_PASSWORDS, *_SHORT_PASSWORDS})

STATEMENTS = _Statements()
