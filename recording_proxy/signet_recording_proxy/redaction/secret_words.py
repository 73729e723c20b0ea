"""What people call passwords, keys and tokens in many languages: data.

All in lower case and without endings: what is read after a word takes up to twelve more letters for those.
"""

from __future__ import annotations

from typing import Final

PASSWORDS: Final = (
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
SHORT_PASSWORDS: Final = ("pass", "pwd", "pw")
"""Whole words; verbs, some of them."""
CREDENTIALS: Final = (
    *("credential", "creds", "login", "logins", "sign-in"),
    *("zugangsdaten", "anmeldedaten", "identifiants", "credenciales", "credenciais", "credenziali", "inloggegevens"),
    *("inloggningsuppgifter", "dane logowania", "přihlašovací údaje", "kimlik bilgileri"),
    *("учётные данные", "учетные данные", "認証情報", "凭证", "凭据", "憑證", "자격 증명", "로그인"),
)
TOKENS: Final = (
    *("token", "secret", "apikey", "api-key"),
    *("geheimnis", "jeton", "secreto", "segredo", "segreto", "geheim", "hemlighet", "sekret"),
    *("токен", "секрет", "トークン", "シークレット", "令牌", "토큰", "시크릿"),
)
KEYS: Final = (
    *("key", "schlüssel", "schluessel", "clé", "clef", "clave", "llave", "chave", "chiave", "sleutel"),
    *("nyckel", "nøgle", "nøkkel", "avain", "klucz", "klíč", "kulcs", "cheie", "anahtar"),
    *("ключ", "κλειδί", "מפתח", "مفتاح", "คีย์", "キー", "鍵", "密钥", "秘钥", "密鑰", "金鑰", "키"),
)
"""Other things are called so too, such as what a table is sorted by."""
SECRET_KEYS: Final = frozenset(
    {
        *("api", "access", "secret", "private", "auth", "license", "licence", "signing", "encryption", "master"),
        *("service", "account", "admin", "deploy", "stream", "setup", "recovery", "app", "application", "shared"),
        *("product", "root", "activation", "wifi", "wlan", "security", "webhook", "subscription", "authentication"),
    }
)
"""What stands before a key that is one of these."""
OTHER_KEYS: Final = frozenset(
    {
        *(
            "public",
            "primary",
            "foreign",
            "session",
            "cache",
            "partition",
            "sort",
            "row",
            "map",
            "idempotency",
            "lookup",
        ),
        *(
            "object",
            "hash",
            "host",
            "storage",
            "group",
            "dedupe",
            "dedup",
            "index",
            "registry",
            "agent",
            "memory",
            "next",
        ),
        *("page", "cursor", "sync", "continuation", "progress", "unique", "composite", "config", "json", "translation"),
    }
)
"""What stands before a key or a token that is no secret."""
NO_VALUES: Final = frozenset(
    {
        *("hash", "hashes", "hashed", "fingerprint", "id", "ids", "digest", "checksum", "name", "named", "endpoint"),
        *("url", "uri", "path", "file", "count", "limit", "version", "type", "algorithm", "format", "length", "usage"),
        *("uses", "using", "via", "hashing", "expires", "expired", "since", "until", "at", "budget", "window", "model"),
        *("prefix", "suffix", "commit", "test", "tests", "see", "in", "about", "issue", "encoded", "generated", "by"),
    }
)
"""Words behind which something else follows than the secret: `token id`, `password hash`, `key in a.py`."""
VERBS: Final = frozenset(
    {
        *("is", "was", "to", "are", "be", "now", "as", "equals", "ist", "lautet", "war", "heißt", "est", "sera", "es"),
        *("era", "será", "é", "foi", "è", "fu", "är", "er", "on", "jest", "je", "este", "это", "είναι", "là", "adalah"),
        *("use", "try", "become", "becomes", "zu", "auf", "in", "naar", "till", "til", "na", "на"),
    }
)
"""What a value follows directly, beside signs."""
AS: Final = ("als", "como", "comme", "come", "som", "jako", "как", "olarak")
"""What stands between a value and what it is said to be."""
