"""Tokens that their issuers gave a shape of their own, as data: who issues them, where they begin, what they look like.

Written from what issuers publish of their formats. A shape stands here when ordinary text cannot have it: a prefix of
its own, and as many characters as the issuer says. Anything vaguer belongs to the names in `secret_names`.
"""

from __future__ import annotations

from typing import Final

KINDS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("GitLab", ("gl",), r"gl(?:pat|dt|rt|ft|soat|cbt|ptt|imt|agent)-[A-Za-z0-9_.-]{16,}+"),
    ("npm", ("npm_",), r"npm_[A-Za-z0-9]{30,}+"),
    ("Hugging Face", ("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{30,}+"),
    ("Stripe", ("_live_", "_test_"), r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}+"),
    ("Webhook signatures", ("whsec_",), r"whsec_[A-Za-z0-9+/=_-]{20,}+"),
    ("PyPI", ("pypi-",), r"pypi-[A-Za-z0-9_-]{30,}+"),
    ("SendGrid", ("sg.",), r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    ("Slack apps", ("xapp-",), r"xapp-[0-9]-[A-Za-z0-9-]{16,}+"),
    (
        "Slack webhooks",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_]{6,}+/[A-Za-z0-9_/]{12,}+)",
    ),
    (
        "Discord webhooks",
        ("/api/webhooks/",),
        r"discord(?:app)?\.com/api/webhooks/[0-9]{5,24}+/([A-Za-z0-9_-]{20,}+)",
    ),
    ("Discord bots", (".",), r"[MNO][A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+"),
    ("Teams webhooks", ("webhook.office.com",), r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{30,}+)"),
    ("Telegram bots", (":aa",), r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}+"),
    ("Shopify", ("shp",), r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    ("Twilio", ("sk",), r"SK[0-9a-f]{32}"),
    ("Mailgun", ("key-",), r"key-[0-9a-f]{32}"),
    ("Mailchimp", ("-us",), r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("Brevo", ("xkeysib-",), r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("DigitalOcean", ("_v1_",), r"do[opr]_v1_[a-f0-9]{64}"),
    ("Databricks", ("dapi",), r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    ("Vault", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{24,}+"),
    ("Terraform Cloud", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}+"),
    ("Linear", ("lin_",), r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+"),
    ("Notion", ("secret_", "ntn_"), r"(?:secret|ntn)_[A-Za-z0-9]{40,}+"),
    ("Figma", ("figd_",), r"figd_[A-Za-z0-9_-]{36,}+"),
    ("Grafana", ("glsa_", "glc_"), r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,}+"),
    ("Doppler", ("dp.",), r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}+"),
    ("PlanetScale", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}+"),
    ("Postman", ("pmak-",), r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("New Relic", ("nrak-", "nrii-", "nrjs-"), r"NR(?:AK|II|JS)-[A-Za-z0-9_-]{19,}+"),
    ("Sentry", ("sntry",), r"sntry[su]_[A-Za-z0-9+/=_-]{40,}+"),
    ("Square", ("sq0", "eaaa"), r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}+|EAAA[A-Za-z0-9_-]{60}"),
    ("Atlassian", ("atatt3", "atctt3", "atbb"), r"AT(?:ATT3|CTT3)[A-Za-z0-9_=-]{50,}+|ATBB[A-Za-z0-9]{28,}+"),
    (
        "Google OAuth",
        ("ya29.", "gocspx-", "1//0"),
        r"ya29\.[A-Za-z0-9_-]{20,}+|GOCSPX-[A-Za-z0-9_-]{24,}+|1//0[A-Za-z0-9_-]{30,}+",
    ),
    ("AWS sessions", ("abia", "acca"), r"A(?:BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    (
        "Azure connections",
        ("accountkey=", "sharedaccesskey="),
        r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}+={0,2})",
    ),
    ("Azure applications", ("q~",), r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    ("Facebook", ("eaac",), r"EAAC[A-Za-z0-9]{30,}+"),
    ("Groq", ("gsk_",), r"gsk_[A-Za-z0-9]{40,}+"),
    ("Perplexity", ("pplx-",), r"pplx-[A-Za-z0-9]{40,}+"),
    ("xAI", ("xai-",), r"xai-[A-Za-z0-9]{40,}+"),
    ("Replicate", ("r8_",), r"r8_[A-Za-z0-9]{36,}+"),
    ("Tavily", ("tvly-",), r"tvly-[A-Za-z0-9_-]{20,}+"),
    ("Supabase", ("sbp_", "sb_secret_"), r"sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,}+"),
    ("Netlify", ("nfp_",), r"nfp_[A-Za-z0-9]{36,}+"),
    ("Fly", ("fo1_", "fm1", "fm2"), r"fo1_[A-Za-z0-9_-]{36,}+|fm[12][ar]?_[A-Za-z0-9+/=]{80,}+"),
    ("Render", ("rnd_",), r"rnd_[A-Za-z0-9]{28,}+"),
    ("Docker Hub", ("dckr_",), r"dckr_[po]at_[A-Za-z0-9_-]{20,}+"),
    ("RubyGems", ("rubygems_",), r"rubygems_[a-f0-9]{48}"),
    ("crates.io", ("cio",), r"cio[A-Za-z0-9]{32}"),
    ("Clojars", ("clojars_",), r"CLOJARS_[a-z0-9]{60}"),
    ("NuGet", ("oy2",), r"oy2[a-z0-9]{43}"),
    ("Artifactory", ("akcp",), r"AKCp[A-Za-z0-9]{60,}+"),
    ("age", ("age-secret-key-1",), r"AGE-SECRET-KEY-1[0-9A-Z]{50,}+"),
    ("Pulumi", ("pul-",), r"pul-[a-f0-9]{40}"),
    ("Buildkite", ("bkua_",), r"bkua_[a-f0-9]{40}"),
    ("CircleCI", ("ccipat_",), r"CCIPAT_[A-Za-z0-9_-]{30,}+"),
    ("Airtable", ("pat",), r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("Contentful", ("cfpat-",), r"CFPAT-[A-Za-z0-9_-]{40,}+"),
    ("Dynatrace", ("dt0c01.",), r"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("EasyPost", ("ezak", "eztk"), r"EZ[AT]K[A-Za-z0-9]{54}"),
    ("Heroku", ("hrku-",), r"HRKU-[A-Za-z0-9_-]{36,}+"),
    ("Mapbox", ("sk.eyj",), r"sk\.eyJ[A-Za-z0-9_-]{20,}+\.[A-Za-z0-9_-]{16,}+"),
    ("Prefect", ("pnu_",), r"pnu_[a-z0-9]{36}"),
    ("ReadMe", ("rdme_",), r"rdme_[a-z0-9]{60,}+"),
    ("Shippo", ("shippo_",), r"shippo_(?:live|test)_[a-f0-9]{40}"),
    ("Typeform", ("tfp_",), r"tfp_[A-Za-z0-9_.=-]{40,}+"),
    ("Tailscale", ("tskey-",), r"tskey-[a-z]{2,10}-[A-Za-z0-9-]{16,}+"),
    ("1Password", ("ops_eyj",), r"ops_eyJ[A-Za-z0-9_-]{40,}+={0,3}"),
    ("Adafruit", ("aio_",), r"aio_[A-Za-z0-9]{28}"),
    ("Cloudflare origin", ("v1.0-",), r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}+"),
    ("Alibaba", ("ltai",), r"LTAI[A-Za-z0-9]{16,24}"),
    ("Asana", ("1/",), r"1/[0-9]{14,18}:[a-f0-9]{32}"),
    ("LaunchDarkly", ("sdk-", "api-"), r"(?:sdk|api)-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"),
)
"""Issuer, beginnings in lower case of which text that holds one has at least one, expression.

Where an expression has a group, that is the secret. None may follow a letter or a digit directly, and
each is one run of fifteen characters or more.
"""

LIKE_NAMES: Final = frozenset(
    {"LaunchDarkly", "Mailchimp", "Mailgun", "Render", "Tailscale", "Twilio", "Webhook signatures"}
)
"""Issuers whose tokens are a short word before a hash or a name: an id of a session may be one too."""

KEY_BLOCKS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "PGP and SSH2 keys",
        ("begin pgp private key", "begin ssh2"),
        r"-{4,5} ?BEGIN (?:PGP|SSH2)[A-Z ]{0,12} PRIVATE KEY[A-Z ]{0,8}-{4,5}(?:[^-]|-(?!---))*+(?:-----[A-Z0-9 ]+-)?",
    ),
    (
        "PuTTY keys",
        ("putty-user-key-file",),
        r"PuTTY-User-Key-File-[0-9]:[^\0]*?(?:Private-MAC: ?[a-f0-9]{16,}+|\Z)",
    ),
)
"""Private keys that are several lines of text, told in the same way."""
