from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from ragx.errors import InputTooLong, ProviderError, ProviderRefused, ProviderUnavailable
from ragx.providers.fakes import HashEmbedder
from ragx.providers.pool import EmbedPool, embed_each


def own_threads():
    """Embedding threads that live on; one that is just ending is given a moment."""
    for _ in range(100):
        found = [t for t in threading.enumerate() if t.name.startswith("ragx-embed")]
        if not found:
            break
        time.sleep(0.005)
    return found


def refuse(*words, error=InputTooLong):
    return lambda text: error("no") if any(word in text for word in words) else None


def test_every_job_comes_back_once_with_its_own_vector():
    embedder = HashEmbedder(workers=3, batch_size=4)
    jobs = [(f"key{i}", f"word{i} and word{i + 1}") for i in range(103)]
    with EmbedPool(embedder) as pool:
        results = dict(pool.run(jobs))
    assert sorted(results) == sorted(key for key, _ in jobs)
    for key, text in jobs:
        np.testing.assert_array_equal(results[key], embedder.embed_documents([text])[0])


def test_no_job_no_result():
    with EmbedPool(HashEmbedder()) as pool:
        assert list(pool.run([])) == []
    assert own_threads() == []


def test_bad_texts_fail_alone():
    embedder = HashEmbedder(batch_size=32, fail=refuse("bad3 ", "bad4 "))
    jobs = [(i, f"bad{i} text") for i in range(64)]
    with EmbedPool(embedder) as pool:
        results = dict(pool.run(jobs))
    assert {k for k, r in results.items() if isinstance(r, InputTooLong)} == {3, 4}
    assert all(isinstance(r, np.ndarray) for k, r in results.items() if k not in (3, 4))


@pytest.mark.parametrize("error", [ProviderUnavailable, ProviderRefused])
def test_fault_of_the_server_is_not_searched_for_in_the_batch(error):
    embedder = HashEmbedder(fail=refuse("b", error=error))
    results = embed_each(embedder, ["a", "b", "c", "d"])
    assert all(isinstance(r, error) for r in results)
    assert len(embedder.calls) == 1


def test_refusal_of_the_content_is_searched_for():
    embedder = HashEmbedder(
        fail=lambda t: ProviderRefused("no", details={"scope": "input"}) if t == "b" else None
    )
    results = embed_each(embedder, ["a", "b", "c", "d"])
    assert [isinstance(r, ProviderRefused) for r in results] == [False, True, False, False]


def test_jobs_are_read_a_bounded_number_ahead():
    read = []

    def jobs():
        for i in range(10_000):
            read.append(i)
            yield i, "text"

    with EmbedPool(HashEmbedder(workers=2, batch_size=8)) as pool:
        for n_done, _ in enumerate(pool.run(jobs()), start=1):
            assert len(read) - n_done <= 2 * 32 + 8
    assert len(read) == 10_000


def test_jobs_are_read_in_the_calling_thread():
    threads = set()

    def jobs():
        for i in range(20):
            threads.add(threading.current_thread())
            yield i, "text"

    with EmbedPool(HashEmbedder()) as pool:
        list(pool.run(jobs()))
    assert threads == {threading.current_thread()}


def test_the_rest_is_shared_among_the_workers():
    embedder = HashEmbedder(workers=4, batch_size=128)
    with EmbedPool(embedder) as pool:
        assert len(list(pool.run((i, "text") for i in range(100)))) == 100
    sizes = [len(texts) for texts in embedder.calls]
    assert max(sizes) == 100 / 4
    assert all(size >= 16 for size in sorted(sizes)[1:])


def test_the_rest_is_not_cut_into_crumbs():
    embedder = HashEmbedder(workers=8, batch_size=128)
    with EmbedPool(embedder) as pool:
        assert len(list(pool.run((i, "text") for i in range(40)))) == 40
    assert sorted(map(len, embedder.calls)) == [8, 16, 16]


def test_batches_and_workers_grow_on_the_way():
    together = threading.Barrier(3, timeout=60)
    grown = threading.Semaphore(3)

    class Growing(HashEmbedder):
        def embed_documents(self, texts):
            self.workers, self.batch_size = 3, 20
            if len(texts) == 20 and grown.acquire(blocking=False):
                together.wait()
            return super().embed_documents(texts)

    embedder = Growing(workers=1, batch_size=2)
    with EmbedPool(embedder) as pool:
        assert len(list(pool.run((i, "text") for i in range(500)))) == 500
    sizes = [len(texts) for texts in embedder.calls]
    assert sizes[:4] == [2, 20, 20, 20]
    assert not together.broken


def test_workers_beyond_those_wanted_now_rest():
    running = []
    most = []

    class Shrinking(HashEmbedder):
        def embed_documents(self, texts):
            self.workers = 1
            running.append(1)
            most.append(len(running))
            time.sleep(0.001)
            running.pop()
            return super().embed_documents(texts)

    with EmbedPool(Shrinking(workers=4, batch_size=1)) as pool:
        assert len(list(pool.run((i, "text") for i in range(60)))) == 60
    assert max(most[4:]) == 1


def test_workers_work_at_once():
    together = threading.Barrier(3, timeout=60)

    class Meeting(HashEmbedder):
        def embed_documents(self, texts):
            together.wait()
            return super().embed_documents(texts)

    with EmbedPool(Meeting(workers=3, batch_size=1)) as pool:
        assert len(list(pool.run((i, "text") for i in range(6)))) == 6


@pytest.mark.parametrize("fault", [ValueError("bug"), SystemExit(3), MemoryError()])
def test_worker_that_dies_fails_the_run(fault):
    class Dying(HashEmbedder):
        def embed_documents(self, texts):
            if "die" in texts:
                raise fault
            return super().embed_documents(texts)

    with (
        EmbedPool(Dying(batch_size=1)) as pool,
        pytest.raises(ProviderError, match="died") as caught,
    ):
        list(pool.run((i, "die" if i == 5 else "live") for i in range(1000)))
    assert caught.value.code == "worker_died"
    assert caught.value.__cause__ is fault


def test_short_reply_of_an_embedder_fails_the_run():
    class Short(HashEmbedder):
        def embed_documents(self, texts):
            return super().embed_documents(texts[1:])

    with EmbedPool(Short()) as pool, pytest.raises(ProviderError, match="died"):
        list(pool.run([(1, "a"), (2, "b")]))


def test_fault_of_the_job_source_is_passed_on():
    def jobs():
        yield 1, "a"
        raise OSError("disk")

    with EmbedPool(HashEmbedder()) as pool, pytest.raises(OSError, match="disk"):
        list(pool.run(jobs()))
    assert own_threads() == []


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_leaving_early_stops_within_a_second(kind):
    def run():
        with EmbedPool(Slow(workers=2, batch_size=1)) as pool:
            for _ in pool.run((i, "text") for i in range(1000)):
                raise kind

    class Slow(HashEmbedder):
        def embed_documents(self, texts):
            time.sleep(0.05)
            return super().embed_documents(texts)

    started = time.monotonic()
    with pytest.raises(kind):
        run()
    assert time.monotonic() - started < 5  # one, on a machine that is not busy
    assert own_threads() == []


def test_leaving_does_not_wait_for_a_server_that_never_answers():
    release = threading.Event()

    class Stuck(HashEmbedder):
        in_process = False

        def embed_documents(self, texts):
            if texts[0] != "first":
                release.wait(60)
            return super().embed_documents(texts)

    started = time.monotonic()
    with EmbedPool(Stuck(workers=2, batch_size=1)) as pool:
        run = pool.run([(0, "first"), (1, "second"), (2, "third")])
        assert next(run)[0] == 0
    assert time.monotonic() - started < 5  # one, on a machine that is not busy
    assert all(thread.daemon for thread in own_threads())
    release.set()
    for thread in own_threads():
        thread.join(60)


def test_two_streams_do_not_mix():
    with EmbedPool(HashEmbedder()) as pool:
        one = pool.run((f"a{i}", "text") for i in range(50))
        first = next(one)
        two = list(pool.run((f"b{i}", "text") for i in range(50)))
        rest = list(one)
    assert {key[0] for key, _ in two} == {"b"}
    assert {key[0] for key, _ in [first, *rest]} == {"a"}
    assert len(two) == len(rest) + 1 == 50


@pytest.mark.parametrize("n_signals", [1, 2])
def test_ctrl_c_during_native_work_ends_quietly(n_signals):
    program = (
        "import signal, sys\n"
        "from ragx.providers.base import EmbeddingOptions\n"
        "from ragx.providers.builtin import BuiltinEmbedder\n"
        "from ragx.providers.pool import EmbedPool\n"
        "inside = True\n"
        "def interrupt(number, frame):\n"
        "    if inside:  # what comes later is the shell's business\n"
        "        raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGINT, interrupt)\n"
        "try:\n"
        "    with EmbedPool(BuiltinEmbedder(EmbeddingOptions())) as pool:\n"
        "        for key, _ in pool.run((i, 'word ' * 200) for i in range(100000)):\n"
        "            if key == 0:\n"
        "                print('started', flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    inside = False\n"
        "    sys.exit(130)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "started\n"
        for _ in range(n_signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        _, errors = process.communicate(timeout=60)
    # A signal that comes after Python has put its handlers away ends the process by itself.
    assert process.returncode in (130, -signal.SIGINT)
    assert errors == ""
