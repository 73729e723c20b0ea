"""Tokens and private keys with a shape of their own, as data: who issues them, where they begin, what they look like.

Written from what issuers publish of their formats. A shape stands here when ordinary text cannot have it: a prefix of
its own, and as many characters as the issuer says. Anything vaguer belongs to the names in `secret_names`.
"""

from __future__ import annotations

from typing import Final

_UUID = r"[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"
# A short word before letters of one case may begin a name, and before a hash an id.
_EACH_OF_THREE = r"(?=[A-Za-z_-]{0,99}+[0-9])(?=[a-z0-9_-]{0,99}+[A-Z])(?=[A-Z0-9_-]{0,99}+[a-z])"

KINDS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "GitLab",
        (
            *("glpat-", "gldt-", "glrt-", "glrtr-", "glft-", "glsoat-", "glcbt-", "glptt-", "glimt-", "glagent-"),
            *("gloas-", "glffct-", "glwt-"),
        ),
        r"gl(?:pat|dt|rtr?|ft|soat|cbt|ptt|imt|agent|oas|ffct|wt)-[A-Za-z0-9_.-]{16,}+",
    ),
    (
        "GitLab runners and sessions",
        ("gr1348941", "_gitlab_session="),
        r"GR1348941[A-Za-z0-9_-]{20,}+|_gitlab_session=([0-9a-z]{32})",
    ),
    ("npm", ("npm_",), r"npm_[A-Za-z0-9]{30,}+"),
    ("Hugging Face", ("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{30,}+|hf_oauth_[A-Za-z0-9_.=-]{30,}+"),
    ("Stripe", ("_live_", "_test_", "_prod_"), r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}+[A-Za-z0-9_-]*+"),
    ("Webhook signatures", ("whsec_",), r"whsec_[A-Za-z0-9+/=_-]{20,}+"),
    ("PyPI", ("pypi-",), r"pypi-[A-Za-z0-9_-]{30,}+"),
    ("SendGrid", ("sg.",), r"SG\.(?:[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+|[A-Za-z0-9=_.-]{66}(?![A-Za-z0-9=_.-]))"),
    ("Slack apps", ("xapp-",), r"xapp-[0-9]-[A-Za-z0-9-]{16,}+"),
    (
        "Slack webhooks",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_]{6,}+/[A-Za-z0-9_/+]{6,}+)",
    ),
    (
        "Discord webhooks",
        ("/api/webhooks/",),
        r"discord(?:app)?\.com/api/webhooks/[0-9]{5,24}+/([A-Za-z0-9_-]{20,}+)",
    ),
    ("Discord bots", (".",), r"[MNO][A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+"),
    ("Teams webhooks", ("webhook.office.com",), r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{30,}+)"),
    ("Telegram bots", (":aa",), r"(?:bot)?([0-9]{8,10}:AA[A-Za-z0-9_-]{32,}+)"),
    ("Shopify", ("shp",), r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    ("Twilio", tuple(f"sk{digit}" for digit in "0123456789abcdef"), r"SK[0-9a-fA-F]{32}"),
    ("Mailgun", ("key-",), r"key-[0-9a-f]{32}"),
    ("Mailchimp", ("-us",), r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("Brevo", ("xkeysib-", "xsmtpsib-"), r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("MailerSend", ("mlsn.",), r"mlsn\.[a-f0-9]{64}(?![A-Za-z0-9])"),
    ("DigitalOcean", ("_v1_",), r"do[opr]_v1_[a-f0-9]{64}"),
    ("Databricks", ("dapi",), r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    ("Vault", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{24,}+"),
    ("Terraform Cloud", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}+"),
    ("Linear", ("lin_",), r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+"),
    ("Notion", ("secret_", "ntn_"), r"(?:secret|ntn)_[A-Za-z0-9]{40,}+"),
    ("Figma", ("figd_",), r"figd_[A-Za-z0-9_-]{36,}+"),
    (
        "Grafana",
        ("glsa_", "glc_", "eyjrijoi"),
        r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,}+|eyJrIjoi[A-Za-z0-9]{44}LCJuIjoi[A-Za-z0-9+/=_-]{4,}+|eyJrIjoi[A-Za-z0-9]{70,}+",
    ),
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
    ("AWS sessions", ("abia", "acca", "a3t"), r"A(?:BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])"),
    (
        "Azure connections",
        ("accountkey=", "sharedaccesskey="),
        r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}+={0,2})",
    ),
    ("Azure applications", ("q~",), r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    ("Firebase messaging", (":apa91b",), r"[A-Za-z0-9_-]{11,22}:APA91b[A-Za-z0-9_-]{100,}+"),
    ("Facebook", ("eaa",), r"EAAC[A-Za-z0-9]{30,}+|EAA[A-Z][A-Za-z0-9]{100,}+"),
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
    ("Artifactory", ("akcp", "cmvmd"), r"AKCp[A-Za-z0-9]{60,}+|cmVmd[A-Za-z0-9]{59}(?![A-Za-z0-9])"),
    ("age", ("age-secret-key-1",), r"AGE-SECRET-KEY-1[0-9A-Z]{50,}+"),
    ("Pulumi", ("pul-",), r"pul-[a-f0-9]{40}"),
    (
        "Buildkite",
        ("bkua_", "bkaj_", "bkat_", "bkct_", "bkpt_", "bkpi_"),
        r"bk(?:ua|aj|at|ct|pt|pi)_[A-Za-z0-9_-]{30,}+",
    ),
    ("CircleCI", ("ccipat_", "cciprj_"), r"CCIP(?:AT|RJ)_[A-Za-z0-9_-]{30,}+"),
    ("Airtable", ("pat",), r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("Contentful", ("cfpat-",), r"CFPAT-[A-Za-z0-9_-]{40,}+"),
    ("Dynatrace", ("dt0",), r"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    ("EasyPost", ("ezak", "eztk"), r"EZ[AT]K[A-Za-z0-9]{54}"),
    ("Heroku", ("hrku-",), r"HRKU-[A-Za-z0-9_-]{36,}+"),
    ("Mapbox", ("sk.eyj",), r"sk\.eyJ[A-Za-z0-9_-]{20,}+\.[A-Za-z0-9_-]{16,}+"),
    ("Prefect", ("pnu_",), r"pnu_[A-Za-z0-9]{36}"),
    ("ReadMe", ("rdme_",), r"rdme_[a-z0-9]{60,}+"),
    ("Shippo", ("shippo_",), r"shippo_(?:live|test)_[a-fA-F0-9]{40}"),
    ("Typeform", ("tfp_",), r"tfp_[A-Za-z0-9_.=-]{40,}+"),
    ("Tailscale", ("tskey-",), r"tskey-[a-z]{2,10}-[A-Za-z0-9-]{16,}+"),
    ("1Password", ("ops_eyj",), r"ops_eyJ[A-Za-z0-9+/_-]{40,}+={0,3}"),
    ("Adafruit", ("aio_",), r"aio_[A-Za-z0-9]{28}"),
    ("Cloudflare origin", ("v1.0-",), r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}+"),
    ("Alibaba", ("ltai",), r"LTAI[A-Za-z0-9]{16,24}"),
    ("Tencent Cloud", ("akid",), r"AKID" + _EACH_OF_THREE + r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("Asana", ("1/", "2/"), r"[12]/[0-9]{14,18}(?:/[0-9]{14,18})?:[a-f0-9]{32}"),
    ("Helicone", ("sk-helicone-",), r"sk-helicone-(?:[a-z0-9]{7}-){3}[a-z0-9]{7}"),
    ("Infisical", ("st.",), r"st\.[a-f0-9]{24}\.[a-f0-9]{32}\.[a-f0-9]{32}"),
    ("Salesforce", ("00d",), r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.]{80,}+"),
    ("LaunchDarkly", ("sdk-", "api-"), r"(?:sdk|api)-" + _UUID),
    ("NVIDIA", ("nvapi-",), r"nvapi-[A-Za-z0-9_-]{60,}+"),
    ("Cerebras", ("csk-",), r"csk-[a-z0-9]{48}(?![A-Za-z0-9])"),
    ("Pinecone", ("pcsk_",), r"pcsk_[A-Za-z0-9]{5,7}_[A-Za-z0-9]{50,}+"),
    ("LangSmith", ("lsv2_", "ls__"), r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}|ls__[a-f0-9]{32}"),
    (
        "Sourcegraph",
        ("sgp_", "sgd_", "sgs_", "slk_"),
        r"sgp_(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40}(?![A-Za-z0-9])|s(?:gd|gs|lk)_[a-f0-9]{64}(?![A-Za-z0-9])",
    ),
    ("Sonar", ("sq",), r"sq[apu]_[a-f0-9]{40}(?![A-Za-z0-9])"),
    ("OpenShift", ("sha256~",), r"sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    ("HubSpot", ("pat-",), r"pat-[a-z]{2}[0-9]-" + _UUID),
    ("Plaid", ("access-",), r"access-(?:production|development|sandbox)-" + _UUID),
    ("Duffel", ("duffel_",), r"duffel_(?:live|test)_[A-Za-z0-9_=-]{40,}+"),
    ("Fireworks", ("fw_",), r"fw_" + _EACH_OF_THREE + r"[A-Za-z0-9]{22,28}(?![A-Za-z0-9_-])"),
    ("Jina", ("jina_",), r"jina_[a-f0-9]{32}[A-Za-z0-9_-]{20,}+"),
    ("Together", ("tgp_v1_",), r"tgp_v1_[A-Za-z0-9_-]{40,}+"),
    ("ElevenLabs", ("sk_",), r"sk_[a-f0-9]{48}(?![A-Za-z0-9])"),
    ("RevenueCat, Novita and others", ("sk_",), r"sk_" + _EACH_OF_THREE + r"[A-Za-z0-9_-]{28,99}(?![A-Za-z0-9_-])"),
    ("Amazon Bedrock", ("absk", "bedrock-api-key-"), r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/]{100,}+={0,2}"),
    (
        "Amazon applications",
        ("amzn",),
        r"amzn1\.oa2-cs\.v1\.[a-f0-9]{64}|amzn\.mws\." + _UUID,
    ),
    (
        "1Password devices",
        ("a3-",),
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Za-z0-9])",
    ),
    ("Adobe", ("p8e-",), r"p8e-[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    (
        "Authress",
        (".acc_", ".acc-"),
        r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}+",
    ),
    ("ClickHouse", ("4b1d",), r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("Defined Networking", ("dnkey-",), r"dnkey-[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}"),
    ("Dropbox", ("sl.",), r"sl\.(?:[a-z]\.)?[A-Za-z0-9_=-]{120,}+"),
    ("Flutterwave", ("flwseck",), r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}+(?:-X)?"),
    ("Frame.io", ("fio-u-",), r"fio-u-[A-Za-z0-9_=-]{60,}+"),
    ("Harness", ("pat.", "sat."), r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}(?![A-Za-z0-9])"),
    ("Infracost", ("ico-",), r"ico-" + _EACH_OF_THREE + r"[A-Za-z0-9]{32}(?![A-Za-z0-9_-])"),
    ("42", ("s-s4t2",), r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),
    ("MaxMind", ("_mmk",), r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9_])"),
    # 26 characters that begin with 01 are an id that says when it was made.
    ("Octopus", ("api-",), r"API-(?!0[0-7])(?=[A-Z]*+[0-9])(?=[0-9]*+[A-Z])[A-Z0-9]{26}(?![A-Za-z0-9_-])"),
    (
        "Scalingo",
        ("tk-us-",),
        r"tk-us-(?:" + _EACH_OF_THREE + r"[A-Za-z0-9_-]{48}|(?=[a-z]*[0-9])[A-Za-z0-9]{48})(?![A-Za-z0-9_-])",
    ),
    ("SettleMint", ("sm_",), r"sm_[aps]at_[A-Za-z0-9]{16,}+"),
    ("Supermemory", ("sm_",), r"sm_[A-Za-z0-9]{20,24}_" + _EACH_OF_THREE + r"[A-Za-z0-9_-]{40,}+"),
    (
        "Yandex",
        ("t1.", "aqvn"),
        r"t1\.[A-Za-z0-9_-]{1,400}+={0,2}\.[A-Za-z0-9_-]{86}={0,2}|AQVN[A-Za-z0-9_-]{35,38}(?![A-Za-z0-9_-])",
    ),
    ("Resend", ("re_",), r"re_" + _EACH_OF_THREE + r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9_])"),
    ("PostHog", ("phx_",), r"phx_[A-Za-z0-9]{40,}+"),
    ("Neon", ("napi_",), r"napi_[a-z0-9]{48,}+"),
    ("Apify", ("apify_api_",), r"apify_api_[A-Za-z0-9]{34,}+"),
    ("E2B", ("e2b_",), r"e2b_[a-f0-9]{40}(?![A-Za-z0-9])"),
    ("Runpod", ("rpa_",), r"rpa_[A-Z0-9]{40,}+"),
    ("Browserbase", ("bb_live_",), r"bb_live_[A-Za-z0-9_-]{20,}+"),
    (
        "Vercel",
        ("vercel_blob_rw_", "vcp_", "vca_", "vci_", "vcr_", "vck_"),
        r"vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30,}+|vc[paikr]_" + _EACH_OF_THREE + r"[A-Za-z0-9]{24,}+",
    ),
    ("Gemini", ("aq.",), r"AQ\.[A-Za-z0-9_-]{40,}+"),
    ("Azure DevOps", ("azdo",), r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])"),
    ("Azure AI", ("jqqj9",), r"[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{20,30}(?![A-Za-z0-9])"),
    (
        "Azure keys",
        ("+ast", "acdb", "azse", "azfu", "+amc", "+aeh", "+aiot"),
        (
            r"[A-Za-z0-9+/]{76}(?:\+ASt|ACDb)[A-Za-z0-9+/]{6}==|[A-Za-z0-9_-]{42,44}Az(?:Se|Fu)[A-Za-z0-9_=-]{6,10}"
            r"|[A-Za-z0-9+/]{33}\+A(?:mc|Eh|IoT)[A-Za-z0-9+/]{5,6}="
        ),
    ),
    ("Voyage", ("pa-",), r"pa-" + _EACH_OF_THREE + r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    ("Firecrawl", ("fc-",), r"fc-[a-f0-9]{32}(?![A-Za-z0-9_-])"),
    ("Weights & Biases", ("wandb_v1_",), r"wandb_v1_[A-Za-z0-9_-]{40,}+"),
    ("Snyk", ("snyk_uat.", "snyk_sat."), r"snyk_[us]at\.[A-Za-z0-9]{6,12}\.[A-Za-z0-9._-]{30,}+"),
    ("Deno", ("ddp_", "ddo_", "ddw_"), r"dd[pow]_[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    ("Axiom", ("xaat-", "xapt-"), r"xa[ap]t-" + _UUID),
    ("Honeycomb", ("hca", "hcb", "hcx"), r"hc[abx][a-z]{2}_[a-z0-9]{26}[A-Za-z0-9]{20,}+"),
    ("MongoDB Atlas", ("mdb_sa_sk_",), r"mdb_sa_sk_[A-Za-z0-9_-]{30,}+"),
    ("Nostr", ("nsec1",), r"nsec1[02-9ac-hj-np-z]{58}(?![A-Za-z0-9])"),
    ("Bitcoin", ("xprv", "yprv", "zprv", "tprv"), r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}(?![A-Za-z0-9])"),
    ("LlamaCloud", ("llx-",), r"llx-[A-Za-z0-9]{40,}+"),
    ("Cal.com", ("cal_live_",), r"cal_live_[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("Alchemy", ("g.alchemy.com/v2/",), r"g\.alchemy\.com/v2/([A-Za-z0-9_-]{20,}+)"),
    ("Infura", ("infura.io/",), r"infura\.io/(?:ws/)?v3/([a-f0-9]{32})(?![A-Za-z0-9])"),
    ("Zapier webhooks", ("hooks.zapier.com/",), r"hooks\.zapier\.com/hooks/catch/[0-9]{4,12}/([A-Za-z0-9]{6,}+)"),
    ("Trigger.dev", ("tr_prod_", "tr_dev_", "tr_pat_", "tr_stg_"), r"tr_(?:prod|dev|pat|stg)_[A-Za-z0-9]{20,}+"),
    ("Inngest", ("signkey-",), r"signkey-(?:prod|test|branch)-[A-Za-z0-9]{32,}+"),
    ("Polar", ("polar_",), r"polar_(?:oat|pat|at_[uo]|rt_[uo]|whs)_[A-Za-z0-9]{30,}+"),
    ("Paddle", ("pdl_",), r"pdl_(?:live|sdbx)_[a-z]{4,8}_[A-Za-z0-9_]{30,}+"),
    ("Socket", ("sktsec_",), r"sktsec_[A-Za-z0-9_-]{30,}+"),
    ("ClickUp", ("pk_",), r"pk_[0-9]{6,10}_[A-Z0-9]{32}(?![A-Za-z0-9])"),
    ("WooCommerce", ("ck_", "cs_"), r"c[ks]_[a-f0-9]{40}(?![A-Za-z0-9])"),
    ("Gitea", ("gta_",), r"gta_[a-f0-9]{40}(?![A-Za-z0-9])"),
    ("Cursor", ("crsr_", "key_"), r"crsr_[a-f0-9]{32,}+|key_[a-f0-9]{64}(?![A-Za-z0-9])"),
    ("OneSignal", ("os_v2_",), r"os_v2_(?:app|org)_[a-z0-9]{60,}+"),
    ("Modal", ("ak-", "as-"), r"a[ks]-" + _EACH_OF_THREE + r"[A-Za-z0-9]{22}(?![A-Za-z0-9_-])"),
    ("Stytch", ("secret-live-", "secret-test-"), r"secret-(?:live|test)-[A-Za-z0-9_=-]{30,}+"),
    ("Bitwarden", ("0.",), r"0\." + _UUID + r"\.[A-Za-z0-9]{30}:[A-Za-z0-9+/]{22,}+={0,2}"),
    ("Cloudflare", ("cfut_", "cfat_", "cfk_"), r"cf(?:ut|at|k)_[A-Za-z0-9_-]{36,}+"),
    ("Twitch", ("oauth:",), r"oauth:([a-z0-9]{30})(?![A-Za-z0-9])"),
    ("Aiven", ("avns_",), r"AVNS_" + _EACH_OF_THREE + r"[A-Za-z0-9_-]{19}(?![A-Za-z0-9_-])"),
    ("WakaTime", ("waka_",), r"waka_(?:[a-z]{2,6}_)?" + _UUID),
    ("Trello", ("atta",), r"ATTA[A-Fa-f0-9]{64,}+"),
    ("Letta", ("sk-let-",), r"sk-let-[A-Za-z0-9+/]{40,}+={0,2}"),
    ("Mem0", ("m0-",), r"m0-" + _EACH_OF_THREE + r"[A-Za-z0-9]{40}(?![A-Za-z0-9_-])"),
    ("Context7", ("ctx7sk",), r"ctx7sk[_-]" + _UUID),
)
"""Issuer, beginnings in lower case of which text that holds one has at least one, expression.

Where an expression has a group, that is the secret. None may follow a letter or a digit directly, and
each is one run of fifteen characters or more.
"""

STEM_INSIDE: Final = frozenset(
    {
        *(
            "Stripe",
            "Discord webhooks",
            "Discord bots",
            "Telegram bots",
            "Mailchimp",
            "DigitalOcean",
            "Firebase messaging",
        ),
        *("Terraform Cloud", "Azure applications", "Authress", "MaxMind", "Azure DevOps", "Azure AI", "Azure keys"),
    }
)
"""Issuers whose tokens do not begin with what they are known by."""

LIKE_NAMES: Final = frozenset(
    {
        *("Adobe", "HubSpot", "LaunchDarkly", "Mailchimp", "Mailgun", "Octopus", "Plaid", "Render", "Tailscale"),
        *("Twilio", "Webhook signatures", "Voyage", "Firecrawl", "Modal", "Axiom", "WooCommerce", "Cursor", "Stytch"),
    }
)
"""Issuers whose tokens are a short word before a hash or a name: an id of a session may be one too."""

# A block of a private key ends with its last line. Where that line is missing, because the text was cut or only speaks
# of a key, the block is as long as its lines look like those of a key: what is said after it stays readable.
# A line may end in a line break, in an escaped one, shown or not, or in both, as in strings that source code joins.
_BREAK = r"[ \t\"',+>|]{0,16}+(?:\\{1,8}r)?(?:\\{0,8}(?:\\n|\x0b{1,9}\n))?[ \t\"',+]{0,8}+(?:\r?\n)?[ \t\"'>|]{0,16}+"
_BASE64 = r"[A-Za-z0-9+/=]"
_CODED = _BREAK + (
    rf"(?:{_BASE64}{{16,}}+|{_BASE64}{{1,15}}+(?:(?<==)|(?=[ \t\"',]{{0,8}}(?:\r?\n|\\{{1,8}}[nr]|\\{{0,7}}\x0b|\Z))))"
)
_HEADER = (
    _BREAK + r"(?:Proc-Type|DEK-Info|Version|Comment|Subject|Hash|Charset|MessageID|x-[a-z-]{1,20}):[^\r\n\\]{0,200}+"
)
_LINES = rf"(?:{_HEADER}){{0,8}}+(?:(?:{_BREAK})?(?:{_CODED})++)?"
# The beginning of another key ends the search, so that no text is walked twice.
_TO_END = r"(?:[^-]|-(?!---))*+-{4,5} ?END[A-Z0-9 ]{0,40}-{0,5}"
_PUTTY_HEADER = _BREAK + (
    r"(?:Encryption|Comment|(?:Public|Private)-(?:Lines|MAC|Hash)|Key-Derivation|Argon2-[A-Za-z]{1,16}):[^\r\n\\]{0,200}+"
)

KEY_BLOCKS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "PGP and SSH2 keys",
        ("begin pgp private key", "begin ssh2"),
        rf"-{{4,5}} ?BEGIN (?:PGP|SSH2)[A-Z ]{{0,12}} PRIVATE KEY[A-Z ]{{0,8}}-{{4,5}}(?:{_TO_END}|{_LINES})",
    ),
    (
        "PuTTY keys",
        ("putty-user-key-file",),
        rf"PuTTY-User-Key-File-[0-9]:[^\r\n\\]{{0,200}}+(?:{_PUTTY_HEADER}|{_CODED})*+",
    ),
    (
        "PEM",
        ("private key-----",),
        rf"-----BEGIN [A-Z0-9 ]{{0,32}}PRIVATE KEY-----(?![`'\"][^\\\"+]{{0,200}}[.`])(?:{_TO_END}|{_LINES})",
    ),
    (
        "OpenVPN static keys",
        ("begin openvpn static key",),
        rf"-----BEGIN OpenVPN Static key V[0-9]-----(?:{_TO_END}|{_LINES})",
    ),
)
"""Name, stems (a text with the shape has one of them in lower case), expression."""
