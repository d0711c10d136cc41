"""What commands print is what their schemas say: real output, every key accounted for."""

from __future__ import annotations

import ast
import copy
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ragx import contracts
from ragx.shells.web.service import Reply, Service

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = contracts.names()

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Table = dict[str, tuple[frozenset[str], int]]

# corpus, command line, exit code, document
SUCCESSES = [
    ("nowhere", "--version", 0, "ragx.version.v1"),
    ("built", "--version", 0, "ragx.version.v1"),
    ("nowhere", "--help", 0, "ragx.help.v1"),
    ("nowhere", "config set --help", 0, "ragx.help.v1"),
    ("nowhere", "schema", 0, "ragx.schemas.v1"),
    ("lexical", "config list", 0, "ragx.config.v1"),
    ("lexical", "config list fusion", 0, "ragx.config.v1"),
    ("nowhere", "config list --global", 0, "ragx.config.v1"),
    ("lexical", "config get chunking.size_tokens", 0, "ragx.config.v1"),
    ("lexical", "config get corpus.include", 0, "ragx.config.v1"),
    ("unindexed", "status", 1, "ragx.status.v1"),
    ("lexical", "status", 0, "ragx.status.v1"),
    ("built", "status", 0, "ragx.status.v1"),
    ("partial", "status", 0, "ragx.status.v1"),
    ("resized", "status", 0, "ragx.status.v1"),
    ("unindexed", "index --dry-run", 0, "ragx.dry_run.v1"),
    ("built", "index --dry-run -v", 0, "ragx.dry_run.v1"),
    ("built", "index --dry-run --full --no-cache", 0, "ragx.dry_run.v1"),
    ("partial", "index --dry-run -v", 0, "ragx.dry_run.v1"),
    ("built", "query where does the barrel go", 0, "ragx.query.v3"),
    ("partial", "query barrel -C 0", 0, "ragx.query.v3"),
    ("built", 'query "below deck" -B 2 -A 0 --mode vector', 0, "ragx.query.v3"),
    ("reranked", "query pelican", 0, "ragx.query.v3"),
    ("partial", "query pelican", 0, "ragx.query.v3"),
    ("lexical", "query '\"the pelican\" landed -zeppelin' --top 1", 0, "ragx.query.v3"),
    ("lexical", "query xyzzy", 1, "ragx.query.v3"),
    ("built", "query barrel --temporal recent --explain", 0, "ragx.query.v3"),
    ("lexical", "query barrel --since 1970 --files-only", 0, "ragx.files.v1"),
    ("lexical", "query barrel --until 2199 --brief", 0, "ragx.brief.v1"),
    ("lexical", "query barrel --lang rust", 1, "ragx.query.v3"),
    ("lexical", "index --refresh-dates", 0, "ragx.index.v1"),
    ("built", "query barrel --files-only", 0, "ragx.files.v1"),
    ("lexical", "query xyzzy --files-only", 1, "ragx.files.v1"),
    ("built", "query where does the barrel go --brief", 0, "ragx.brief.v1"),
    ("partial", "query odd text --brief --top 1", 0, "ragx.brief.v1"),
    ("lexical", "query xyzzy --brief", 1, "ragx.brief.v1"),
    ("built", "query where does the barrel go --budget 600", 0, "ragx.evidence.v1"),
    ("partial", "query salt barrels --budget 150 --top 1", 0, "ragx.evidence.v1"),
    ("lexical", "query xyzzy --budget 300", 1, "ragx.evidence.v1"),
    ("chatting", "ask where do barrels of salt go", 0, "ragx.answer.v1"),
    ("chatting", "ask who stowed the emperor with salt", 1, "ragx.answer.v1"),
    ("chatting", "ask xyzzy", 1, "ragx.answer.v1"),
    ("lexical", "ask --verify docs/log.md:1-3@8e44b64d", 0, "ragx.citations.v1"),
    (
        "lexical",
        "ask --verify docs/log.md:1-3@0f3c21ab gone.md:1-2@0f3c21ab",
        1,
        "ragx.citations.v1",
    ),
    ("built", "query --global what is this about", 0, "ragx.overview.v1"),
    ("built", "query --global where do barrels go", 0, "ragx.overview.v1"),
    ("lexical", "query --global what is this about", 0, "ragx.overview.v1"),
    ("lexical", "query --global what is this about --path nowhere/", 1, "ragx.overview.v1"),
    ("built", "doctor", 0, "ragx.doctor.v1"),
    ("built", "doctor --deep", 0, "ragx.doctor.v1"),
    ("unindexed", "doctor", 0, "ragx.doctor.v1"),
    ("built", "trust --list", 0, "ragx.trust.v1"),
    ("untrusted", "trust --list", 1, "ragx.trust.v1"),
    ("built", "verify", 0, "ragx.verify.v1"),
    ("lexical", "eval ../queries.jsonl", 0, "ragx.eval.v1"),
    ("built", "eval ../queries.jsonl --compare baseline graph --limit 2", 0, "ragx.eval.v1"),
    ("lexical", "eval-draft", 1, "ragx.eval_draft.v1"),
    ("lexical", "verify", 0, "ragx.verify.v1"),
    ("lexical", "models --dry-run --embed-engine builtin", 0, "ragx.models.v1"),
    ("lexical", "read {chunk}", 0, "ragx.read.v1"),
    ("lexical", "read docs/log.md:3-5", 0, "ragx.read.v1"),
    ("built", "read docs/log.md --max-chars 20", 0, "ragx.read.v1"),
    ("lexical", "agents", 0, "ragx.agents.v1"),
    ("lexical", "inspect chunk {chunk}", 0, "ragx.inspect.chunk.v1"),
    ("lexical", "inspect neighbors {chunk}", 0, "ragx.inspect.neighbors.v1"),
    ("built", "inspect neighbors {chunk}", 0, "ragx.inspect.neighbors.v1"),
    ("lexical", "inspect communities", 0, "ragx.inspect.communities.v1"),
    ("lexical", "inspect community 0", 0, "ragx.inspect.community.v1"),
    ("lexical", "inspect path docs/log.md docs/log.md", 0, "ragx.inspect.path.v1"),
    ("built", "inspect path docs/log.md {chunk}", 0, "ragx.inspect.path.v1"),
    ("lexical", "inspect path docs/log.md docs/price.txt", 1, "ragx.inspect.path.v1"),
    ("built", "query barrel --explain", 0, "ragx.query.v3"),
    ("built", "query barrel --no-graph --hops 3", 0, "ragx.query.v3"),
    ("lexical", "inspect file docs/log.md", 0, "ragx.inspect.file.v1"),
    ("built", "inspect file docs/log.md --text", 0, "ragx.inspect.file.v1"),
    ("lexical", "inspect file docs/price.txt", 0, "ragx.inspect.file.v1"),
    ("lexical", "inspect file docs/picture.md", 0, "ragx.inspect.file.v1"),
    ("lexical", "inspect file docs/empty.md", 0, "ragx.inspect.file.v1"),
    ("partial", "inspect file docs/refused.md", 0, "ragx.inspect.file.v1"),
]

# corpus, command line, error code
FAILURES = [
    ("nowhere", "--nonsense", "usage"),
    ("nowhere", "", "no_command"),
    ("nowhere", "nonsense", "unknown_command"),
    ("nowhere", "status", "no_corpus"),
    ("nowhere", "status --root absent", "no_directory"),
    ("nowhere", "schema ragx.nonsense.v1", "unknown_schema"),
    ("nowhere", "init absent", "no_directory"),
    ("unindexed", "init", "config_exists"),
    ("unindexed", "config get fusion.nonsense", "unknown_key"),
    ("unindexed", "config set query.top many", "bad_value"),
    ("unindexed", "config set --global query.top 5", "not_machine"),
    ("unindexed", "config", "no_command"),
    ("unindexed", "index --max-files few", "usage"),
    ("unindexed", "index --dry-run --max-files 1", "too_many_files"),
    ("unindexed", "index docs/absent.md --dry-run", "no_such_file"),
    ("unindexed", "query pelican", "index_missing"),
    ("lexical", "query pelican --lang cobol", "bad_filter"),
    ("unindexed", "eval ../queries.jsonl", "index_missing"),
    ("lexical", "eval ragx.toml", "bad_queries"),
    ("partial", "eval ../unknown.jsonl --configs lexical", "unknown_paths"),
    ("lexical", "eval ../queries.jsonl --configs nonsense", "usage"),
    ("unindexed", "eval-draft", "index_missing"),
    ("lexical", "eval-draft --kinds titles", "usage"),
    ("lexical", "eval-draft -o ragx.toml", "file_exists"),
    ("unindexed", "query", "usage"),
    ("unindexed", "inspect file docs/log.md", "index_missing"),
    ("lexical", "query ' '", "empty_query"),
    ("lexical", "query pelican --top 0", "usage"),
    ("lexical", "query pelican --mode vector", "usage"),
    ("lexical", "query pelican --brief --explain", "usage"),
    ("lexical", "query pelican --brief --files-only", "usage"),
    ("nowhere", "query pelican --brief -C 2", "usage"),
    ("lexical", "query pelican --budget 99", "usage"),
    ("lexical", "query pelican --budget 400 --brief", "usage"),
    ("lexical", "ask pelican", "config"),
    ("lexical", "ask", "usage"),
    ("lexical", "ask --verify docs/log.md", "bad_citation"),
    ("unindexed", "ask --verify docs/log.md:1-2@0f3c21ab", "index_missing"),
    ("lexical", "query pelican --global --brief", "usage"),
    ("lexical", "query pelican --global --expand", "stage_off"),
    ("lexical", "index --watch", "usage"),
    ("lexical", "inspect chunk 1", "no_such_chunk"),
    ("lexical", "read 1", "no_such_chunk"),
    ("lexical", "read docs/lag.md", "no_such_file"),
    ("lexical", "read docs/log.md:99", "no_such_lines"),
    ("lexical", "read docs/empty.md", "not_indexed"),
    ("lexical", "read docs/log.md --source-version f00", "source_replaced"),
    ("nowhere", "agents", "no_corpus"),
    ("lexical", "mcp --http --host 0.0.0.0", "needs_token"),
    ("lexical", "mcp --http --token-env RAGX_NO_SUCH", "no_token"),
    ("lexical", "mcp --port 5", "usage"),
    ("lexical", "web --host 0.0.0.0", "needs_token"),
    ("lexical", "web --token-env RAGX_NO_SUCH", "no_token"),
    ("lexical", "web --port x", "usage"),
    ("unindexed", "web --no-open", "index_missing"),
    ("damaged", "web --no-open", "index_damaged"),
    ("nowhere", "web --no-open", "no_corpus"),
    ("lexical", "inspect chunk one", "usage"),
    ("lexical", "inspect file docs/lag.md", "no_such_file"),
    ("lexical", "inspect", "no_command"),
    ("resized", "index", "manifest_mismatch"),
    ("damaged", "query pelican", "index_damaged"),
    ("damaged", "status", "index_damaged"),
    ("down", "query pelican", "provider_unavailable"),
    ("untrusted", "index", "untrusted"),
    ("untrusted", "query pelican", "untrusted"),
    ("nowhere", "doctor", "no_corpus"),
    ("nowhere", "trust", "no_corpus"),
    ("built", "trust --list --revoke", "usage"),
    ("built", "query pelican --rerank", "stage_off"),
]


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one document on standard output, one line and nothing else."""
    assert done.stdout.endswith("\n"), done.stderr
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def complaints(found: Mapping[str, Any]) -> list[str]:
    validator = Draft202012Validator(contracts.load(found["schema"]))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(found)]


def assert_closed(found: Mapping[str, Any]) -> None:
    """A key that the schema does not know is refused, wherever it stands."""
    seen = set()
    for path in objects(found, ()):
        shape = tuple("*" if isinstance(step, int) else step for step in path)
        # What an error adds for programs depends on the fault.
        if shape in seen or shape[:2] == ("error", "details"):
            continue
        seen.add(shape)
        changed = copy.deepcopy(found)
        place: Any = changed
        for step in path:
            place = place[step]
        place["surprise"] = 1
        assert complaints(changed), f"an unknown key passes at {path}"


def objects(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Paths of all objects in a document."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from objects(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from objects(inner, (*path, place))


def words(line: str, corpora: Any) -> list[str]:
    """Split a command line as a shell does."""
    return shlex.split(line.format(chunk=corpora.chunk_id))


@pytest.mark.parametrize(("corpus", "line", "status", "schema"), SUCCESSES)
def test_success(
    corpus: str,
    line: str,
    status: int,
    schema: str,
    corpora: Any,
    run_ragx: Run,
    ragx_inline: Run,
) -> None:
    # A process of its own where native libraries might print; the rest runs in this one.
    run = run_ragx if corpus in ("built", "reranked") else ragx_inline
    done = run(*words(line, corpora), "--json", cwd=getattr(corpora, corpus))
    found = document(done)
    assert found["schema"] == schema
    assert done.returncode == status
    assert complaints(found) == []
    assert_closed(found)


@pytest.mark.parametrize("corpus", ["built", "lexical", "partial", "chatting"])
def test_what_the_page_is_told(corpus: str, corpora: Any) -> None:
    service = Service(getattr(corpora, corpus))

    def told(reply: Reply) -> dict[str, Any]:
        assert reply.status == 200, reply.body
        found: dict[str, Any] = json.loads(reply.body)
        assert complaints(found) == []
        assert_closed(found)
        return found

    graph = told(service.graph())
    ids = [node["id"] for node in graph["nodes"]]
    for chunk_id in ids:
        assert told(service.chunk(chunk_id))["id"] == chunk_id
    assert told(service.community(0))["label"] == graph["communities"][0]["label"]
    assert told(service.path(ids[0], ids[-1]))["to"] == str(ids[-1])
    mode = "hybrid" if corpus == "built" else "lexical"
    answer = told(service.query(json.dumps({"text": "barrel", "mode": mode}).encode()))
    assert answer["elapsed_ms"] > 0
    service.close()


@pytest.mark.parametrize(("corpus", "line", "code"), FAILURES)
def test_failure(
    corpus: str, line: str, code: str, corpora: Any, ragx_inline: Run, error_table: Table
) -> None:
    done = ragx_inline(*words(line, corpora), "--json", cwd=getattr(corpora, corpus))
    found = document(done)
    assert found["schema"] == "ragx.error.v1"
    assert complaints(found) == []
    assert_closed(found)
    assert found["error"]["code"] == code
    assert done.returncode == error_table[code][1]
    # The message for a value that is not allowed says what is.
    assert found["error"]["hint"] or code == "bad_value"


def test_init_and_first_runs(tmp_path: Path, ragx_inline: Run, corpora: Any) -> None:
    root = tmp_path / "new"
    shutil.copytree(corpora.unindexed / "docs", root / "docs")
    for line, schema in (
        ("init", "ragx.init.v1"),
        ("config set embeddings.provider none", "ragx.config.v1"),
        ("index -v", "ragx.index.v1"),
        ("index", "ragx.index.v1"),
        ("index --full --force docs/copy.md", "ragx.index.v1"),
    ):
        done = ragx_inline(*line.split(), "--json", cwd=root)
        found = document(done)
        assert (found["schema"], done.returncode) == (schema, 0)
        assert complaints(found) == []
        assert_closed(found)


def test_a_verbose_run_lists_what_it_counts(tmp_path: Path, ragx_inline: Run, corpora: Any) -> None:
    root = tmp_path / "again"
    ignored = shutil.ignore_patterns(".ragx")
    shutil.copytree(corpora.unindexed, root, symlinks=True, ignore=ignored)
    found = document(ragx_inline("index", "-v", "--json", cwd=root))
    counts: dict[str, int] = {}
    for item in found["skipped_files"]:
        counts[item["reason"]] = counts.get(item["reason"], 0) + 1
    assert counts == found["skipped"]
    assert {"binary", "secret", "symlink"} <= counts.keys()
    assert [item["file"] for item in found["notes"]] == ["docs/price.txt"]


def test_a_partial_failure_is_the_commands_own_document(
    corpora: Any, ragx_inline: Run, error_table: Table
) -> None:
    found = document(corpora.partial_run)
    assert (found["schema"], corpora.partial_run.returncode) == ("ragx.index.v1", 2)
    assert complaints(found) == []
    assert_closed(found)
    assert not found["ok"]
    assert [(item["file"], item["code"]) for item in found["failed"]] == [
        ("docs/refused.md", "input_too_long")
    ]
    assert found["failed"][0]["code"] in error_table
    status = document(ragx_inline("status", "--json", cwd=corpora.partial))
    assert [item["file"] for item in status["failed"]] == ["docs/refused.md"]
    answer = document(ragx_inline("query", "odd text", "--json", cwd=corpora.partial))
    assert "docs/refused.md" in "".join(answer["warnings"])


def test_a_reader_can_add_up_the_score(corpora: Any, ragx_inline: Run) -> None:
    """`score` is the sum of all that `breakdown` lists but the raw scores, to the rounding."""
    for corpus in ("partial", "lexical"):
        done = ragx_inline("query", '"the barrels" twice', "--json", cwd=getattr(corpora, corpus))
        found = [part for entry in document(done)["results"] for part in entry["chunks"]]
        assert found
        for part in found:
            parts = part["breakdown"].items()
            terms = [value for name, value in parts if name not in ("cosine", "bm25")]
            assert part["score"] == pytest.approx(sum(terms), abs=5e-7 * (len(terms) + 1))


def test_files_only_has_the_entries_and_scores_of_the_long_form(
    corpora: Any, ragx_inline: Run
) -> None:
    args = ("query", "salt barrels", "--json")
    long = document(ragx_inline(*args, cwd=corpora.partial))
    short = document(ragx_inline(*args, "--files-only", cwd=corpora.partial))
    assert short["files"] == [
        {
            "file": entry["file"],
            "score": entry["score"],
            "also_in": entry["also_in"],
            "chunk_ids": [part["chunk_id"] for part in entry["chunks"]],
        }
        for entry in long["results"]
    ]


def test_every_document_is_seen_here() -> None:
    seen = {schema for *_, schema in SUCCESSES}
    seen |= {"ragx.error.v1", "ragx.init.v1", "ragx.index.v1"}
    seen |= {"ragx.graph.v1", "ragx.chunk.v1", "ragx.web.v1"}
    assert seen == set(NAMES)


def test_contracts_lists_every_document_with_what_may_be_absent() -> None:
    text = (REPOSITORY / "CONTRACTS.md").read_text(encoding="utf-8")
    section = text.split("\n## JSON documents\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(ragx\.[\w.]+)` \| [^|]+ \|([^|]*)\|", section, re.MULTILINE))
    assert list(rows) == list(NAMES)
    for name in NAMES:
        for optional in sorted(_optional(contracts.load(name))):
            assert f"`{optional}`" in rows[name] or f".{optional}`" in rows[name], name


def _optional(schema: Mapping[str, Any]) -> set[str]:
    """Keys that an object may lack, but for counts by reason or kind, which the text covers."""
    return {
        key
        for node in nodes(schema)
        if "required" in node and node.get("title") != "Locator"  # explained once for all
        for key in node["properties"].keys() - set(node["required"])
    }


def test_contracts_explains_every_key_of_a_locator() -> None:
    text = (REPOSITORY / "CONTRACTS.md").read_text(encoding="utf-8")
    section = text.partition("### Locators")[2].partition("\n#")[0]
    found = [
        node for name in NAMES for node in nodes(contracts.load(name))
        if node.get("title") == "Locator"
    ]  # fmt: skip
    assert len(found) > 8
    for node in found:
        assert node["properties"].keys() == found[0]["properties"].keys()
        assert [key for key in node["properties"] if f"`{key}`" not in section] == []


@pytest.mark.parametrize("name", NAMES)
def test_ragx_schema_prints_it_as_it_is_shipped(name: str, ragx_inline: Run) -> None:
    for flags in ((), ("--json",)):
        done = ragx_inline("schema", name, *flags)
        assert done.returncode == 0
        assert json.loads(done.stdout) == contracts.load(name)
        assert done.stdout == contracts.text(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_every_object_in_it_is_closed(name: str) -> None:
    schema = contracts.load(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]
    assert schema["description"]
    for node in nodes(schema):
        if node.get("type") == "object" and "properties" in node:
            assert node["additionalProperties"] is False
            assert set(node.get("required", ())) <= node["properties"].keys()


@pytest.mark.parametrize("name", NAMES)
def test_every_key_is_described_and_its_absence_explained(name: str) -> None:
    unexplained = []
    for node in nodes(contracts.load(name)):
        above = node.get("description", "")
        for key, value in node.get("properties", {}).items():
            if key == "schema" and "const" in value:
                continue
            told = value.get("description", "")
            may_be_null = "null" in (
                value["type"] if isinstance(value.get("type"), list) else [value.get("type")]
            )
            may_lack = key not in node.get("required", ())
            in_parts = {"properties", "items", "$ref"} & value.keys()
            if (
                not (told or in_parts)
                or (may_be_null and "null" not in told)
                or (may_lack and "absent" not in (told + above).lower())
            ):
                unexplained.append(key)
    assert unexplained == []


def nodes(schema: object) -> Iterator[dict[str, Any]]:
    """Every subschema, the whole first."""
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            if key in ("properties", "$defs"):
                for inner in value.values():
                    yield from nodes(inner)
            elif key in ("items", "additionalProperties"):
                yield from nodes(value)
            elif key == "anyOf":
                for inner in value:
                    yield from nodes(inner)


def test_every_reason_for_leaving_a_path_out_has_its_key() -> None:
    """Rare reasons too, which no run above meets."""
    given = set()
    for name in ("scan", "build", "extract"):
        source = (REPOSITORY / "ragx" / "indexing" / f"{name}.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            values: list[ast.AST] = []
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_skip"):
                values = list(node.args[1:2])
            elif isinstance(node, ast.FunctionDef) and node.name == "_left_out":
                values = [item for item in ast.walk(node) if isinstance(item, ast.Return)]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "reason":
                values = [node.value] if isinstance(node.value, ast.Constant | ast.IfExp) else []
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "POLICY":
                values = list(node.value.values) if isinstance(node.value, ast.Dict) else []
            for value in values:
                for part in ast.walk(value):
                    if isinstance(part, ast.Constant) and re.fullmatch(r"[a-z_]+", str(part.value)):
                        given.add(part.value)
    assert {"binary", "secret", "vanished", "hidden", "no_text"} <= given
    for schema in ("ragx.index.v1", "ragx.status.v1", "ragx.dry_run.v1"):
        assert set(contracts.load(schema)["properties"]["skipped"]["properties"]) >= given
