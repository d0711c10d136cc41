from __future__ import annotations

import threading

import pytest

from ragx.providers.pacing import Gate, Sizes


class Server:
    """A server in simulated time: `latency(n)` is what a request takes while n are under way, or
    `latency(n, size)` where the size of requests matters."""

    def __init__(self, gate, fake_time, latency):
        self.gate = gate
        self.time = fake_time
        self.latency = latency

    def rounds(self, n):
        """Keep the gate full for n rounds: all that may run do, at once."""
        for _ in range(n):
            with self.gate._changed:
                self.gate._waiting = 1  # there is always more to do
            entered = [self.gate.enter() for _ in range(self.gate.limit)]
            size = self.gate.size
            sized = (size,) if size > 1 else ()
            self.time.now += self.latency(len(entered), *sized)
            for at in entered:
                self.gate.leave(at, float(size), size)


def make(fake_time, most=32, **options):
    return Gate(most, clock=fake_time.clock, **options)


def test_climbs_while_a_server_answers_as_fast(fake_time):
    gate = make(fake_time)
    assert gate.limit == 1
    Server(gate, fake_time, lambda n: 0.05).rounds(20)
    assert gate.limit == 32


@pytest.mark.parametrize("slots", [1, 2, 8, 11, 16])
def test_stops_where_more_brings_nothing(fake_time, slots):
    gate = make(fake_time)
    server = Server(gate, fake_time, lambda n: 0.05 * max(1.0, n / slots))
    server.rounds(20)
    rate = min(gate.limit, slots) / slots
    assert rate > 0.9
    assert gate.limit <= 2 * slots


def test_the_first_answer_is_no_measure(fake_time):
    gate = make(fake_time)
    latencies = iter([5.0])  # the model was loaded first
    Server(gate, fake_time, lambda n: next(latencies, 0.05 * n)).rounds(20)
    assert gate.limit == 1


def test_never_passes_the_most(fake_time):
    gate = make(fake_time, most=6)
    Server(gate, fake_time, lambda n: 0.05).rounds(30)
    assert gate.limit == 6


def test_a_fixed_number_is_there_from_the_start(fake_time):
    assert make(fake_time, most=7, adaptive=False).limit == 7


def test_what_was_learned_is_where_it_starts(fake_time):
    assert make(fake_time, start=16).limit == 16
    assert make(fake_time, most=8, start=16).limit == 8


def test_too_little_work_is_no_measurement(fake_time):
    gate = make(fake_time, start=8)
    for _ in range(100):
        entered = gate.enter()
        fake_time.now += 0.05
        gate.leave(entered, 1.0)
    assert gate.limit == 8


def test_slow_server_is_not_made_slower(fake_time):
    gate = make(fake_time, patience_s=15.0)
    longest = []

    def one_after_the_other(n):
        longest.append(16.0 * n)
        return longest[-1]

    Server(gate, fake_time, one_after_the_other).rounds(50)
    assert gate.limit == 1
    assert max(longest) == 16.0


def test_complaint_halves_once_for_all_that_were_under_way(fake_time):
    gate = make(fake_time, start=16)
    entered = [gate.enter() for _ in range(16)]
    fake_time.now += 1
    for at in entered:
        gate.complain(at, None)
        gate.leave(at, 0.0)
    assert gate.limit == 8
    Server(gate, fake_time, lambda n: 0.05).rounds(20)
    assert gate.limit == 32


def test_a_fixed_number_comes_back_after_complaints(fake_time):
    gate = make(fake_time, most=8, adaptive=False)
    at = gate.enter()
    gate.complain(at, None)
    gate.leave(at, 0.0)
    assert gate.limit == 4
    Server(gate, fake_time, lambda n: 0.05).rounds(10)
    assert gate.limit == 8


def test_a_pause_holds_for_all_and_one_tries_first(fake_time):
    gate = make(fake_time, start=8)
    first = gate.enter()
    gate.complain(first, 30.0)
    gate.leave(first, 0.0)
    start = fake_time.now
    trial = gate.enter()
    assert fake_time.sleeps == [30.0]
    assert trial == start + 30.0
    others = threading.Barrier(4, timeout=60)
    passed = []

    def follow():
        others.wait()
        passed.append(gate.enter())

    threads = [threading.Thread(target=follow) for _ in range(3)]
    for thread in threads:
        thread.start()
    others.wait()
    with gate._changed:
        gate._changed.wait_for(lambda: gate._waiting == 3, timeout=0.2)
    assert passed == []
    gate.leave(trial, 1.0)
    for thread in threads:
        thread.join(60)
    assert len(passed) == 3
    assert gate.limit == 4


TEXTS = Sizes(least=32, start=32, most=256)


def waves(request_s, text_s, slots):
    """The latency of a server that works on so many requests at a time."""
    return lambda n, size: (request_s + text_s * size) * max(1.0, n / slots)


def rate_of(gate, latency):
    limit, size = gate.settled
    return limit * size / latency(limit, size)


@pytest.mark.parametrize("slots", [1, 2, 8, 64])
@pytest.mark.parametrize("text_s", [0.0, 0.0005, 0.002])
@pytest.mark.parametrize("request_s", [0.01, 0.05])
def test_finds_nine_tenths_of_the_best_number_and_size(fake_time, request_s, text_s, slots):
    gate = make(fake_time, sizes=TEXTS)
    latency = waves(request_s, text_s, slots)
    Server(gate, fake_time, latency).rounds(40)
    best = max(
        n * size / latency(n, size) for n in (1, 4, 8, 16, 32) for size in (32, 64, 128, 256)
    )
    assert rate_of(gate, latency) >= 0.9 * best


@pytest.mark.parametrize("text_s", [0.01, 0.1, 0.2])
def test_requests_stay_small_where_time_is_proportional_to_texts(fake_time, text_s):
    gate = make(fake_time, sizes=TEXTS, patience_s=7.5)
    longest = []

    def latency(n, size):
        longest.append(n * size * text_s)
        return longest[-1]

    Server(gate, fake_time, latency).rounds(60)
    assert gate.settled == (1, 32)
    assert max(longest) <= 4 * 7.5


def test_no_request_grows_beyond_what_may_weigh(fake_time):
    gate = make(fake_time, sizes=Sizes(32, 32, 256, most_weight=200))
    Server(gate, fake_time, lambda n, size: 0.05).rounds(30)
    assert gate.size == 128


def test_fixed_number_and_searched_size(fake_time):
    gate = make(fake_time, most=2, adaptive=False, sizes=TEXTS)
    Server(gate, fake_time, lambda n, size: 0.05).rounds(10)
    assert gate.settled == (2, 256)


def test_size_is_left_alone_where_it_is_fixed(fake_time):
    gate = make(fake_time, sizes=Sizes(48, 48, 48))
    Server(gate, fake_time, lambda n, size: 0.05).rounds(30)
    assert gate.settled == (32, 48)


def test_a_size_that_is_refused_is_not_tried_again(fake_time):
    gate = make(fake_time, sizes=TEXTS)
    server = Server(gate, fake_time, lambda n, size: 0.05)
    while gate.size == 32:
        server.rounds(1)
    gate.keep_to(100)
    server.rounds(40)
    assert gate.size == 100
    gate.keep_to(10)
    assert gate.size == 10


def test_a_size_under_trial_that_overloads_is_not_tried_again(fake_time):
    gate = make(fake_time, sizes=TEXTS)
    server = Server(gate, fake_time, lambda n, size: 0.05)
    while gate.size == 32:
        server.rounds(1)
    entered = gate.enter()
    gate.complain(entered, None)
    gate.leave(entered, 0.0)
    server.rounds(40)
    assert gate.size == 32


def test_requests_shrink_again_where_answers_take_too_long(fake_time):
    gate = make(fake_time, sizes=Sizes(32, 256, 256), start=4, patience_s=7.5)
    Server(gate, fake_time, waves(0.05, 0.1, 4)).rounds(20)
    assert gate.size == 64


def test_small_requests_say_nothing_about_a_larger_size(fake_time):
    gate = make(fake_time, most=1, sizes=TEXTS)
    Server(gate, fake_time, lambda n, size: 0.05).rounds(1 + 4)
    assert gate.size == 128
    for _ in range(50):
        entered = gate.enter()
        fake_time.now += 0.05
        gate.leave(entered, 32.0, 32)
    assert gate.size == 128
    assert gate.settled == (1, 32)


def test_closing_wakes_who_waits():
    from ragx.providers.retry import Clock

    gate = Gate(1, clock=Clock())
    gate.enter()
    left = []
    thread = threading.Thread(target=lambda: left.append(gate.enter()))
    thread.start()
    gate.close()
    thread.join(60)
    assert left == [None]
    assert gate.enter() is None
