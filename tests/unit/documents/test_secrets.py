from __future__ import annotations

import base64
import random
import string

import pytest

from ragx.documents.secrets import secret_name, secret_reason

ALNUM = string.ascii_letters + string.digits


def token(length: int, seed: int = 1) -> str:
    """Random letters and digits; made up here so that no file holds something that looks real."""
    rng = random.Random(seed)
    return "".join(rng.choice(ALNUM) for _ in range(length))


def pem(kind: str, headers: str = "", ending: str = "\n") -> str:
    body = base64.b64encode(random.Random(3).randbytes(300)).decode()
    lines = [body[i : i + 64] for i in range(0, len(body), 64)]
    dashes = "-" * 5
    text = f"{dashes}BEGIN {kind}{dashes}\n{headers}" + "\n".join(lines) + "\n"
    return text.replace("\n", ending)


@pytest.mark.parametrize(
    "path",
    [
        ".env", "app/.env", ".env.local", ".env.production", ".ENV", ".env.example.local", ".netrc",
        "home/.pgpass", "id_rsa", "keys/id_ed25519", "cert.p12", "cert.PFX", "store.jks",
        ".git-credentials", "aws/credentials", "vault.kdbx",
    ],
)  # fmt: skip
def test_names_that_are_secret(path: str) -> None:
    assert secret_name(path)
    assert secret_reason(path, b"") == secret_name(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example", ".env.sample", ".env.template", "env.py", "environment.md", "id_rsa.pub",
        "credentials.py", "docs/credentials.md", "server.pem", "api.key", ".npmrc", "secret.txt",
        "a.env/readme.md",
    ],
)  # fmt: skip
def test_names_that_are_not(path: str) -> None:
    assert secret_name(path) is None
    assert secret_reason(path, b"harmless = true\n") is None


SECRETS = {
    "GitHub": f'token = "ghp_{token(36)}"',
    "GitHub fine-grained": f"github_pat_{token(22)}_{token(59, 2)}",
    "Slack": f"SLACK=xoxb-123456789012-1234567890123-{token(24)}",
    "Stripe": f"stripe.api_key = 'sk_live_{token(24)}'",
    "OpenAI": f"OPENAI_API_KEY=sk-{token(48)}",
    "OpenAI project": f"key: sk-proj-{token(74)}",
    "Anthropic": f"key: sk-ant-api03-{token(90)}",
    "npm": f"npm_{token(36)}",
    "AWS": f"aws_access_key_id = AKIA{token(16).upper()}\naws_secret_access_key = {token(40)}\n",
    "PKCS8": pem("PRIVATE KEY"),
    "RSA": pem("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n"),
    "OpenSSH": pem("OPENSSH PRIVATE KEY"),
    "CRLF": pem("EC PRIVATE KEY", ending="\r\n"),
    "PGP": pem("PGP PRIVATE KEY BLOCK", "Version: x 1\n\n"),
    "after text": "bag attributes\n" + pem("PRIVATE KEY"),
    "Google": '{"type": "service_account",\n"private_key": "'
    + pem("PRIVATE KEY", ending="\\n")
    + '"}',
}


@pytest.mark.parametrize("kind", list(SECRETS))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_contents_that_are_secret(kind: str, encoding: str) -> None:
    head = f"# settings\n{SECRETS[kind]}\n".encode(encoding)
    assert secret_reason("settings.txt", head)
    assert secret_reason("settings.txt", b"# nothing\n") is None


DASHES = "-" * 5
MENTIONS = {
    "pattern": r're.compile(r"ghp_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16}|sk_live_[0-9a-zA-Z]{24}")',
    "short": "ghp_abc123 xoxb-1234-abcd sk_live_123 sk-123",
    "placeholder": "ghp_" + "x" * 36 + " sk-" + "0" * 48 + " ghp_" + "YOUR" * 9,
    "alphabet": "ghp_abcdefghijklmnopqrstuvwxyz0123456789 sk-" + ALNUM[:48],
    "AWS documentation": "AKIAIOSFODNN7EXAMPLE / wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS id alone": f"AKIA{token(16).upper()} is an id",
    "AWS id by a commit": f"AKIA{token(16).upper()} " + "0123456789abcdef0123456789abcdef01234567",
    "css": ".sk-fading-circle-with-a-really-long-class-name-2 { } #task-" + "a1" * 20,
    "inside a word": f"disk-{token(48)}",
    "header in code": f'if line.startswith("{DASHES}BEGIN RSA PRIVATE KEY{DASHES}"):\n    pass\n',
    "header alone": f"{DASHES}BEGIN PRIVATE KEY{DASHES}\n...\n{DASHES}END PRIVATE KEY{DASHES}\n",
    "indented": f"    {DASHES}BEGIN PRIVATE KEY{DASHES}\n    MII...\n",
    "blank body": f"{DASHES}BEGIN PRIVATE KEY{DASHES}\n" + "A" * 64 + "\n",
    "public key": pem("PUBLIC KEY"),
    "certificate": pem("CERTIFICATE"),
    "service account": '{"type": "service_account",\n"private_key": "'
    f'{DASHES}BEGIN PRIVATE KEY{DASHES}\\n…"}}',
}


@pytest.mark.parametrize("kind", list(MENTIONS))
def test_contents_that_only_mention_secrets(kind: str) -> None:
    assert secret_reason("docs/guide.md", MENTIONS[kind].encode()) is None


@pytest.mark.parametrize(
    ("path", "text", "is_secret"),
    [
        (".npmrc", "//registry.npmjs.org/:_authToken=3f2b8a7c-55aa", True),
        (".npmrc", "//registry.npmjs.org/:_authToken=${NPM_TOKEN}", False),
        (".npmrc", "save-exact=true\n# _authToken=comment-only-here", False),
        (".pypirc", "[pypi]\nusername = me\npassword = hunter2x", True),
        (".pypirc", "[pypi]\nrepository = https://x", False),
        ("tls.key", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", True),
        ("tls.key", "this is a legend for the map", False),
        ("putty.ppk", "PuTTY-User-Key-File-2: ssh-rsa\n", True),
    ],
)
def test_files_whose_name_asks_for_a_closer_look(path: str, text: str, is_secret: bool) -> None:
    assert (secret_reason(f"home/{path}", text.encode()) is not None) == is_secret


def test_this_file_and_the_detector_pass_their_own_test() -> None:
    for path in (__file__, secret_reason.__code__.co_filename):
        with open(path, "rb") as file:
            assert secret_reason(path, file.read(65536)) is None
