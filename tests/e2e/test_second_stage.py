"""`--rerank` and `--expand` on the command line, with servers on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragx.contracts import load

FILES = {
    "zebra.md": "# Zebra\n\nThe zebra grazes and the zebra sleeps.\n",
    "stripes.md": "# Stripes\n\nThe zebra has stripes against flies.\n",
    "horse.md": "# Horse\n\nA horse and a zebra meet at the river.\n",
    "boats.md": "# Boats\n\nBoats on the river carry grain.\n",
}
WORDINGS = ["striped animal", "boats that carry grain"]
PASSAGE = "Zebras live in herds."


class Models(ThreadingHTTPServer):
    """A reranker that likes horses and a chat model that knows two wordings; both can fail."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.broken = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, object]:
        self.asked.append((path, body))
        if self.broken:
            return 501, {"error": {"message": "This server does not support that"}}
        if path == "/v1/rerank":
            scores = [5.0 if "horse.md" in text else -5.0 for text in body["documents"]]
            found = [{"index": at, "relevance_score": score} for at, score in enumerate(scores)]
            return 200, {"results": sorted(found, key=lambda item: -float(item["relevance_score"]))}
        text = json.dumps({"queries": WORDINGS, "passage": PASSAGE})
        return 200, {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


class _Request(BaseHTTPRequestHandler):
    server: Models
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, document = self.server.reply(self.path, body)
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def models() -> Iterator[Models]:
    server = Models()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


Settings = Callable[..., None]


@pytest.fixture
def settings(tmp_path: Path, models: Models, ragx_inline) -> Settings:
    """A corpus whose second stages are served by `models`; called again it changes them."""
    for path, text in FILES.items():
        (tmp_path / path).write_text(text, encoding="utf-8")

    def write(*, rerank: bool = True, expansion: bool = True, more: str = "") -> None:
        (tmp_path / "ragx.toml").write_text(
            f"[rerank]\nenabled = {str(rerank).lower()}\nprovider = 'openai'\nmodel = 'ce'\n"
            f"base_url = '{models.url}'\nautostart = false\n"
            f"[expansion]\nenabled = {str(expansion).lower()}\nmodel = 'chat'\n"
            f"base_url = '{models.url}'\nautostart = false\n{more}",
            encoding="utf-8",
        )

    write()
    assert ragx_inline("index").returncode == 0
    return write


def document(run: Any, name: str = "ragx.query.v3") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run.stdout)
    jsonschema.validate(found, load(name))
    return found


def files(found: dict[str, Any]) -> list[str]:
    return [entry["file"] for entry in found.get("results", found.get("files", []))]


@pytest.mark.usefixtures("settings")
class TestQuery:
    def test_nothing_is_asked_without_the_flags(self, ragx_inline, models: Models) -> None:
        found = document(ragx_inline("query", "zebra", "--json"))
        assert not models.asked
        assert found["variants"] == []
        assert (found["stages"]["rerank"], found["stages"]["expansion"]) == ("off", "off")

    def test_rerank_shows_what_it_did(self, ragx_inline, models: Models) -> None:
        plain = document(ragx_inline("query", "zebra", "--json"))
        assert files(plain)[0] != "horse.md"
        found = document(ragx_inline("query", "zebra", "--json", "--rerank", "--explain"))
        assert files(found)[0] == "horse.md"
        assert found["stages"]["rerank"] == "used"
        assert found["warnings"] == []
        [chunk] = found["results"][0]["chunks"]
        assert chunk["breakdown"]["rerank_score"] == 5.0
        terms = chunk["explain"]["terms"]
        assert terms["rerank"] == chunk["breakdown"]["rerank"]
        assert sum(terms.values()) == pytest.approx(chunk["score"], abs=1e-5)
        [(path, body)] = models.asked
        assert (path, body["query"]) == ("/v1/rerank", "zebra")
        assert any(
            text.endswith(FILES["horse.md"].strip()) for text in map(str.strip, body["documents"])
        )

    def test_expand_lists_what_was_searched(self, ragx_inline, models: Models) -> None:
        found = document(ragx_inline("query", "zebra", "--json", "--expand"))
        assert found["variants"] == [*WORDINGS, PASSAGE]
        assert found["stages"]["expansion"] == "used"
        assert "boats.md" in files(found)
        [(path, body)] = models.asked
        assert path == "/v1/chat/completions"
        assert json.loads(body["messages"][-1]["content"]) == {"query": "zebra"}

    def test_both_together_and_files_only(self, ragx_inline, models: Models) -> None:
        whole = document(ragx_inline("query", "zebra", "--json", "--rerank", "--expand"))
        short = document(
            ragx_inline("query", "zebra", "--json", "--rerank", "--expand", "--files-only"),
            "ragx.files.v1",
        )
        assert [path for path, _ in models.asked] == ["/v1/chat/completions", "/v1/rerank"] * 2
        assert files(short) == files(whole)
        assert short["variants"] == whole["variants"]
        assert short["stages"] == whole["stages"]
        assert [entry["score"] for entry in short["files"]] == [
            entry["score"] for entry in whole["results"]
        ]

    def test_the_same_twice_is_the_same(self, ragx_inline) -> None:
        one, two = (
            ragx_inline("query", "zebra river", "--json", "--rerank", "--expand").stdout
            for _ in range(2)
        )
        assert one == two

    def test_people_see_the_terms_and_the_wordings(self, ragx_inline) -> None:
        run = ragx_inline("query", "zebra", "--rerank", "--expand", "--explain")
        assert run.returncode == 0
        assert "+ rerank " in run.stdout
        assert f"searched as well: {WORDINGS[0]}" in run.stderr
        assert WORDINGS[0] not in run.stdout
        brief = ragx_inline("query", "zebra", "--rerank", "--brief")
        assert brief.stdout.startswith("horse.md")

    def test_servers_that_fail_cost_a_warning(self, ragx_inline, models: Models) -> None:
        plain = document(ragx_inline("query", "zebra", "--json"))
        models.broken = True
        run = ragx_inline("query", "zebra", "--json", "--rerank", "--expand")
        found = document(run)
        assert run.returncode == 0
        assert found["results"] == plain["results"]
        assert (found["stages"]["rerank"], found["stages"]["expansion"]) == ("failed", "failed")
        assert [line.split(":")[0] for line in found["warnings"]] == [
            "not expanded",
            "not reranked",
        ]
        shown = ragx_inline("query", "zebra", "--rerank")
        assert shown.returncode == 0
        assert "not reranked" in shown.stderr
        assert (
            "not reranked"
            in json.loads(ragx_inline("query", "zebra", "--rerank", "--brief", "--json").stdout)[
                "warnings"
            ][0]
        )

    def test_nothing_found_is_still_nothing_found(self, ragx_inline) -> None:
        run = ragx_inline("query", "xyzzy", "--mode", "lexical", "--rerank", "--json")
        assert run.returncode == 1
        assert document(run)["stages"]["rerank"] == "off"


@pytest.mark.parametrize(("flag", "section"), [("--rerank", "rerank"), ("--expand", "expansion")])
def test_a_stage_that_is_off_is_refused_with_the_fix(
    settings: Settings, ragx_inline, models: Models, flag: str, section: str
) -> None:
    settings(rerank=False, expansion=False)
    run = ragx_inline("query", "zebra", "--json", flag)
    assert run.returncode == 2
    error = json.loads(run.stdout)["error"]
    assert error["code"] == "stage_off"
    assert error["hint"] == f"ragx config set {section}.enabled true"
    assert ragx_inline(*error["hint"].split()[1:]).returncode == 0
    assert ragx_inline("query", "zebra", "--json", flag).returncode == 0


def test_a_key_that_is_not_set_is_an_error_before_anything_is_asked(
    settings: Settings, ragx_inline, models: Models
) -> None:
    settings(more="api_key_env = 'NO_SUCH_KEY'\n")
    run = ragx_inline("query", "zebra", "--json", "--expand")
    assert run.returncode == 2
    assert json.loads(run.stdout)["error"]["code"] in ("api_key_unset", "untrusted")
    assert not models.asked


QUERIES = '{"query": "zebra", "relevant_files": ["horse.md"]}\n'


def test_eval_measures_both_stages(settings: Settings, ragx_inline, models: Models) -> None:
    run = ragx_inline("eval", "-", "--json", "--configs", "graph,rerank,full", input=QUERIES)
    assert run.returncode == 0
    found = document(run, "ragx.eval.v1")
    by_name = {config["name"]: config["mrr"] for config in found["configs"]}
    assert list(by_name) == ["graph", "rerank", "full"]
    assert by_name["graph"] < by_name["rerank"] == 1.0
    asked = [path for path, _ in models.asked]
    assert asked.count("/v1/chat/completions") == asked.count("/v1/rerank") / 2 > 0
    usual = document(ragx_inline("eval", "-", "--json", input=QUERIES), "ragx.eval.v1")
    assert {"rerank", "full"}.isdisjoint(config["name"] for config in usual["configs"])


def test_eval_does_not_measure_what_did_not_run(
    settings: Settings, ragx_inline, models: Models
) -> None:
    models.broken = True
    run = ragx_inline("eval", "-", "--json", "--configs", "rerank", input=QUERIES)
    assert run.returncode == 2
    assert "not reranked" in json.loads(run.stdout)["error"]["message"]
    settings(rerank=False)
    run = ragx_inline("eval", "-", "--json", "--configs", "rerank", input=QUERIES)
    assert json.loads(run.stdout)["error"]["hint"] == "ragx config set rerank.enabled true"
