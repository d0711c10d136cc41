"""JSON over HTTP to a model server: retries, limits, and errors in ragx's own words.

Every exception of httpx is translated here and nowhere else. No message, repr or traceback made
here holds a key; a server's own words are cleaned before they are shown.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult, urlsplit

from ragx.errors import (
    BadEmbedding,
    ConfigError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from ragx.providers.address import is_local
from ragx.providers.pacing import Gate, Sizes
from ragx.providers.retry import CircuitBreaker, Clock, Kind, RetryPolicy, retry_after_s

if TYPE_CHECKING:
    import httpx

    from ragx.providers.sse import EventStream

__all__ = ["Classify", "ServerClient", "check_address", "check_key", "clean", "translate"]

T = TypeVar("T")
Classify = Callable[[int, str], ProviderError | None]

MAX_REPLY_BYTES = 256 * 1024 * 1024
_EXCERPT_CHARS = 300
_KEY_HEAD = 6
# No list of models is nested that deep.
_MAX_DEPTH = 32
_CONTENT_STATUSES = frozenset({400, 413, 422})
_BUSY_STATUSES = frozenset({408, 409, 425, 502, 503, 504})
# What a server with less to do would not have done.
_OVERLOAD = frozenset({"rate", "busy", "timeout"})
# What a server in front of the model's own says when that one is silent or has broken off.
_GATEWAY_STATUSES = frozenset({408, 502, 504})


class _Failed(Exception):
    """One attempt that failed, with what the retry decision needs."""

    def __init__(self, kind: Kind, error: ProviderError, wait_s: float | None = None) -> None:
        super().__init__(error.message)
        self.kind = kind
        self.error = error
        self.wait_s = wait_s


class _Tries:
    """The failures of one request so far, and what the policy says after the last one."""

    def __init__(self, policy: RetryPolicy, once: Collection[Kind]) -> None:
        self._policy = policy
        self._once = once
        self._failures: Counter[Kind] = Counter()

    @property
    def total(self) -> int:
        return self._failures.total()

    def note(self, failed: _Failed) -> None:
        self._failures[failed.kind] += 1

    def allow_another(self, failed: _Failed) -> bool:
        policy, kind = self._policy, failed.kind
        if kind in self._once or self.total >= policy.most_attempts:
            return False
        if self._failures[kind] >= policy.attempts.get(kind, 1):
            return False
        return self.pause_s(failed) <= policy.max_pause_s

    def pause_s(self, failed: _Failed) -> float:
        own = self._policy.pause_s[failed.kind] * float(2 ** (self._failures[failed.kind] - 1))
        # "0", or a date that is past by this clock, would use up all attempts within a moment.
        return max(own, failed.wait_s or 0.0)


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
        adaptive: bool = False,
        start: int | None = None,
        sizes: Sizes | None = None,
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
            max_connections: requests in flight, at most.
            adaptive: whether how many of them make the server fastest is found out.
            start: how many that is to begin with; None for one.
            sizes: bounds of how much one request may hold, if that is found out, too.
            policy: retries.
            clock: for tests.
        Raises:
            ConfigError: the URL or the key cannot be used.
        """
        self._section = section
        self._url = check_address(base_url, section)
        self._api_key = check_key(api_key, section)
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._max_connections = max_connections
        self._policy = policy or RetryPolicy()
        self._clock = clock or Clock()
        self._breaker = CircuitBreaker(self._clock.monotonic)
        self._gate = Gate(
            max_connections,
            clock=self._clock,
            start=start,
            adaptive=adaptive,
            patience_s=timeout_s / 8,
            sizes=sizes,
        )
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    @property
    def gate(self) -> Gate:
        """What all requests pass: how many the server is given at once, and how large."""
        return self._gate

    def post(
        self,
        path: str,
        body: Mapping[str, object],
        *,
        subject: str,
        parse: Callable[[object], T],
        classify: Classify | None = None,
        weight: float = 1.0,
        size: int = 1,
        events: EventStream | None = None,
        once: Collection[Kind] = (),
        trial: bool = False,
    ) -> T:
        """Send a JSON body and return what `parse` makes of the JSON reply.

        Args:
            path: appended to the base URL, such as "/embeddings".
            body: JSON-ready; lone surrogates are sent as "?".
            subject: what was asked for, such as "model 'bge-m3'"; named in errors.
            parse: takes the JSON value apart. After a BadEmbedding without a scope the request is
                sent again; its other ProviderErrors are final.
            classify: given status and message of a refusal, the error that fits better; such an
                error is final.
            weight: the work that the body asks for, in any unit, to measure the server's speed.
            size: how many texts the body holds.
            events: takes the reply as it comes if the server sends events; `parse` gets None then,
                the time limit holds for each of them, and once there was one nothing is sent again.
            once: kinds of failure after which the caller has something better to send than the
                same again.
            trial: send it even while the circuit is open; an answer closes that.
        Raises:
            ProviderUnavailable: nothing answered, or nothing usable, after all retries. Its scope
                is "exchange" where that may be due to the server or to this body.
            ProviderRefused: the server said no.
            ProviderError: what `classify` made of a refusal, or `parse` of a reply.
        """
        payload = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        tries = _Tries(self._policy, once)
        while True:
            if not trial:
                self._breaker.check()
            try:
                parsed = self._paced(
                    path, payload, subject, parse, classify, weight, size, tries, events
                )
            except _Failed as failed:
                begun = events is not None and events.n_events > 0
                if not begun and tries.allow_another(failed):
                    if not _for_all(failed):
                        self._pause(tries.pause_s(failed))
                    continue
                self._breaker.failed(failed.kind, failed.error)
                failed.error.details["attempts"] = tries.total
                raise failed.error from failed.__cause__
            self._breaker.succeeded()
            return parsed

    def get(self, path: str, *, subject: str, parse: Callable[[object], T]) -> T:
        """Ask for a JSON document, once, and return what `parse` makes of it.

        Its texts come to `parse` without the key and control characters, and cut off if they are
        very long: names out of it are shown.

        Raises:
            ProviderUnavailable: nothing usable answers.
            ProviderRefused: the server said no.
            ProviderError: what `parse` made of the reply.
        """
        try:
            return parse(_cleaned(self._attempt("GET", path, None, subject, None), self._api_key))
        except _Failed as failed:
            raise failed.error from failed.__cause__

    def close(self) -> None:
        """Close connections and wake whoever waits for a retry; nothing can be sent after it."""
        self._closed.set()
        self._gate.close()
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _paced(
        self,
        path: str,
        payload: bytes,
        subject: str,
        parse: Callable[[object], T],
        classify: Classify | None,
        weight: float,
        size: int,
        tries: _Tries,
        events: EventStream | None,
    ) -> T:
        """One attempt, as soon as the gate lets it pass."""
        entered = self._gate.enter()
        if entered is None:
            raise ProviderUnavailable(f"{self._shown('')}: the connection was closed")
        done = 0.0
        try:
            reply = self._attempt("POST", path, payload, subject, classify, events)
            parsed = _parse_reply(parse, reply, self._api_key)
            done = weight
        except _Failed as failed:
            tries.note(failed)
            if failed.kind in _OVERLOAD:
                pause = None
                if _for_all(failed) and tries.allow_another(failed):
                    pause = tries.pause_s(failed)
                self._gate.complain(entered, pause)
            raise
        finally:
            self._gate.leave(entered, done, size)
        return parsed

    def _pause(self, seconds: float) -> None:
        if self._clock.sleep is not None:
            self._clock.sleep(seconds)
        else:
            self._closed.wait(seconds)
        if self._closed.is_set():
            raise ProviderUnavailable(f"{self._shown('')}: the connection was closed")

    def _attempt(
        self,
        method: str,
        path: str,
        payload: bytes | None,
        subject: str,
        classify: Classify | None,
        events: EventStream | None = None,
    ) -> object:
        import httpx

        shown = self._shown(path)
        client = self._open()
        deadline = self._clock.monotonic() + self._connect_timeout_s + self._timeout_s
        content = bytearray()
        n_bytes = 0
        streamed = False
        if events is not None:
            events.begin()
        try:
            with client.stream(method, self._target(path), content=payload) as response:
                kind = response.headers.get("Content-Type", "")
                streamed = response.is_success and kind.startswith("text/event-stream")
                # A server that sends a byte now and then never meets the read timeout.
                for part in response.iter_bytes():
                    n_bytes += len(part)
                    if events is None or not streamed:
                        content += part
                    elif events.feed(part):
                        deadline = self._clock.monotonic() + self._timeout_s
                    if n_bytes > MAX_REPLY_BYTES:
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
        except ValueError as exc:
            raise _Failed("denied", ProviderRefused(f"{shown}: {exc}")) from exc
        if events is not None and streamed:
            events.end()
            return None
        if response.is_success:
            return self._parsed(content, shown)
        raise self._refusal(response, bytes(content), shown, subject, classify)

    def _translated(self, exc: Exception, shown: str) -> _Failed:
        kind, error = translate(exc, shown, self._section, self._api_key)
        return _Failed(kind, error)

    def _parsed(self, content: bytes | bytearray, shown: str) -> object:
        try:
            parsed = _loads(content)
        except (ValueError, RecursionError) as exc:
            # Nothing, or a beginning of JSON: cut off on the way.
            if content.lstrip()[:1] in (b"", b"{", b"["):
                failed = _Failed(
                    "transport",
                    ProviderUnavailable(
                        f"{shown}: the reply breaks off: {exc}", details={"scope": "exchange"}
                    ),
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
            if status in _GATEWAY_STATUSES:
                details["scope"] = "exchange"
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
                    trust_env=not is_local(self._url.geturl()),
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


@cache
def _fast_loads() -> Callable[[bytes | bytearray], object] | None:
    try:
        import orjson
    except ImportError:
        # No wheel for this interpreter: a third of the speed, the same values.
        return None
    loads: Callable[[bytes | bytearray], object] = orjson.loads
    return loads


def _loads(content: bytes | bytearray) -> object:
    """The value of a JSON text; raises ValueError or RecursionError."""
    fast = _fast_loads()
    if fast is not None:
        # What it refuses, such as NaN, `json` may take; and the words about a fault stay the same.
        with suppress(ValueError):
            return fast(content)
    value: object = json.loads(content)
    return value


def _for_all(failed: _Failed) -> bool:
    """Whether the server has asked everybody to wait, not this request alone."""
    return failed.kind == "rate" or (failed.kind == "busy" and failed.wait_s is not None)


def _parse_reply(parse: Callable[[object], T], reply: object, api_key: str | None) -> T:
    try:
        return parse(reply)
    except ProviderError as error:
        # It may quote the reply.
        error.message = _without_key(error.message, api_key)
        error.hint = _without_key(error.hint, api_key)
        error.args = (error.message,)
        kind: Kind = "content"
        if isinstance(error, BadEmbedding):
            kind = "classified" if "scope" in error.details else "reply"
        raise _Failed(kind, error) from error.__cause__


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
        why = clean(str(exc), api_key) or type(exc).__name__
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
            details={"scope": "exchange"},
        )
    # Broken off, garbled or misread: NetworkError, RemoteProtocolError, DecodingError, ...
    return "transport", ProviderUnavailable(
        f"{shown}: the connection broke ({type(exc).__name__})",
        hint="check the server's log",
        details={"scope": "exchange"},
    )


def check_address(base_url: str, section: str) -> SplitResult:
    """Take a server's address apart.

    Raises:
        ConfigError: it is none, or holds a name or password.
    """
    name = f"{section}.base_url"
    # LM Studio, whose port the other is, does not rerank.
    port = 8012 if section == "rerank" else 1234
    hint = f"ragx config set {name} http://localhost:{port}/v1"
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


def check_key(api_key: str | None, section: str) -> str | None:
    """Return the key to send, None if there is none.

    Raises:
        ConfigError: it holds characters that cannot be sent.
    """
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
        return "" if text.lstrip().startswith("<") else clean(text, api_key)
    for _ in range(4):
        if isinstance(found, dict):
            keys = ("error", "message", "detail", "msg", "errors")
            found = next((found[key] for key in keys if found.get(key)), "")
        elif isinstance(found, list):
            found = found[0] if found else ""
    return clean(found, api_key) if isinstance(found, str) else ""


def clean(text: str, api_key: str | None) -> str:
    """Make foreign text fit for one line on a terminal, without the key."""
    text = " ".join(_without_key(text, api_key)[:4000].split())
    return text if len(text) <= _EXCERPT_CHARS else f"{text[:_EXCERPT_CHARS]}..."


def _without_key(text: str, api_key: str | None) -> str:
    """Text without the key, parts of it, and what a terminal would obey."""
    text = "".join(c if c.isprintable() else " " for c in text)
    if api_key:
        text = text.replace(api_key, "***")
        if len(api_key) > 2 * _KEY_HEAD:
            # Servers that shorten a key when they quote it still show a part.
            text = re.sub(re.escape(api_key[:_KEY_HEAD]) + r"[^\s\"']*", "***", text)
    return text


def _cleaned(value: object, api_key: str | None, depth: int = 0) -> object:
    """A JSON value in which every text is fit to be shown; what lies very deep is left out."""
    if isinstance(value, str):
        return clean(value, api_key)
    if isinstance(value, list | dict) and depth >= _MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [_cleaned(item, api_key, depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            clean(name, api_key): _cleaned(item, api_key, depth + 1) for name, item in value.items()
        }
    return value
