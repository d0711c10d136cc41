"""JSON over HTTP to a model server: retries, limits, and errors in ragx's own words.

Every exception of httpx is translated here and nowhere else. No message, repr or traceback made
here holds a key; a server's own words are cleaned before they are shown.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult, urlsplit

from ragx.errors import ConfigError, ProviderError, ProviderRefused, ProviderUnavailable
from ragx.providers.retry import CircuitBreaker, Clock, Kind, RetryPolicy, retry_after_s

if TYPE_CHECKING:
    import httpx

__all__ = ["Classify", "ServerClient", "translate"]

T = TypeVar("T")
Classify = Callable[[int, str], ProviderError | None]

MAX_REPLY_BYTES = 256 * 1024 * 1024
_EXCERPT_CHARS = 300
_LOOPBACK = re.compile(r"localhost|.+\.localhost|127(\.\d{1,3}){3}|::1", re.IGNORECASE)
_CONTENT_STATUSES = frozenset({400, 413, 422})
_BUSY_STATUSES = frozenset({408, 409, 425, 502, 503, 504})


class _Failed(Exception):
    """One attempt that failed, with what the retry decision needs."""

    def __init__(self, kind: Kind, error: ProviderError, wait_s: float | None = None) -> None:
        super().__init__(error.message)
        self.kind = kind
        self.error = error
        self.wait_s = wait_s


class ServerClient:
    """Posts JSON to one server; safe to use from several threads."""

    def __init__(
        self,
        base_url: str,
        *,
        section: str,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        connect_timeout_s: float = 5.0,
        max_connections: int = 4,
        policy: RetryPolicy | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Check the settings; nothing is sent yet.

        Args:
            base_url: such as http://localhost:1234/v1.
            section: the part of ragx.toml that hints name.
            api_key: sent as a bearer token when not empty.
            timeout_s: the longest one answer may take.
            connect_timeout_s: the longest a connection may take to open.
            max_connections: requests in flight.
            policy: retries.
            clock: for tests.
        Raises:
            ConfigError: the URL or the key cannot be used.
        """
        self._section = section
        self._url = _checked_url(base_url, section)
        self._api_key = _checked_key(api_key, section)
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._max_connections = max_connections
        self._policy = policy or RetryPolicy()
        self._clock = clock or Clock()
        self._breaker = CircuitBreaker(self._clock.monotonic)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def post(
        self,
        path: str,
        body: Mapping[str, object],
        *,
        subject: str,
        parse: Callable[[object], T],
        classify: Classify | None = None,
    ) -> T:
        """Send a JSON body and return what `parse` makes of the JSON reply.

        Args:
            path: appended to the base URL, such as "/embeddings".
            body: JSON-ready; lone surrogates are sent as "?".
            subject: what was asked for, such as "model 'bge-m3'"; named in errors.
            parse: takes the JSON value apart; its ProviderErrors are passed on, untried again.
            classify: given status and message of a refusal, the error that fits better; such an
                error is final.
        Raises:
            ProviderUnavailable: nothing answered, or nothing usable, after all retries.
            ProviderRefused: the server said no.
            ProviderError: what `classify` made of a refusal, or `parse` of a reply.
        """
        payload = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        attempt = 0
        while True:
            self._breaker.check()
            attempt += 1
            try:
                reply = self._attempt(path, payload, subject, classify)
            except _Failed as failed:
                if attempt < self._policy.attempts.get(failed.kind, 1):
                    pause = failed.wait_s
                    if pause is None:
                        pause = self._policy.pause_s[failed.kind] * 2 ** (attempt - 1)
                    if pause <= self._policy.max_pause_s:
                        self._pause(pause)
                        continue
                self._breaker.failed(failed.kind, failed.error)
                failed.error.details["attempts"] = attempt
                raise failed.error from failed.__cause__
            try:
                parsed = parse(reply)
            except ProviderError as error:
                self._breaker.failed("content", error)
                raise
            self._breaker.succeeded()
            return parsed

    def close(self) -> None:
        """Close connections and wake whoever waits for a retry; nothing can be sent after it."""
        self._closed.set()
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _pause(self, seconds: float) -> None:
        if self._clock.sleep is not None:
            self._clock.sleep(seconds)
        else:
            self._closed.wait(seconds)
        if self._closed.is_set():
            raise ProviderUnavailable(f"{self._shown('')}: the connection was closed")

    def _attempt(
        self, path: str, payload: bytes, subject: str, classify: Classify | None
    ) -> object:
        import httpx

        shown = self._shown(path)
        client = self._open()
        deadline = self._clock.monotonic() + self._connect_timeout_s + self._timeout_s
        content = bytearray()
        try:
            with client.stream("POST", self._target(path), content=payload) as response:
                # A server that sends a byte now and then never meets the read timeout.
                for part in response.iter_bytes():
                    content += part
                    if len(content) > MAX_REPLY_BYTES:
                        raise _Failed(
                            "denied", ProviderRefused(f"{shown}: the reply is absurdly large")
                        )
                    if self._clock.monotonic() > deadline:
                        raise httpx.ReadTimeout("the whole answer took too long")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as exc:
            raise self._translated(exc, shown) from exc
        except RuntimeError as exc:
            # httpx says so when close() came first.
            if not self._closed.is_set():
                raise
            raise _Failed(
                "transport", ProviderUnavailable(f"{shown}: the connection was closed")
            ) from exc
        if response.is_success:
            return self._parsed(bytes(content), shown)
        raise self._refusal(response, bytes(content), shown, subject, classify)

    def _translated(self, exc: Exception, shown: str) -> _Failed:
        kind, error = translate(exc, shown, self._section, self._api_key)
        return _Failed(kind, error)

    def _parsed(self, content: bytes, shown: str) -> object:
        try:
            parsed: object = json.loads(content)
        except (ValueError, RecursionError) as exc:
            # Nothing, or a beginning of JSON: cut off on the way.
            if content.lstrip()[:1] in (b"", b"{", b"["):
                failed = _Failed(
                    "transport", ProviderUnavailable(f"{shown}: the reply breaks off: {exc}")
                )
            else:
                failed = _Failed(
                    "denied",
                    ProviderRefused(
                        f"{shown}: the reply is not JSON",
                        hint=f"check that {self._section}.base_url is an API address, as in "
                        "http://localhost:1234/v1",
                    ),
                )
            raise failed from None
        return parsed

    def _refusal(
        self,
        response: httpx.Response,
        content: bytes,
        shown: str,
        subject: str,
        classify: Classify | None,
    ) -> _Failed:
        status = response.status_code
        message = _error_message(content, self._api_key)
        said = f": {message}" if message else ""
        details: dict[str, object] = {"status": status, "scope": "server"}
        better = classify(status, message) if classify else None
        if better is not None:
            better.details.setdefault("status", status)
            return _Failed("classified", better)
        if status == 429 or status in _BUSY_STATUSES:
            wait_s = retry_after_s(response.headers.get("Retry-After"), self._clock.wall())
            what = "asks for fewer requests" if status == 429 else "is not ready"
            asked = f" (wait {wait_s:.0f} s)" if wait_s is not None else ""
            error: ProviderError = ProviderUnavailable(
                f"{shown} {what}: status {status}{asked}{said}",
                hint="try again later",
                details=details,
            )
            return _Failed("rate" if status == 429 else "busy", error, wait_s)
        if status in _CONTENT_STATUSES:
            details["scope"] = "input"
            return _Failed(
                "content",
                ProviderRefused(
                    f"{shown} refused {subject}: status {status}{said}", details=details
                ),
            )
        if status >= 500 and status != 501:
            details["scope"] = "input"
            return _Failed(
                "fault",
                ProviderUnavailable(
                    f"{shown} failed on {subject}: status {status}{said}", details=details
                ),
            )
        hints = {
            401: f"set {self._section}.api_key_env to the name of the variable with the key",
            403: f"set {self._section}.api_key_env to the name of the variable with the key",
            404: f"check {self._section}.model and {self._section}.base_url (most end in /v1)",
            501: f"this server does something else; check {self._section}.base_url",
        }
        if 300 <= status < 400:
            said = f" to {_host_of(response.headers.get('Location'))}, which is not followed"
        hint = hints.get(status, f"check {self._section}.base_url")
        return _Failed(
            "denied",
            ProviderRefused(
                f"{shown} refused {subject}: status {status}{said}", hint=hint, details=details
            ),
        )

    def _open(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._closed.is_set():
                raise ProviderUnavailable(f"{self._shown('')}: the connection was closed")
            if self._client is not None:
                return self._client
            headers = {"Content-Type": "application/json", "User-Agent": "ragx"}
            if self._api_key:
                headers["Authorization"] = f"Bearer {self._api_key}"
            try:
                self._client = httpx.Client(
                    headers=headers,
                    timeout=httpx.Timeout(self._timeout_s, connect=self._connect_timeout_s),
                    limits=httpx.Limits(max_connections=self._max_connections),
                    follow_redirects=False,
                    # A local server is never reached through the environment's proxy.
                    trust_env=not _LOOPBACK.fullmatch(self._url.hostname or ""),
                    # Reading the certificate store takes 20 ms that plain http has no use for.
                    verify=self._url.scheme == "https",
                )
            except (ImportError, ValueError, httpx.InvalidURL):
                # The text would show the proxy's address, which may hold a password.
                raise ProviderRefused(
                    "the proxy that the environment names cannot be used",
                    hint="check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY",
                ) from None
            return self._client

    def _target(self, path: str) -> str:
        return self._url._replace(path=self._url.path.rstrip("/") + path).geturl()

    def _shown(self, path: str) -> str:
        return self._url._replace(path=self._url.path.rstrip("/") + path, query="").geturl()


def translate(
    exc: Exception, shown: str, section: str, api_key: str | None = None
) -> tuple[Kind, ProviderError]:
    """Turn an exception of httpx into the kind of failure and ragx's error for it.

    Args:
        exc: any httpx exception.
        shown: the address without secrets.
        section: the part of ragx.toml that hints name.
        api_key: removed from whatever is quoted.
    """
    import httpx

    if isinstance(exc, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
        return "denied", ProviderRefused(
            f"{shown}: no request can be made for this address",
            hint=f"check {section}.base_url",
        )
    if isinstance(exc, httpx.TooManyRedirects | httpx.HTTPStatusError | httpx.CookieConflict):
        return "denied", ProviderRefused(f"{shown}: unexpected reply ({type(exc).__name__})")
    if isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout):
        why = _clean(str(exc), api_key) or type(exc).__name__
        return "connect", ProviderUnavailable(
            f"{shown} cannot be reached: {why}",
            hint=f"start the server or check {section}.base_url; `ragx doctor` tests it",
            details={"scope": "server"},
        )
    if isinstance(exc, httpx.ProxyError):
        return "connect", ProviderUnavailable(
            f"{shown}: the proxy does not pass requests on",
            hint="check HTTP_PROXY, HTTPS_PROXY and NO_PROXY",
            details={"scope": "server"},
        )
    if isinstance(exc, httpx.TimeoutException):
        return "timeout", ProviderUnavailable(
            f"{shown} did not answer in time ({type(exc).__name__})",
            hint=f"raise {section}.timeout_s or check the server",
            code="provider_timeout",
            details={"scope": "server"},
        )
    # Broken off, garbled or misread: NetworkError, RemoteProtocolError, DecodingError, ...
    return "transport", ProviderUnavailable(
        f"{shown}: the connection broke ({type(exc).__name__})",
        hint="check the server's log",
        details={"scope": "server"},
    )


def _checked_url(base_url: str, section: str) -> SplitResult:
    name = f"{section}.base_url"
    hint = f"ragx config set {name} http://localhost:1234/v1"
    if not base_url.strip():
        raise ConfigError(f"{name} is not set", hint=hint)
    try:
        url = urlsplit(base_url.strip())
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{name} is not an http or https address", hint=hint)
    if url.username is not None or url.password is not None:
        raise ConfigError(
            f"{name} must not hold a user name or password",
            hint=f"name the variable that holds the key in {section}.api_key_env",
        )
    return url._replace(fragment="")


def _checked_key(api_key: str | None, section: str) -> str | None:
    key = (api_key or "").strip()
    # httpx and h11 quote a header they cannot send, key and all.
    if not re.fullmatch(r"[!-~]*", key):
        raise ConfigError(
            f"the key for {section} holds characters that no key has",
            hint=f"check the variable that {section}.api_key_env names",
        )
    return key or None


def _host_of(location: str | None) -> str:
    try:
        return urlsplit(location or "").hostname or "another path"
    except ValueError:
        return "an unreadable address"


def _error_message(content: bytes, api_key: str | None) -> str:
    """Find the sentence in an error body; servers nest it in half a dozen ways."""
    text = content[:65536].decode("utf-8", "replace")
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return "" if text.lstrip().startswith("<") else _clean(text, api_key)
    for _ in range(4):
        if isinstance(found, dict):
            keys = ("error", "message", "detail", "msg", "errors")
            found = next((found[key] for key in keys if found.get(key)), "")
        elif isinstance(found, list):
            found = found[0] if found else ""
    return _clean(found, api_key) if isinstance(found, str) else ""


def _clean(text: str, api_key: str | None) -> str:
    """Make foreign text fit for one line on a terminal, without the key."""
    if api_key:
        text = text.replace(api_key, "***")
    text = " ".join("".join(c if c.isprintable() else " " for c in text[:4000]).split())
    return text if len(text) <= _EXCERPT_CHARS else f"{text[:_EXCERPT_CHARS]}..."
