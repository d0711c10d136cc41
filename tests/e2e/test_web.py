"""`ragx web` over real sockets: what it serves, whom it refuses, how it starts and ends."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
MakeCorpus = Callable[..., Path]
Ask = Callable[..., dict[str, Any]]
Environment = Callable[..., dict[str, str]]

POST = b"POST /api/query HTTP/1.1\r\nHost: localhost\r\n"
HTML_NAME = '"><img src=x onerror=alert(1)>.md'
REPOSITORY = Path(__file__).resolve().parents[2]
FILES = {
    "notes/okapi.md": "# Okapi\n\nThe okapi eats leaves; see [giraffe](giraffe.md).\n",
    "notes/giraffe.md": "# Giraffe\n\nThe giraffe is the only relative of the okapi.\n",
    "src/feed.py": "def feed_okapi(leaves):\n    return leaves\n",
    "src/use.py": "from feed import feed_okapi\n\n\nprint(feed_okapi(3))\n",
    HTML_NAME: "# Zebra\n\nA zebra is </script><script>alert(1)</script> striped.\n",
}


@dataclass
class Served:
    """A running server: where, and what it has said."""

    process: subprocess.Popen[str]
    url: str
    document: dict[str, Any]
    said: list[str] = field(default_factory=list)
    reader: threading.Thread | None = None

    @property
    def root(self) -> Path:
        return Path(self.get("api/graph").json()["meta"]["root"])

    @property
    def port(self) -> int:
        return int(self.document["port"])

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self.url + path, headers=headers, timeout=60)

    def post(self, body: object, **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.post(f"{self.url}api/query", content=content, headers=headers, timeout=60)

    def raw(self, data: bytes) -> bytes:
        """Bytes of all replies to bytes; the sender ends with them."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            found = b""
            while piece := connection.recv(65536):
                found += piece
            return found


def started(root: Path, *args: str, environment: Mapping[str, str]) -> Served:
    """Start `ragx web` on a free port; ended by `ended`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ragx", "web", "--no-open", "--port", "0", "--json", *args],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    assert first, process.stderr.read()
    document = json.loads(first)
    served = Served(process, document["url"], document)
    served.reader = threading.Thread(target=served.said.extend, args=(process.stderr,))
    served.reader.start()
    return served


def ended(served: Served) -> None:
    served.process.kill()
    served.process.wait()
    assert served.reader is not None
    served.reader.join()
    for stream in (served.process.stdout, served.process.stderr):
        assert stream is not None
        stream.close()


@pytest.fixture
def serve(ragx_environment: Environment) -> Iterator[Callable[..., Served]]:
    """`serve(root, *args, env={...})` starts `ragx web` on a free port."""
    running: list[Served] = []

    def start(root: Path, *args: str, env: Mapping[str, str] | None = None) -> Served:
        running.append(started(root, *args, environment=ragx_environment(env)))
        return running[-1]

    yield start
    for served in running:
        ended(served)


@pytest.fixture(scope="module")
def zoo_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for tests that change nothing; its corpus is `zoo_served.root`."""
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("zoo")
    (root / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n')
    for name, text in zoo_files().items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "RAGX_", "HF_")) and not name.lower().endswith("_proxy")
    }
    environment |= {"HOME": str(home), "USERPROFILE": str(home), "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(
        [sys.executable, "-m", "ragx", "index", "--quiet"],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    served = started(root, environment=environment)
    yield served
    ended(served)


def zoo_files() -> dict[str, str]:
    return {name: text for name, text in FILES.items() if os.name != "nt" or "<" not in name}


@pytest.fixture
def zoo(make_corpus: MakeCorpus, ask: Ask) -> Path:
    files = {
        name: text for name, text in FILES.items() if sys.platform != "win32" or "<" not in name
    }
    root = make_corpus(files)
    ask("index", cwd=root)
    return root


def test_the_map_has_what_the_index_has(zoo: Path, serve: Callable[..., Served], ask: Ask) -> None:
    served = serve(zoo)
    graph = served.get("api/graph").json()
    assert graph["schema"] == "ragx.graph.v1"
    # The keys that pages written for the seed tool look for.
    assert {"root", "edge_source", "subchunk_size_tokens", "embedding_model", "nodes", "edges",
            "communities"} <= graph["meta"].keys()  # fmt: skip
    node = {"id", "file", "line_start", "line_end", "label", "community", "degree"}
    assert all(node <= one.keys() for one in graph["nodes"])
    assert graph["meta"]["root"] == str(zoo)
    assert graph["meta"]["name"] == zoo.name
    status = ask("status", cwd=zoo)
    assert len(graph["nodes"]) == graph["meta"]["nodes"] == status["chunks"]
    assert len(graph["edges"]) == len(graph["edge_kinds"]) == status["edges"]
    communities = ask("inspect", "communities", cwd=zoo)["communities"]
    assert [(one["community_id"], one["size"], one["label"]) for one in graph["communities"]] == [
        (one["community_id"], one["size"], one["label"]) for one in communities
    ]
    ids = {one["id"]: one for one in graph["nodes"]}
    for (source, target, weight), kind in zip(graph["edges"], graph["edge_kinds"], strict=True):
        near = served.get(f"api/chunk/{source}").json()["neighbors"]
        assert [
            (one["kind"], round(one["weight"], 4))
            for one in near
            if one["chunk_id"] == target and one["kind"] == kind
        ] == [(kind, weight)]
    for chunk_id, one in ids.items():
        chunk = served.get(f"api/chunk/{chunk_id}").json()
        assert chunk["text"] in FILES[one["file"]]
        assert len(chunk["neighbors"]) == chunk["degree"] == one["degree"]
        weights = [near["weight"] for near in chunk["neighbors"]]
        assert weights == sorted(weights, reverse=True)
        assert (chunk["label"], chunk["community"]) == (one["label"], one["community"])


def test_the_map_is_packed_and_sent_once(zoo: Path, serve: Callable[..., Served]) -> None:
    served = serve(zoo)
    plain = served.get("api/graph", **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    for coding in ("gzip", "br, gzip;q=0.5", "*"):
        packed = served.get("api/graph", **{"Accept-Encoding": coding})
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.content == plain.content
    for coding in ("br", "gzip;q=0", "gzip; q=0.0", ""):
        assert (
            "content-encoding" not in served.get("api/graph", **{"Accept-Encoding": coding}).headers
        )
    tag = plain.headers["etag"]
    for known in (tag, f'"x", {tag}', tag.removeprefix("W/"), "*"):
        again = served.get("api/graph", **{"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
    assert served.get("api/graph", **{"If-None-Match": '"x"'}).status_code == 200
    page = served.get("")
    assert served.get("", **{"If-None-Match": page.headers["etag"]}).status_code == 304


def test_it_follows_the_index(zoo: Path, serve: Callable[..., Served], ask: Ask) -> None:
    served = serve(zoo)
    before = served.get("api/graph")
    (zoo / "notes" / "lion.md").write_text("# Lion\n\nThe lion sleeps.\n")
    ask("index", cwd=zoo)
    after = served.get("api/graph", **{"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert "notes/lion.md" in {node["file"] for node in after.json()["nodes"]}
    assert served.post({"text": "lion"}).json()["results"][0]["file"] == "notes/lion.md"
    shutil.rmtree(zoo / ".ragx")
    gone = served.get("api/graph")
    assert (gone.status_code, gone.json()) == (
        503,
        {"error": f"no index in {zoo}; ragx index builds it"},
    )
    assert served.post({"text": "lion"}).status_code == 502
    ask("index", cwd=zoo)
    assert served.get("api/graph").json()["meta"]["nodes"] == after.json()["meta"]["nodes"]


def test_an_answer_is_that_of_the_command_line(
    zoo: Path, serve: Callable[..., Served], ask: Ask
) -> None:
    served = serve(zoo)
    for body, line in (
        ({"text": "who is related to the okapi"}, ("who is related to the okapi",)),
        ({"text": "okapi", "top": 1, "explain": True}, ("okapi", "--top", "1", "--explain")),
        (
            {"text": "okapi", "graph": False, "before": 0, "after": 0},
            ("okapi", "--no-graph", "-C", "0"),
        ),
        ({"text": "okapi", "path": "src/**"}, ("okapi", "--path", "src/**")),
        ({"text": "okapi", "kind": ["code"], "lang": None}, ("okapi", "--kind", "code")),
        (
            {"text": "okapi", "hops": 0, "mode": "lexical"},
            ("okapi", "--hops", "0", "--mode", "lexical"),
        ),
        ({"text": "okapi", "temporal": "recent"}, ("okapi", "--temporal", "recent")),
    ):  # fmt: skip
        found = served.post(body).json()
        assert found.pop("elapsed_ms") > 0
        assert found == ask("query", *line, cwd=zoo)
    assert served.post({"text": "xyzzy"}).json()["results"] == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff{}", "not JSON"),
        (b"[" * 30_000, "not JSON"),
        (b'"text"', "must be an object"),
        ({}, "text is missing"),
        ({"text": None}, "text is missing"),
        ({"text": 5}, "text must be a string"),
        ({"text": "  "}, "empty"),
        ({"text": "a", "tpo": 3}, "did you mean top"),
        ({"text": "a", "top": 0}, "from 1 to 1000"),
        ({"text": "a", "top": 10**30}, "from 1 to 1000"),
        ({"text": "a", "top": True}, "top must be an integer"),
        ({"text": "a", "graph": "no"}, "graph must be a boolean"),
        ({"text": "a", "mode": "fuzzy"}, "hybrid, vector, lexical"),
        ({"text": "a", "mode": "vector"}, "vector"),
        ({"text": "a", "path": [3]}, "strings only"),
        ({"text": "a", "since": "someday"}, "--since"),
        ({"text": "a", "rerank": True}, "rerank.enabled"),
    ],
)
def test_a_body_that_cannot_be_meant(zoo_served: Served, body: object, says: str) -> None:
    reply = zoo_served.post(body)
    assert reply.status_code == 400
    assert list(reply.json()) == ["error"]
    assert says in reply.json()["error"]


def test_what_the_pipeline_meets_is_502(
    make_corpus: MakeCorpus, serve: Callable[..., Served], ask: Ask
) -> None:
    root = make_corpus(FILES)
    ask("index", cwd=root)
    served = serve(root)
    settings = root / "ragx.toml"
    settings.write_text('[embeddings]\nprovider = "builtin"\n')
    differs = served.post({"text": "okapi"})
    assert differs.status_code == 502
    assert "ragx index --full" in differs.json()["error"]
    settings.write_text("[nonsense")
    assert served.post({"text": "okapi"}).status_code == 502
    assert served.get("api/graph").status_code == 500
    settings.write_text('[embeddings]\nprovider = "none"\n')
    assert served.post({"text": "okapi"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "LOCALHOST:1"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "evil.example@127.0.0.1"}, 421),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "file://"}, 403),
        # Another port, another page.
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://localhost"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_who_is_let_in(zoo_served: Served, headers: dict[str, str], status: int) -> None:
    for reply in (
        zoo_served.get("api/graph", **headers),
        zoo_served.post({"text": "okapi"}, **headers),
    ):
        assert reply.status_code == status
        assert ("error" in reply.json()) == (status != 200)
        assert "access-control-allow-origin" not in reply.headers


def test_its_own_page_and_a_link_from_elsewhere_are_let_in(zoo_served: Served) -> None:
    own = {"Origin": zoo_served.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert zoo_served.post({"text": "okapi"}, **own).status_code == 200
    opened = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert zoo_served.get("", **opened).status_code == 200
    assert zoo_served.get("static/js/main.js", **opened).status_code == 403


def test_every_reply_lets_nothing_in(zoo_served: Served) -> None:
    for path in ("", "static/js/main.js", "api/graph", "api/nothing", "api/chunk/1"):
        headers = zoo_served.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_the_page_refers_to_nothing_elsewhere(zoo_served: Served) -> None:
    """Every file of the page is served, and none names another host as something to load."""
    seen, waiting = set(), [""]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        reply = zoo_served.get(path)
        assert reply.status_code == 200, path
        base = path.rpartition("/")[0]
        if path.endswith(".js"):
            targets = re.findall(r"""\b(?:from|import) "([^"\s]+)";""", reply.text)
        else:
            targets = re.findall(r"""(?:src|href)="([^"#]+)"|url\(([^)]+)\)""", reply.text)
            targets = [one or other for one, other in targets]
        for target in targets:
            assert not re.match(r"(?:[a-z]+:)?//", target), (path, target)
            if target.startswith("data:"):
                continue
            joined = target.removeprefix("/") if target.startswith("/") else f"{base}/{target}"
            parts: list[str] = []
            for part in joined.split("/"):
                if part == "..":
                    parts.pop()
                elif part not in ("", "."):
                    parts.append(part)
            waiting.append("/".join(parts))
    assert len(seen) > 5
    assert any(path.endswith(".css") for path in seen)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../index.html",
        "/static/../../ragx.toml",
        "/static/%2e%2e/%2e%2e/ragx.toml",
        "/static/..%2f..%2fragx.toml",
        "/static/..\\..\\ragx.toml",
        "/static//etc/passwd",
        "/static/%00",
        "/static/",
        "/static",
        "/static/js",
        "/index.html",
        "/ragx.toml",
        "/.ragx/index.db",
        "/notes/okapi.md",
        "/api",
        "/api/graph/",
        "/api/chunk/",
        "/api/chunk/-1",
        "/api/chunk/1e3",
        "/api/chunk/\u0661",
        "/api/chunk/99999999999999999999999",
        "/api/chunk/1",
        "/api/community/999999",
        "/api/path/1/2",
        "/api/path/1",
        "/favicon.ico",
    ],
)
def test_nothing_else_is_there(zoo_served: Served, path: str) -> None:
    reply = zoo_served.raw(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 "), head
    assert list(json.loads(body)) == ["error"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 200 + b"\r\n", 431),
        (b"PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"OPTIONS /api/query HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET /api/query HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"POST /api/graph HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
        (b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 404),
        (POST + b"\r\n{}", 411),
        (POST + b"Content-Length: -1\r\n\r\n{}", 400),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 411),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (POST + b"Content-Length: 9999999999\r\n\r\n{}", 413),
        (POST + b"Content-Length: 9\r\n\r\n{}", 400),
    ],
)  # fmt: skip
def test_requests_that_are_none(zoo_served: Served, request_: bytes, status: int) -> None:
    reply = zoo_served.raw(request_)
    head, _, body = reply.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/"):
        assert head.split()[1] == b"%d" % status
    else:  # a request of HTTP/0.9 gets no head
        body = reply
    assert list(json.loads(body)) == ["error"]
    assert zoo_served.get("api/graph").status_code == 200


def test_what_follows_a_refused_request_is_not_taken_for_another(zoo_served: Served) -> None:
    smuggled = b"GET /api/graph HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reply = zoo_served.raw(
        b"POST /api/graph HTTP/1.1\r\nHost: evil.example\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(smuggled), smuggled)
    )
    assert reply.count(b"HTTP/1.1 ") == 1


def test_a_connection_serves_one_request_after_another(zoo_served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", zoo_served.port, timeout=60)
    for method, path, status in (
        ("GET", "/", 200),
        ("HEAD", "/api/graph", 200),
        ("GET", "/api/nothing", 404),
        ("POST", "/api/query", 200),
        ("GET", "/api/graph", 200),
    ):
        body = json.dumps({"text": "okapi"}) if method == "POST" else None
        connection.request(method, path, body)
        reply = connection.getresponse()
        content = reply.read()
        assert reply.status == status
        assert bool(content) == (method != "HEAD")
    assert int(reply.headers["Content-Length"]) == len(content)
    connection.close()


def test_many_at_once_and_some_that_say_nothing(zoo_served: Served) -> None:
    silent = [socket.create_connection(("127.0.0.1", zoo_served.port)) for _ in range(40)]
    silent[0].sendall(POST + b"Content-Length: 50\r\n\r\n{")

    def one(number: int) -> bool:
        graph = zoo_served.get("api/graph").json()
        chunk = graph["nodes"][number % len(graph["nodes"])]
        text = zoo_served.get(f"api/chunk/{chunk['id']}").json()["text"]
        found = zoo_served.post({"text": text[:40]}).json()["results"]
        return any(entry["file"] == chunk["file"] for entry in found)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(40)))
    for connection in silent:
        connection.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows takes no such name")
def test_names_and_texts_that_are_html_stay_data(zoo_served: Served) -> None:
    found = zoo_served.post({"text": "zebra", "explain": True})
    assert found.headers["content-type"] == "application/json"
    assert found.json()["results"][0]["file"] == HTML_NAME
    graph = zoo_served.get("api/graph")
    assert graph.headers["content-type"] == "application/json"
    (node,) = [one for one in graph.json()["nodes"] if one["file"] == HTML_NAME]
    chunk = zoo_served.get(f"api/chunk/{node['id']}")
    assert chunk.headers["content-type"] == "application/json"
    assert "</script><script>" in chunk.json()["text"]


def test_a_token_is_asked_for_and_kept_in_a_cookie(zoo: Path, serve: Callable[..., Served]) -> None:
    secret = "only-the-browser-knows+/="
    served = serve(zoo, "--token-env", "ZOO_TOKEN", env={"ZOO_TOKEN": secret})
    for path in ("", "api/graph", "static/js/main.js", "?token=wrong", "api/graph?token=" + secret):
        refused = served.get(path)
        assert refused.status_code == 401
        assert "token" in refused.json()["error"]
    assert served.post({"text": "okapi"}).status_code == 401
    assert served.get("api/graph", Authorization=f"Bearer {secret}").status_code == 200
    with httpx.Client(base_url=served.url, timeout=60) as browser:
        opened = browser.get("/", params={"token": secret})
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        kept = opened.headers["set-cookie"]
        assert "HttpOnly" in kept
        assert "SameSite=Strict" in kept
        assert browser.get("/").status_code == 200
        assert browser.get("/api/graph").status_code == 200
        assert browser.get("/api/graph", headers={"Host": "x.example"}).status_code == 421
        assert browser.get("/api/graph", headers={"Origin": "http://x.example"}).status_code == 403
    assert served.get("api/graph", Cookie="ragx_token=wrong").status_code == 401
    assert secret not in "".join(served.said)


def test_a_port_that_is_taken_is_named(
    zoo: Path, serve: Callable[..., Served], ragx_inline: RunCli
) -> None:
    port = str(serve(zoo).port)
    done = ragx_inline("web", "--no-open", "--port", port, cwd=zoo)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr
    assert "--port 0" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_it(zoo: Path, serve: Callable[..., Served]) -> None:
    served = serve(zoo)
    # A page that is open keeps a connection.
    with socket.create_connection(("127.0.0.1", served.port)):
        assert served.get("").status_code == 200
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(60) == 0
    assert served.process.stdout is not None
    assert served.process.stdout.read() == ""
    assert "Traceback" not in "".join(served.said)


def test_the_log_holds_no_question(zoo: Path, serve: Callable[..., Served]) -> None:
    served = serve(zoo)
    served.post({"text": "okapi"})
    served.post({"text": "okapi", "top": -1})
    served.process.terminate()
    served.process.wait(60)
    assert served.reader is not None
    served.reader.join()
    log = "".join(served.said)
    assert re.search(r"^web: query: 200, \d+ ms$", log, re.MULTILINE)
    assert re.search(r"^web: query: 400, \d+ ms$", log, re.MULTILINE)
    assert "okapi" not in log


def test_an_empty_index_says_why(
    make_corpus: MakeCorpus, serve: Callable[..., Served], ask: Ask
) -> None:
    root = make_corpus({"empty.md": ""})
    ask("index", cwd=root)
    graph = serve(root).get("api/graph").json()
    assert (graph["nodes"], graph["meta"]["grouping"]) == ([], "none")
    assert "ragx index -v" in graph["meta"]["notices"][0]


def test_chunks_that_nothing_joins_are_grouped_by_directory(
    make_corpus: MakeCorpus, serve: Callable[..., Served], ask: Ask
) -> None:
    root = make_corpus({"a/x.md": "Okapi.\n", "a/y.md": "Zebra.\n", "z.md": "Lion.\n"})
    ask("index", cwd=root)
    served = serve(root)
    graph = served.get("api/graph").json()
    assert graph["edges"] == []
    assert graph["meta"]["grouping"] == "directory"
    assert "no chunk is joined to another" in graph["meta"]["notices"][0]
    assert [(one["label"], one["size"]) for one in graph["communities"]] == [("a/", 2), ("./", 1)]
    group = served.get("api/community/0").json()
    assert [one["file"] for one in group["members"]] == ["a/x.md", "a/y.md"]
    assert served.get("api/community/2").status_code == 404


def test_a_document_is_shown_by_its_place(
    make_corpus: MakeCorpus, serve: Callable[..., Served], ask: Ask
) -> None:
    cells = [
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": [f"# Part {n}\n\n" + f"okapi {n} " * 200],
        }
        for n in range(3)
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    root = make_corpus({"book.ipynb": json.dumps(book), "a.md": "# A\n\nOkapi.\n"})
    ask("index", cwd=root)
    served = serve(root)
    nodes = served.get("api/graph").json()["nodes"]
    places = [(one["place"], one["line_start"]) for one in nodes if one["file"] == "book.ipynb"]
    assert places
    assert all(place.startswith("cell") and line is None for place, line in places)
    assert all("place" not in one for one in nodes if one["file"] == "a.md")
    (first, *_) = [one for one in nodes if one["file"] == "book.ipynb"]
    chunk = served.get(f"api/chunk/{first['id']}").json()
    assert chunk["locator"]["kind"] == "cell"
    assert (chunk["line_start"], chunk["state"]) == (None, "current")


def test_a_file_that_changed_is_said_to_have(zoo: Path, serve: Callable[..., Served]) -> None:
    served = serve(zoo)
    (node,) = [
        one for one in served.get("api/graph").json()["nodes"] if one["file"] == "src/feed.py"
    ]
    assert served.get(f"api/chunk/{node['id']}").json()["state"] == "current"
    (zoo / "src" / "feed.py").write_text("changed")
    changed = served.get(f"api/chunk/{node['id']}").json()
    assert (changed["state"], changed["before"], changed["after"]) == ("changed", None, None)
    assert "feed_okapi" in changed["text"]
    (zoo / "src" / "feed.py").unlink()
    assert served.get(f"api/chunk/{node['id']}").json()["state"] == "gone"


def test_packed_content_is_gzip(zoo_served: Served) -> None:
    head, _, body = zoo_served.raw(
        b"GET /api/graph HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n"
        b"Connection: close\r\n\r\n"
    ).partition(b"\r\n\r\n")
    assert b"Content-Length: %d" % len(body) in head
    assert json.loads(gzip.decompress(body))["schema"] == "ragx.graph.v1"
