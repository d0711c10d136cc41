"""HTTP for the page: who may ask, what leads where. A thread for each connection, so many at most.

The standard library's server is enough here: it serves one person on this machine. Requests that a
foreign page could have sent are refused before anything is looked up, and no request names a file.
"""

from __future__ import annotations

import contextlib
import hmac
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from ragx.shells.guard import HttpOptions, refusal
from ragx.shells.web.assets import assets
from ragx.shells.web.service import Reply, Service

__all__ = ["DEFAULT_PORT", "WebServer"]

DEFAULT_PORT = 8765
_MOST_CONNECTIONS = 64
_IDLE_S = 30
_MAX_BODY_BYTES = 64 * 1024
_DRAINED_BYTES = 1 << 20
_MAX_DIGITS = 16
_COOKIE = "ragx_token"
_JSON = "application/json"
# Nothing but the page's own files may run, be shown or be asked, and nobody may frame it.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class WebServer(ThreadingHTTPServer):
    """Serves one corpus on a socket that listens already.

    Args:
        listener: taken over, and closed with the server.
        options: who may ask.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, options: HttpOptions, service: Service) -> None:
        self.options = options
        self.service = service
        self._slots = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.address_family = listener.family

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own; one too many is closed."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """As the base class does, and makes room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is of no interest; requests report their own faults."""


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    # Replies leave at once, not when the next packet is full.
    disable_nagle_algorithm = True

    @property
    def _server(self) -> WebServer:
        return cast("WebServer", self.server)

    def version_string(self) -> str:
        """Names the program without versions."""
        return "ragx"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: addresses and paths are nobody's business."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is not HTTP, or a method that nothing takes, in the form of all faults."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = HTTPStatus.METHOD_NOT_ALLOWED, f"no such method: {self.command}"
        said = message or HTTPStatus(code).phrase
        self._send(Reply.failed(code, said), more={"Connection": "close"})

    def do_GET(self) -> None:
        """Serve the page, its files, the map, a chunk, a community or a path."""
        with self._admitted() as path:
            if path is not None:
                self._get(path)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answer a question."""
        with self._admitted() as path:
            if path is None:
                return
            body = self._read_body()
            if body is None:
                return
            if path == "/api/query":
                self._send(self._server.service.query(body))
            elif self._found(path) is not None:
                self._refuse(405, f"{path} is only to be read", more={"Allow": "GET, HEAD"})
            else:
                self._send(_missing(path))

    @contextlib.contextmanager
    def _admitted(self) -> Any:
        """The path that is asked for, percent signs resolved; None if the request was refused."""
        try:
            yield self._path()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _path(self) -> str | None:
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        target = urlsplit(self.path)
        if not self.path.startswith("/") or target.netloc:
            self._refuse(400, "a path is asked for by its name alone")
            return None
        path = unquote(target.path)
        if self._server.options.token and self._signs_in(path, target.query):
            return None
        cookie = self._cookie()
        if cookie and "authorization" not in headers:
            headers["authorization"] = [f"Bearer {cookie}"]
        refused = refusal(headers, self._server.options) or _foreign(headers, path)
        if refused is not None:
            status, why = refused
            if status == 401:
                why = "this server asks for a token: open it as /?token=..., or send it as a bearer"
            self._refuse(status, why)
            return None
        return path

    def _signs_in(self, path: str, query: str) -> bool:
        """Whether the request showed the token in its address, and was sent on with a cookie."""
        shown = parse_qs(query).get("token", [""])[0]
        if path != "/" or not hmac.compare_digest(
            shown.encode(), self._server.options.token.encode()
        ):
            return False
        self._send(
            Reply(303, b""),
            more={
                "Location": "/",
                "Set-Cookie": f"{_COOKIE}={shown}; Path=/; HttpOnly; SameSite=Strict",
                "Cache-Control": "no-store",
            },
        )
        return True

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            return ""
        return found[_COOKIE].value if _COOKIE in found else ""

    def _get(self, path: str) -> None:
        reply = self._found(path)
        if reply is None:
            if path == "/api/query":
                self._refuse(405, "/api/query takes POST", more={"Allow": "POST"})
            else:
                self._send(_missing(path))
            return
        self._send(*reply())

    def _found(self, path: str) -> Callable[[], tuple[Reply, str]] | None:
        """What gives the reply to a path, and its type; None if there is no such path."""
        service = self._server.service
        asset = assets().get("index.html" if path == "/" else path.removeprefix("/static/"))
        if asset is not None and (path == "/" or path.startswith("/static/")):
            found = Reply(200, asset.body, asset.packed, asset.tag)
            return lambda: (found, asset.content_type)
        match path.split("/"):
            case ["", "api", "graph"]:
                return lambda: (service.graph(), _JSON)
            case ["", "api", "chunk", name]:
                return self._numbered(path, service.chunk, name)
            case ["", "api", "community", name]:
                return self._numbered(path, service.community, name)
            case ["", "api", "path", one, other]:
                return self._numbered(path, service.path, one, other)
        return None

    @staticmethod
    def _numbered(
        path: str, reply: Callable[..., Reply], *names: str
    ) -> Callable[[], tuple[Reply, str]]:
        numbers = [int(name) for name in names if name.isascii() and name.isdecimal()]
        if len(numbers) < len(names) or max(map(len, names)) > _MAX_DIGITS:
            return lambda: (_missing(path), _JSON)
        return lambda: (reply(*numbers), _JSON)

    def _read_body(self) -> bytes | None:
        """The body of a request; None if it was refused."""
        length = self.headers.get_all("Content-Length") or []
        if self.headers.get("Transfer-Encoding") or len(length) != 1:
            self._refuse(411, "say the length of the body: Content-Length, once")
            return None
        if not (length[0].isascii() and length[0].isdecimal()):
            self._refuse(400, "Content-Length must be a number")
            return None
        size = int(length[0][:_MAX_DIGITS])
        if size > _MAX_BODY_BYTES:
            # Who still sends would not read the reply.
            self.rfile.read(min(size, _DRAINED_BYTES))
            self._refuse(413, f"a question takes {_MAX_BODY_BYTES // 1024} KiB at most")
            return None
        return self.rfile.read(size)

    def _refuse(self, status: int, why: str, more: dict[str, str] | None = None) -> None:
        """Refuse a request; what is left of it must not be taken for the next."""
        self.close_connection = True
        self._send(Reply.failed(status, why), more={"Connection": "close", **(more or {})})

    def _send(
        self, reply: Reply, content_type: str = _JSON, more: dict[str, str] | None = None
    ) -> None:
        headers = {**_HEADERS, "Cache-Control": "no-store"}
        status, body = reply.status, reply.body
        if reply.tag:
            headers |= {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
            # Weak: the same content in two codings.
            headers["ETag"] = f'W/"{reply.tag}"'
            if self._knows(reply.tag):
                status, body = 304, b""
        if status == 200 and reply.packed is not None and self._takes_gzip():
            headers["Content-Encoding"] = "gzip"
            body = reply.packed
        if status not in (204, 304):
            headers |= {"Content-Type": content_type, "Content-Length": str(len(body))}
        self.send_response(status)
        for name, value in {**headers, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _knows(self, tag: str) -> bool:
        named = (getattr(self, "headers", None) or {}).get("If-None-Match", "")
        return any(one.strip().removeprefix("W/") in (f'"{tag}"', "*") for one in named.split(","))

    def _takes_gzip(self) -> bool:
        for coding in self.headers.get("Accept-Encoding", "").split(","):
            name, _, weight = coding.replace(" ", "").lower().partition(";q=")
            if name in ("gzip", "*"):
                return not weight or bool(weight.strip("0."))
        return False


def _missing(path: str) -> Reply:
    return Reply.failed(404, f"there is no {path[:200]}")


def _foreign(headers: dict[str, list[str]], path: str) -> tuple[int, str] | None:
    """Why a request that passed the guard comes from another page nevertheless; None if not."""
    host, origins = headers["host"][0].lower(), headers.get("origin", [])
    # Another port of this machine is another's page.
    if origins and origins[0].lower() != f"http://{host}":
        return 403, "requests from web pages of other origins are refused"
    site = headers.get("sec-fetch-site", ["none"])[0]
    opens = headers.get("sec-fetch-mode", [""])[0] == "navigate" and path == "/"
    if site not in ("same-origin", "none") and not opens:
        return 403, "requests from web pages of other sites are refused"
    return None
