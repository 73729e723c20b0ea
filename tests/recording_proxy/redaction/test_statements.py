"""Secrets that sentences of many languages say are one; what else is said beside those words stays."""

from __future__ import annotations

import pytest

from signet_recording_proxy.redaction.keyword_search import KeywordSearch
from signet_recording_proxy.redaction.suspects import HIDDEN
from tests.recording_proxy.redaction.lines import redacted

INVENTED = "Harvest.Copper#83"
DRAWN = "v7KqZ2mXw9TpR4Ls8Bn3"
HEXADECIMAL = "0d7c5be19af24d3c8e61b7f09a52c4d8"
UUID = "5b0e6c1a-9d47-4f28-8a35-c1e7d90b6f42"
STATED = {
    "de": ["Das Passwort für den Benutzer lautet {}.", "Mein WLAN-Kennwort ist „{}“.", "Zugangsdaten: admin / {}"],
    "fr": ["Le mot de passe de l'utilisateur est {}, merci", "mdp : {}"],
    "es": ["La contraseña del servidor es {}", "usa la contraseña {} para entrar"],
    "pt": ["A senha do banco é {}", "Senha: {}"],
    "it": ["La password del server è {}", "Credenziali: root / {}"],
    "nl": ["Het wachtwoord van de database is {}"],
    "sv": ["Lösenordet är {}"],
    "pl": ["Hasło do bazy: {}", "nowe hasło to {}"],
    "ru": ["Пароль: {}", "пароль от базы — {}"],
    "tr": ["Veritabanı parolası: {}", "şifre: {}"],
    "ja": [
        "データベースのパスワードは {} です。",
        "パスワード：{}",
        "パスワードは{}です",
        "パスワードを「{}」に変更しました。",
    ],
    "zh": ["数据库密码是 {}，请不要外传。", "密码：{}", "密码是{}"],
    "ko": ["비밀번호: {}", "비밀번호는 {} 입니다"],
    "vi": ["Mật khẩu: {}"],
    "en": [
        "use {} as the database password",
        "the shared secret between the two services is {}",
        "creds for staging: admin / {}",
        "I changed the password from hunter to {}, restart the pods please",
        "pwd for the VPN is {}",
        "the sudo password on build-01 is '{}'",
        "my password's {}, go ahead",
        "you can log in as deploy, pass {}",
        "the password of the new service account: {}",
        "the password has been set to {}",
        "the database credentials are app:{}",
    ],
}


def _searched(text: str) -> str:
    return KeywordSearch(lambda _secret: "<redacted>", HIDDEN).clean(text)


@pytest.mark.parametrize("said", [said for all_said in STATED.values() for said in all_said])
@pytest.mark.parametrize("secret", [INVENTED, DRAWN])
def test_a_secret_of_a_sentence_is_redacted(said: str, secret: str) -> None:
    """In a short text and inside a long one."""
    text = said.format(secret)
    assert secret not in str(redacted({"prompt": text}, text=None))
    assert secret not in _searched(f"{'All is well. ' * 300}\n{text}\n{'All is well. ' * 300}")


@pytest.mark.parametrize("said", ['log in with the password "{}"', "Hasło do bazy: {}", "Yönetici şifresi: {}"])
def test_words_and_a_number_are_a_password_where_a_sentence_says_so(said: str) -> None:
    """As people make them up."""
    assert "coppermountain87" not in str(redacted({"prompt": said.format("coppermountain87")}))


def test_a_long_secret_is_redacted_to_its_end() -> None:
    """Though only its beginning is looked at."""
    key = "Tq7vR2mXw9Kp4Ls8" * 100
    for text in (f"tls.key: {key}", f"the token is {key}", f"API_TOKEN={key}"):
        assert "Tq7vR2mXw9" not in str(redacted({"prompt": text}))


@pytest.mark.parametrize("secret", [HEXADECIMAL, UUID])
@pytest.mark.parametrize(
    "said",
    [
        "here's my Lumen key: {} — can you wire it in?",
        "Error: 401 Unauthorized: invalid Lumen API key '{}'",
        "The user's Lumen token is {}. It is for staging.",
        "Voici la clé d'API : {}",
        "API-Schlüssel: {}",
        "APIキー: {}",
    ],
)
def test_a_number_is_a_secret_where_a_sentence_says_so(said: str, secret: str) -> None:
    """Hexadecimal numbers and UUIDs are ids of anything otherwise."""
    assert secret not in str(redacted({"prompt": said.format(secret)}))


@pytest.mark.parametrize(
    "text",
    [
        f"the cache key is {HEXADECIMAL}",
        f"session key: {UUID}",
        f"primary key: {UUID}",
        f"the next page token is {UUID}",
        f"key: {HEXADECIMAL}",
        f"the token id is {UUID}, its hash {HEXADECIMAL}",
        "the password is hashed with PBKDF2-HMAC-SHA256 and a salt of 16 bytes",
        "the token endpoint is /oauth2/v1/token, see https://example.org/a?b=C1",
        "the token limit of Llama-3.1-70B-Instruct is 8192",
        "the key is react@18.2.0, or @types/node@20.1.0",
        "press the key: Ctrl+Shift+P, or Ctrl+F12",
        "tokens are read in src/readToken2.ts:120 by getToken2()",
        "use OAuth2 as the token type, Base64Url as the key format",
        "the password is at least 12 characters long, with 1 digit",
        "the key to the 2026-11-20T12:03:11Z report is ACME-1234",
        "Das Passwort muss mindestens 8 Zeichen haben, siehe §4.2 und DIN-66399",
        "Le mot de passe expire le 2026-12-01 à 10:42",
        "パスワードは8文字以上、SHA-256で保存します",
        "密码长度 12 位，算法 argon2id-v1.3",
        "Пароль хранится в PostgreSQL-16, таблица users_2",
        "secret scanning found 3 alerts in PR#1234 on 10.0.0.4",
        "password: $DB_PASSWORD2, token: ${TOKEN_2}",
        "keyboard layout X11, secretary Room2B.West",
        "login with user+tag1@Example.org",
        "DHPublicKey = rfc3279.DHPublicKey",
        "s3_key = s3_Components[1]",
        "key = _FIELD2ATTR[field_name]",
        "otherKey = broadcast1 || !!toAgentId2",
    ],
)
def test_what_else_is_said_beside_those_words_stays(text: str) -> None:
    """Ids, versions, places, names of algorithms and models."""
    assert redacted({"prompt": text})["body"]["json"]["prompt"] == text
    assert _searched(text) == text
