"""HOSTILE, "Embedding server": no input loses a file in silence, whatever the server does."""

from __future__ import annotations

import json
import math
import random
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from email.utils import formatdate

import pytest

from ragx.providers.retry import RetryPolicy

KEY = "sk-live-5f2d9c0b7a1e4d3f8899"
N_FILES = 12


@pytest.fixture
def quick(monkeypatch):
    """Retries as many as ever, with pauses nobody waits for."""
    policy = RetryPolicy(pause_s=dict.fromkeys(RetryPolicy().pause_s, 0.005))
    monkeypatch.setattr("ragx.providers.http.RetryPolicy", lambda: policy)


@pytest.fixture
def corpus(tmp_path, faulty_server):
    """Twelve notes of a few paragraphs, and one with a paragraph of 9,000 signs."""
    root = tmp_path / "corpus"
    root.mkdir()
    for n in range(N_FILES):
        body = "\n\n".join(
            f"The kudu of note {n} has part {p}: " + f"zebra{n} gnu{p} eland " * 20
            for p in range(4)
        )
        (root / f"note{n}.md").write_text(f"# Note {n}\n\n{body}\n")
    long = " ".join(f"kudu{n}" for n in range(1500))
    (root / "long.md").write_text(f"# Long\n\n{long} lastkudu\n")
    (root / "ragx.toml").write_text(faulty_server.settings())
    return root


@pytest.fixture
def ask(ragx_inline, corpus):
    """Run a command with `--json` in the corpus; returns (exit code, document)."""

    def run(*args, **options):
        done = ragx_inline(*args, "--json", cwd=corpus, **options)
        return done.returncode, json.loads(done.stdout)

    return run


def complete(ask, n_files=N_FILES + 1):
    """Assert that everything is in the index, with vectors, as a fresh one would have it."""
    code, status = ask("status")
    assert code == 0
    assert status["chunks_without_vector"] == 0
    assert status["failed"] == []
    code, checked = ask("verify")
    assert code == 0, checked
    assert checked["files"] == n_files


def manifest(corpus):
    from ragx.store.sqlite import SqliteReader

    reader = SqliteReader(corpus)
    try:
        return dict(reader.manifest())
    finally:
        reader.close()


def n_tokens(text):
    """As the server counts them."""
    return len(re.findall(r"\w|[^\w\s]", text)) + 2


# --- over-long input


@pytest.mark.parametrize("limit", [256, 512, 2048])
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, "input ({n} tokens) is too large to process. increase the physical batch size"),
        (400, "This model's maximum context length is {limit} tokens, you asked for {n}"),
        (413, "Payload Too Large"),
        (422, "no"),
    ],
)
def test_over_long_input_is_cut_where_nothing_is_lost(
    faulty_server, fault, corpus, ask, quick, status, words, limit
):
    refused = []

    def judge(number, texts):
        sizes = [n_tokens(text) for text in texts]
        if max(sizes) <= limit:
            return None
        refused.extend(text for text in texts if "kudu" in text)
        said = words.format(n=max(sizes), limit=limit)
        return fault(status=status, body={"error": {"message": said}})

    faulty_server.judge = judge
    code, report = ask("index")
    assert (code, report["failed"]) == (0, [])
    assert len(refused) <= N_FILES
    complete(ask)
    words_sent = Counter(
        word for texts in faulty_server.asked for text in texts for word in text.split()
    )
    assert all(words_sent[f"kudu{n}"] for n in range(1500))
    assert words_sent["lastkudu"]


@pytest.mark.parametrize("limit", [256, 512, 2048])
def test_silent_cut_is_found_and_nothing_is_cut(faulty_server, corpus, ask, limit):
    faulty_server.reads = limit
    assert ask("index")[0] == 0
    assert [text for text in faulty_server.cut if "kudu" in text] == []
    known = int(manifest(corpus)["embeddings_max_tokens"])
    assert known <= limit
    complete(ask)
    # A later run keeps to it without asking again, and cuts a new file as a fresh index would.
    faulty_server.forget()
    (corpus / "new.md").write_text("# New\n\n" + "kudu " * 3000 + "\n")
    assert ask("index")[0] == 0
    assert faulty_server.cut == []
    assert all("kudu" in text for texts in faulty_server.asked for text in texts)
    complete(ask, N_FILES + 2)
    assert ask("query", "kudu " * 2000)[0] == 0
    assert faulty_server.cut == []


def test_full_run_measures_anew(faulty_server, corpus, ask):
    assert ask("index")[0] == 0
    assert manifest(corpus)["embeddings_max_tokens"] == ""
    faulty_server.reads = 256
    assert ask("index", "--full")[0] == 0
    assert int(manifest(corpus)["embeddings_max_tokens"]) <= 256
    complete(ask)


def test_index_of_nothing_asks_nothing_and_the_first_file_is_measured(faulty_server, corpus, ask):
    for path in corpus.glob("*.md"):
        path.unlink()
    faulty_server.reads = 256
    assert ask("index")[0] == 0
    assert faulty_server.asked == []
    (corpus / "a.md").write_text("# A\n\n" + "kudu " * 3000)
    assert ask("index")[0] == 0
    assert [text for text in faulty_server.cut if "kudu" in text] == []
    complete(ask, 1)


# --- batches


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "batch size is invalid, it should not be larger than 10."),
        (422, "List should have at most 10 items after validation, not {n}"),
        (413, "Payload Too Large"),
        (400, "bad request"),
    ],
)
def test_batch_limit_is_learned_once_and_kept(
    faulty_server, fault, corpus, ask, quick, status, words
):
    refused = []

    def judge(number, texts):
        if len(texts) <= 10:
            return None
        refused.append(len(texts))
        return fault(status=status, body={"detail": words.format(n=len(texts))})

    faulty_server.judge = judge
    assert ask("index")[0] == 0
    # Batches that were under way already, and the way down from 32.
    assert 0 < len(refused) <= 8
    complete(ask)
    for run in range(2):
        refused.clear()
        for n in range(40):
            (corpus / f"{run}more{n}.md").write_text(f"# More {n}\n\nkudu{n} text of {run}\n")
        assert ask("index")[0] == 0
        # A limit that no word names is found anew: it may have been a fault that passes.
        assert len(refused) <= (0 if "10" in words else 8)
    complete(ask, N_FILES + 1 + 2 * 40)


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"server": 3}', b"\xff\xfe"])
def test_damaged_knowledge_is_as_good_as_none(faulty_server, corpus, ask, damage):
    assert ask("index")[0] == 0
    path = corpus / ".ragx" / "server.json"
    assert json.loads(path.read_bytes())["learned"]["dimension"] == faulty_server.width
    path.write_bytes(damage)
    (corpus / "new.md").write_text("# New\n\nkudu\n")
    assert ask("index")[0] == 0
    complete(ask, N_FILES + 2)


# --- a server that is busy, comes and goes


@pytest.mark.parametrize("retry_after", ["0.01", "0", "date", None])
@pytest.mark.parametrize("status", [429, 503])
def test_busy_server_is_waited_for(faulty_server, fault, corpus, ask, quick, status, retry_after):
    if retry_after == "date":
        retry_after = formatdate(time.time() - 5, usegmt=True)
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    faulty_server.judge = at_first(
        fault(status=status, body={"error": "slow down"}, headers=headers)
    )
    assert ask("index")[0] == 0
    complete(ask)


def at_first(fault):
    """Fails each request when it is first made: by number, retries of one could all be failed."""
    seen = set()

    def judge(_number, texts):
        fails = tuple(texts) not in seen
        seen.add(tuple(texts))
        return fault if fails else None

    return judge


@pytest.mark.parametrize("how", ["hangup", "cut", "status"])
def test_broken_exchanges_are_repeated(faulty_server, fault, corpus, ask, quick, how):
    faulty_server.judge = at_first(fault(how))
    assert ask("index")[0] == 0
    complete(ask)


def test_nobody_there_ends_soon_and_commits_nothing(corpus, ask, quick):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = (corpus / "ragx.toml").read_text()
    (corpus / "ragx.toml").write_text(re.sub(r":\d+/v1", f":{port}/v1", settings))
    code, error = ask("index")
    assert code == 2
    assert error["error"]["code"] == "provider_unavailable"
    assert "start the server" in error["error"]["hint"]
    assert ask("query", "kudu", "--mode", "lexical")[1]["error"]["code"] == "index_missing"


def test_server_that_goes_away_in_the_middle_keeps_what_was_paid_for(
    faulty_server, fault, corpus, ask, quick
):
    (corpus / "ragx.toml").write_text(faulty_server.settings(batch_size=2, max_in_flight=1))
    faulty_server.judge = lambda number, texts: fault("hangup") if number > 8 else None
    code, error = ask("index")
    assert (code, error["error"]["code"]) == (2, "provider_unavailable")
    n_paid = sum("kudu" in text for texts in faulty_server.asked[:8] for text in texts)
    # Three tries for each of the calls that open the circuit, and a short text after each.
    assert len(faulty_server.asked) <= 8 + 3 * 12
    faulty_server.judge = lambda number, texts: None
    code, report = ask("index")
    assert code == 0
    assert report["cached"] >= n_paid > 0
    complete(ask)


def test_silent_server_ends_by_timeout(faulty_server, fault, corpus, ask):
    (corpus / "ragx.toml").write_text(faulty_server.settings(timeout_s=0.2))
    faulty_server.judge = lambda number, texts: fault("silence")
    code, error = ask("index")
    assert (code, error["error"]["code"]) == (2, "provider_timeout")
    assert "timeout_s" in error["error"]["hint"]
    assert len(faulty_server.asked) <= 4


def test_slow_answers_need_a_raised_timeout(faulty_server, corpus, ask):
    faulty_server.delay_s = 0.5
    (corpus / "ragx.toml").write_text(faulty_server.settings(timeout_s=0.1))
    assert ask("index")[1]["error"]["code"] == "provider_timeout"
    (corpus / "ragx.toml").write_text(faulty_server.settings(timeout_s=20))
    assert ask("index")[0] == 0
    complete(ask)


# --- replies that are not what was asked for


def without_last(items):
    return items[:-1]


def poisoned(items):
    return [*items[:-1], {"index": len(items) - 1, "embedding": [math.nan] * len(items)}]


@pytest.mark.parametrize("items", [without_last, lambda items: [], poisoned])
def test_bad_reply_that_is_not_repeated_costs_nothing(
    faulty_server, fault, corpus, ask, quick, items
):
    faulty_server.judge = at_first(fault("items", items=items))
    assert ask("index")[0] == 0
    complete(ask)


def bad_for(marker):
    """A NaN, always, for texts with a marker."""

    def items_of(texts):
        def items(right):
            for item, text in zip(right, texts, strict=True):
                if marker in text:
                    item["embedding"] = [math.nan] * len(item["embedding"])
            return right

        return items

    return items_of


def test_one_bad_text_fails_alone_and_loudly_and_is_all_that_is_tried_again(
    faulty_server, fault, corpus, ask, quick, ragx_cli
):
    bad = bad_for("zebra7")
    faulty_server.judge = lambda number, texts: fault("items", items=bad(texts))
    code, report = ask("index")
    assert code == 2
    assert report["schema"] == "ragx.index.v1"
    assert [(item["file"], item["code"]) for item in report["failed"]] == [
        ("note7.md", "bad_embedding")
    ]
    assert report["files_indexed"] == N_FILES
    # It is listed until it is well, and its words can be searched.
    assert [item["file"] for item in ask("status")[1]["failed"]] == ["note7.md"]
    assert ask("query", "zebra7", "--mode", "lexical")[1]["results"][0]["file"] == "note7.md"
    assert "note7.md" in ragx_cli("index", cwd=corpus).stderr
    faulty_server.judge = lambda number, texts: None
    faulty_server.forget()
    code, report = ask("index")
    assert (code, report["failed"]) == (0, [])
    assert all("zebra7" in text for texts in faulty_server.asked for text in texts)
    complete(ask)


@pytest.mark.parametrize("status", [400, 500])
def test_text_that_is_refused_fails_alone(faulty_server, fault, corpus, ask, quick, status):
    faulty_server.judge = lambda number, texts: (
        fault(status=status, body={"error": "not this one"})
        if any("zebra7" in text for text in texts)
        else None
    )
    code, report = ask("index")
    assert code == 2
    assert [item["file"] for item in report["failed"]] == ["note7.md"]
    assert "not this one" in report["failed"][0]["message"]
    faulty_server.judge = lambda number, texts: None
    assert ask("index")[0] == 0
    complete(ask)


@pytest.mark.parametrize("how", ["silence", "hangup"])
def test_text_that_the_server_dies_of_fails_alone_on_every_run(
    faulty_server, fault, corpus, ask, quick, how
):
    (corpus / "ragx.toml").write_text(faulty_server.settings(timeout_s=1, batch_size=8))
    faulty_server.judge = lambda number, texts: (
        fault(how) if any("note 7 has part 3" in text for text in texts) else None
    )
    for run in range(2):
        code, report = ask("index")
        assert code == 2
        assert report["schema"] == "ragx.index.v1"
        assert [item["file"] for item in report["failed"]] == ["note7.md"]
        assert "for other texts it answers" in report["failed"][0]["message"]
        assert report["files_indexed"] == (1 if run else N_FILES)
        (corpus / "new.md").write_text("# New\n\nkudu\n")
    faulty_server.judge = lambda number, texts: None
    assert ask("index")[0] == 0
    complete(ask, N_FILES + 2)


def test_text_with_vectors_of_another_width_fails_alone(faulty_server, fault, corpus, ask, quick):
    def wider(texts):
        def items(right):
            for item, text in zip(right, texts, strict=True):
                item["embedding"] += [1.0] * ("zebra7" in text)
            return right

        return items

    faulty_server.judge = lambda number, texts: fault("items", items=wider(texts))
    code, report = ask("index")
    assert code == 2
    assert [(item["file"], item["code"]) for item in report["failed"]] == [
        ("note7.md", "dimension_changed")
    ]
    assert report["files_indexed"] == N_FILES


def test_vector_that_the_probe_alone_does_not_get_stops_nothing(
    faulty_server, fault, corpus, ask, quick
):
    probes = []

    def judge(number, texts):
        if "kudu" in "".join(texts) or n_tokens(texts[0]) < 4000:
            return None
        probes.append(number)
        return fault("items", items=poisoned)

    faulty_server.judge = judge
    assert ask("index")[0] == 0
    assert probes
    complete(ask)


def test_faults_that_pass_are_not_taken_for_limits(faulty_server, fault, corpus, ask, quick):
    left = {True: 3, False: 3}  # of the probe, of texts

    def judge(number, texts):
        is_text = "kudu" in texts[0]
        if (len(texts) == 1 and n_tokens(texts[0]) < 1000 and not is_text) or not left[is_text]:
            return None
        left[is_text] -= 1
        return fault(status=500, body={"error": "oops"})

    faulty_server.judge = judge
    assert ask("index")[0] == 0
    assert left == {True: 0, False: 0}
    assert manifest(corpus)["embeddings_max_tokens"] == ""
    kept = json.loads((corpus / ".ragx" / "server.json").read_bytes())["learned"]
    assert (kept["max_items"], kept["max_request_tokens"]) == (0, 0)
    complete(ask)


# --- what no retry can help


def test_unknown_model_is_said_at_once_with_those_there_are(
    faulty_server, fault, corpus, ask, ragx_inline
):
    faulty_server.judge = lambda number, texts: fault(status=404, body={"error": "no model"})
    faulty_server.models = ["word", "other"]
    code, error = ask("index")
    assert code == 2
    assert "it has word, other" in error["error"]["message"]
    assert error["error"]["hint"] == "ragx config set embeddings.model word"
    assert len(faulty_server.asked) == 1
    faulty_server.judge = lambda number, texts: None
    command = error["error"]["hint"].split()[1:]
    assert ragx_inline(*command, cwd=corpus).returncode == 0
    assert ask("index")[0] == 0


def test_width_that_changes_in_the_middle_stops_the_run(faulty_server, fault, corpus, ask):
    (corpus / "ragx.toml").write_text(faulty_server.settings(batch_size=4))

    def narrower(items):
        return [{**item, "embedding": item["embedding"][:8]} for item in items]

    faulty_server.judge = lambda number, texts: (
        fault("items", items=narrower) if number > 6 else None
    )
    code, error = ask("index")
    assert (code, error["error"]["code"]) == (2, "dimension_changed")
    assert ask("query", "kudu", "--mode", "lexical")[1]["error"]["code"] == "index_missing"


def test_width_that_changes_between_runs_stops_the_second(faulty_server, corpus, ask):
    assert ask("index")[0] == 0
    faulty_server.width = 8
    (corpus / "new.md").write_text("# New\n\nkudu\n")
    code, error = ask("index")
    assert (code, error["error"]["code"]) == (2, "manifest_mismatch")
    assert ask("index", "--full", "--no-cache")[0] == 0
    complete(ask, N_FILES + 2)


def test_body_holds_what_every_server_knows(faulty_server, fault, corpus, ask):
    assert ask("index")[0] == 0
    assert all(keys == {"model", "input", "encoding_format"} for keys in faulty_server.bodies)
    faulty_server.judge = lambda number, texts: (
        fault(status=400, body={"error": "unknown field encoding_format"})
        if "encoding_format" in faulty_server.bodies[-1]
        else None
    )
    assert ask("index", "--full", "--no-cache")[0] == 0
    assert faulty_server.bodies[-1] == {"model", "input"}
    complete(ask)


# --- keys


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "MY_KEY"])
@pytest.mark.parametrize("status", [200, 401, 404, 500])
def test_key_is_nowhere(faulty_server, fault, corpus, ragx_cli, home, name, status):
    if name == "MY_KEY":
        (home / ".ragxrc").write_text('[embeddings]\napi_key_env = "MY_KEY"\n')
    echo = {"error": {"message": "refused with {key}"}}
    headers = {"Retry-After": "999"}
    if status != 200:
        faulty_server.judge = lambda number, texts: fault(status=status, body=echo, headers=headers)
    env = {name: KEY, "RAGX_DEBUG": "1"}
    outputs = []
    for command in (["index", "-v"], ["index", "--json"], ["query", "kudu", "--explain"]):
        done = ragx_cli(*command, cwd=corpus, env=env)
        outputs += [done.stdout, done.stderr]
    assert faulty_server.keys == {f"Bearer {KEY}"}
    stored = [path.read_bytes() for path in (corpus / ".ragx").glob("*") if path.is_file()]
    assert stored
    assert not any(KEY in text for text in outputs)
    assert not any(KEY.encode() in content for content in stored)
    if status == 401:
        assert any("***" in text for text in outputs)


def test_key_is_not_in_the_list_of_processes(faulty_server, fault, corpus, ragx_environment):
    faulty_server.judge = lambda number, texts: fault("silence")
    with subprocess.Popen(
        [sys.executable, "-m", "ragx", "index"],
        cwd=corpus,
        env=ragx_environment({"OPENAI_API_KEY": KEY}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not faulty_server.asked and process.poll() is None:
            time.sleep(0.01)
        listed = subprocess.run(
            ["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True
        ).stdout
        process.kill()
    assert str(process.pid) in listed
    assert KEY not in listed


# --- many requests, one in ten of which fails


def test_ten_thousand_chunks_with_one_request_in_ten_failing(
    faulty_server, fault, tmp_path, ragx_inline, quick
):
    root = tmp_path / "many"
    root.mkdir()
    n_chunks = 10_000
    per_file = 250
    for n in range(n_chunks // per_file):
        sections = (
            f"## Part {n} {s}\n\n"
            + f"The kudu number{n}x{s} eats leaf{s % 97} at noon. " * 2
            + "\n"
            for s in range(per_file)
        )
        (root / f"f{n}.md").write_text("\n".join(sections))
    (root / "ragx.toml").write_text(
        faulty_server.settings(timeout_s=2, batch_size=10)
        + '[chunking]\nsize_tokens = 32\n[graph]\nedge_source = "chunk"\nk = 1\n'
    )
    past = formatdate(time.time() - 5, usegmt=True)
    faults = [
        fault(status=429, body={"error": "slow"}, headers={"Retry-After": "0.01"}),
        fault(status=429, body={"error": "slow"}, headers={"Retry-After": past}),
        fault(status=429, body={"error": "slow"}),
        fault(status=500, body={"error": "oops"}),
        fault(status=503, body={"error": "loading"}),
        fault("hangup"),
        fault("cut"),
        fault("items", items=without_last),
        fault("items", items=lambda items: []),
        fault("items", items=poisoned),
        fault("silence"),
    ]
    failed = []

    def judge(number, texts):
        chance = random.Random(number)
        if chance.random() >= 0.1:
            return None
        kind = chance.randrange(len(faults))
        failed.append(kind)
        return faults[kind]

    faulty_server.judge = judge
    done = ragx_inline("index", "--json", cwd=root)
    report = json.loads(done.stdout)
    assert (done.returncode, report["failed"]) == (0, [])
    assert report["chunks_added"] >= n_chunks
    assert set(failed) == set(range(len(faults)))
    status = json.loads(ragx_inline("status", "--json", cwd=root).stdout)
    assert status["chunks_without_vector"] == 0
