"""Files that hold credentials: told by their name, or by what their first kilobytes hold.

An index keeps text in plain, so these stay out of it. Source code and documentation that only
mention a format must pass: a token counts when its length, alphabet and randomness are those of
a real one, a key when its header starts a line and base64 follows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

__all__ = ["secret_name", "secret_reason"]

_ENV_TEMPLATES = ("example", "sample", "template", "dist", "defaults", "schema")

_SECRET_NAMES = {
    ".netrc": "login file",
    "_netrc": "login file",
    ".pgpass": "login file",
    "pgpass.conf": "login file",
    ".my.cnf": "login file",
    ".git-credentials": "credentials file",
    ".htpasswd": "credentials file",
    ".vault-token": "credentials file",
    ".dockercfg": "credentials file",
    "credentials": "credentials file",
    "credentials.csv": "credentials file",
    "id_rsa": "private key",
    "id_dsa": "private key",
    "id_ecdsa": "private key",
    "id_ecdsa_sk": "private key",
    "id_ed25519": "private key",
    "id_ed25519_sk": "private key",
}

_SECRET_SUFFIXES = {
    ".p12": "key store",
    ".pfx": "key store",
    ".jks": "key store",
    ".keystore": "key store",
    ".kdbx": "password store",
}

# At the start of a line, indented, or in a string whose line ends may be written `\\n`.
_PEM = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[ \t]*(?:\r?\n|(?:\\r)?\\n)[ \t]*"
    # RFC 1421 and PGP headers may stand between the first line and the body.
    rb"(?:[A-Za-z-]{1,40}: [^\n]{0,200}\n)*(?:\r?\n)?[ \t]*"
    rb"([A-Za-z0-9+/=]{40,})"
)
# Every OpenSSH key begins with these bytes, and goes on with much that is not random at all.
_OPENSSH_BODY = b"b3BlbnNzaC1rZXktdjE"
_PUTTY = re.compile(rb"\APuTTY-User-Key-File-\d: ")
_KEY_TEXT = re.compile(rb"\A\s*(?:[0-9A-Fa-f]{32,}|[A-Za-z0-9+/]{32,}={0,2})\s*\Z")
_SERVICE_ACCOUNT = re.compile(rb'"type"\s*:\s*"service_account"')
_SERVICE_KEY = re.compile(
    rb'"private_key"\s*:\s*"-----BEGIN (?:RSA )?PRIVATE KEY-----\\n([A-Za-z0-9+/=]{40,})'
)
_AWS_ID = re.compile(rb"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Z0-9])")
_AWS_SECRET = re.compile(rb"(?<![A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")
_AWS_REACH = 400
_AWS_NAMED = re.compile(
    rb"aws_secret_access_key[\"']?[ \t]*[=:][ \t]*[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    re.IGNORECASE,
)
_HUGGING_FACE = re.compile(rb"hf_([A-Za-z0-9]{30,40})(?![A-Za-z0-9_])")
# No pattern below matches text that holds none of these.
_MARKS = (
    *(b"PRIVATE KEY", b"PuTTY-User-Key", b"AKIA", b"ASIA", b"AIza", b"xox", b"sk-", b"glpat-"),
    *(b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_", b"npm_", b"pypi-AgEI"),
    *(b"k_live_", b"hf_", b"aws_secret_access_key", b"AWS_SECRET_ACCESS_KEY"),
)

# Pattern whose only group is the random part, what it is. Each begins with a literal, because that
# lets the regex engine skip ahead: what may stand before it is tested after the match.
_TOKENS = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (rb"gh[pousr]_([A-Za-z0-9]{36,255})(?![A-Za-z0-9_])", "GitHub token"),
        (rb"github_pat_([A-Za-z0-9]{20,}_[A-Za-z0-9]{40,})", "GitHub token"),
        (rb"glpat-([A-Za-z0-9_-]{20,})", "GitLab token"),
        (rb"xox[abeoprs]-(?:[0-9]+-){1,4}([A-Za-z0-9]{20,})", "Slack token"),
        (rb"sk_live_([A-Za-z0-9]{24,})", "Stripe key"),
        (rb"rk_live_([A-Za-z0-9]{24,})", "Stripe key"),
        (rb"AIza([A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])", "Google API key"),
        (rb"npm_([A-Za-z0-9]{36})(?![A-Za-z0-9_])", "npm token"),
        (rb"pypi-AgEI([A-Za-z0-9_-]{50,})", "PyPI token"),
        (rb"sk-(?:[a-z]+[0-9]*-){0,3}([A-Za-z0-9_-]{32,})", "model provider key"),
    )
)
_WORD_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")

_RC_SECRET = {
    ".npmrc": re.compile(
        rb"^[ \t]*[^#;\s]*(?:_authToken|_auth|_password)[ \t]*=[ \t]*[\"']?(?!\$\{)[^\s\"']{8,}",
        re.M,
    ),
    ".yarnrc.yml": re.compile(
        rb"^\s*npmAuth(?:Token|Ident)\s*:\s*[\"']?(?!\$\{)[^\s\"']{8,}", re.M
    ),
    ".pypirc": re.compile(rb"^[ \t]*password[ \t]*[=:][ \t]*(?!\$|%\()\S{4,}", re.M),
}

_PLACEHOLDERS = (
    b"example",
    b"placeholder",
    b"your",
    b"dummy",
    b"fake",
    b"redacted",
    b"xxxx",
    b"...",
)


def secret_name(path: str) -> str | None:
    """Why a file's name alone marks it as holding credentials; None if it does not.

    Templates (`.env.example`, `.env.sample`, ...) are meant to be shared and pass.
    """
    name = path.rsplit("/", 1)[-1].lower()
    if name == ".env":
        return "environment file"
    if name.startswith(".env."):
        return None if name.rsplit(".", 1)[1] in _ENV_TEMPLATES else "environment file"
    reason = _SECRET_NAMES.get(name)
    if reason is None and "." in name:
        reason = _SECRET_SUFFIXES.get(name[name.rindex(".") :])
    return reason


def secret_reason(path: str, head: bytes) -> str | None:
    """Why a file is left out as holding credentials; None if it may be indexed.

    Args:
        path: root-relative POSIX path; its last part counts.
        head: the file's bytes, or as many of the first as shall be looked at.
    """
    reason = secret_name(path)
    if reason:
        return reason
    if b"\0" in head:
        # ASCII patterns then match UTF-16 text as well.
        head = head.replace(b"\0", b"")
    name = path.rsplit("/", 1)[-1].lower()
    if name not in _RC_SECRET and not name.endswith(".key") and not any(m in head for m in _MARKS):
        return None
    return _key_reason(name, head) or _token_reason(head) or _rc_reason(name, head)


def _key_reason(name: str, head: bytes) -> str | None:
    if b"PRIVATE KEY" in head:
        for match in _PEM.finditer(head):
            if match[1].startswith(_OPENSSH_BODY) or _is_random(match[1], least=3.0):
                return "private key"
        if _SERVICE_ACCOUNT.search(head):
            account = _SERVICE_KEY.search(head)
            if account and _is_random(account[1], least=3.0):
                return "service account key"
    if head.startswith(b"PuTTY-") and _PUTTY.match(head):
        return "private key"
    if name.endswith(".key") and _KEY_TEXT.match(head):
        return "key file"
    return None


def _token_reason(head: bytes) -> str | None:
    for pattern, reason in _TOKENS:
        for match in pattern.finditer(head):
            start = match.start()
            if (not start or head[start - 1] not in _WORD_BYTES) and _is_token(match[1]):
                return reason
    for match in _HUGGING_FACE.finditer(head):
        token = match[1]
        mixed = token not in (token.lower(), token.upper())
        if mixed and _is_random(token, least=3.5):
            return "model hub token"
    if any(_is_token(match[1]) for match in _AWS_NAMED.finditer(head)):
        return "AWS access key"
    for match in _AWS_ID.finditer(head):
        start, end = match.span()
        if (start and head[start - 1] in _WORD_BYTES) or _has_placeholder(match[0]):
            continue
        near = head[max(0, start - _AWS_REACH) : end + _AWS_REACH]
        if any(_is_token(secret) for secret in _AWS_SECRET.findall(near)):
            return "AWS access key"
    return None


def _rc_reason(name: str, head: bytes) -> str | None:
    pattern = _RC_SECRET.get(name)
    if pattern and any(not _has_placeholder(match[0]) for match in pattern.finditer(head)):
        return "registry login"
    return None


def _is_token(secret: bytes) -> bool:
    """Whether it looks drawn at random from letters and digits, and not like words or a hash."""
    digits = sum(byte in b"0123456789" for byte in secret)
    letters = len(set(secret.lower()) - set(b"0123456789"))
    mixed = secret != secret.lower() and secret != secret.upper()
    return digits >= 2 and letters >= 6 and (mixed or digits >= 5) and _is_random(secret, least=3.5)


def _is_random(secret: bytes, *, least: float) -> bool:
    """Entropy of at least `least` bits a byte, and neither a placeholder nor a keyboard run."""
    if _has_placeholder(secret):
        return False
    counts = Counter(secret)
    total = len(secret)
    entropy = -sum(n / total * math.log2(n / total) for n in counts.values())
    # Neighbours in the alphabet ("abcdef", "123456", "aaaa") make up a twentieth by chance.
    steps = sum(abs(a - b) <= 1 for a, b in pairwise(secret))
    return entropy >= least and steps * 3 < total


def _has_placeholder(secret: bytes) -> bool:
    low = secret.lower()
    return any(word in low for word in _PLACEHOLDERS)
