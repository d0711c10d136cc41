"""How much a server gets at a time: as many requests, and as many texts in one, as make it faster.

All requests to one server pass its `Gate`, so that what one of them is told holds for all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ragx.providers.retry import Clock

__all__ = ["Gate", "Sizes"]

# A slow server that works on one request at a time would let a second one wait twice as long, and
# a fourth one run into the timeout; a fast one is at 32 within half a second.
_START = 1
# What a step up must bring to be kept.
_GAIN = 1.05
# Rounds without a change before a higher number is tried again.
_CALM_ROUNDS = 8
# Requests that a round has, at least, before the size of requests is judged by it.
_SIZE_ROUND = 4
# The first steps are long, requests 1, 4, 16, 32 and texts 32, 128, 256: too many at once do little
# harm, too few waste the server.
_LONG_STEP = 4
_LONG_STEPS_BELOW = 16
_LONG_SIZE_STEPS_BELOW = 128


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many texts a request may hold: `start`, up to `most` where that pays, down to `least`
    where answers take too long.

    The very first request holds `least` if `tries_least`: a slow server would run into the timeout
    with more, and stays there. `most_weight` is what a request may weigh on average, in the unit
    that `Gate.leave` is told.
    """

    least: int = 1
    start: int = 1
    most: int = 1
    tries_least: bool = False
    most_weight: float = float("inf")


class Gate:
    """Lets a varying number of requests pass at once; safe to use from many threads.

    The number is raised while that makes the server faster, by Little's law: what is under way
    divided by how long it takes, and in turn with it the size of requests. The number is halved
    when the server complains; a pause that one request is told holds for all, and after it a
    single one tries first, so that no herd follows.
    """

    def __init__(
        self,
        most: int,
        *,
        clock: Clock,
        start: int | None = None,
        adaptive: bool = True,
        patience_s: float = float("inf"),
        sizes: Sizes | None = None,
    ) -> None:
        """Set bounds.

        Args:
            most: requests at once, at the very most.
            clock: where time comes from.
            start: requests at once to begin with; None for one.
            adaptive: whether the number is searched for; else it is `most` from the start, and
                returns to it after complaints.
            patience_s: where answers take longer than that, no more are asked for at once, as each
                may then take four times as long; no request grows so large that its answer would.
            sizes: bounds of a request's size; None where it is nothing to search for.
        """
        self._most = max(1, most)
        self._clock = clock
        self._adaptive = adaptive
        self._patience_s = patience_s
        sizes = sizes or Sizes()
        first = (start or _START) if adaptive else self._most
        self._limit = min(self._most, max(1, first))
        self._size = sizes.least if sizes.tries_least else sizes.start
        self._start_size = sizes.start
        self._least_size = sizes.least
        self._most_size = sizes.most
        self._most_weight = sizes.most_weight
        self._changed = threading.Condition()
        self._running = 0
        self._waiting = 0
        self._closed = False
        self._not_before = 0.0
        self._after_trial = 0  # the limit once the single request after a pause has succeeded
        self._cut_at = float("-inf")
        self._before: tuple[int, int] | None = None  # limit and size before the step under trial
        self._rate_before = self._answer_s_before = 0.0
        self._sizes_next = False  # whose turn it is to be raised
        self._n_vain = 0  # steps in a row that did not pay or could not be made
        self._calm = 0
        self._warm = False
        self._begin_round()

    @property
    def limit(self) -> int:
        """Requests that may run at once now."""
        with self._changed:
            return self._after_trial or self._limit

    @property
    def size(self) -> int:
        """Texts that the next request may hold."""
        with self._changed:
            return self._size

    @property
    def settled(self) -> tuple[int, int]:
        """Limit and size that have proved themselves, whatever is being tried."""
        with self._changed:
            return self._before or (self._after_trial or self._limit, self._size)

    def keep_to(self, size: int) -> None:
        """Let no request grow beyond a size any more: the server has refused more."""
        with self._changed:
            self._most_size = min(self._most_size, size)
            if self._size > size:
                self._size = size
                self._forget_step()

    def enter(self) -> float | None:
        """Wait for leave to send a request.

        Returns:
            The time of entry, for `leave`; None once the gate is closed.
        """
        with self._changed:
            self._waiting += 1
            try:
                while not self._closed:
                    pause = self._not_before - self._clock.monotonic()
                    if pause > 0 and self._clock.sleep is not None:
                        self._sleep_outside(pause, self._clock.sleep)
                    elif pause > 0:
                        self._changed.wait(pause)
                    elif self._running < self._limit:
                        self._running += 1
                        return self._clock.monotonic()
                    else:
                        self._changed.wait()
                return None
            finally:
                self._waiting -= 1

    def leave(self, entered: float, weight: float, size: int = 1) -> None:
        """Note the end of a request.

        Args:
            entered: what `enter` gave.
            weight: the work it got done, in any unit; 0 if it failed.
            size: the texts that it held.
        """
        with self._changed:
            self._running -= 1
            if weight > 0:
                self._succeeded(entered, weight, size)
            self._changed.notify_all()

    def complain(self, entered: float, pause_s: float | None) -> None:
        """Halve the number of requests; the server has refused or dropped one because of load.

        Args:
            entered: when that request was let in; those of before the last cut count no more.
            pause_s: how long all shall wait; None where only this request waits.
        """
        with self._changed:
            now = self._clock.monotonic()
            if entered >= self._cut_at:
                self._cut_at = now
                if self._before and self._size > self._before[1]:
                    self._size = self._most_size = self._before[1]
                half = max(1, (self._after_trial or self._limit) // 2)
                if pause_s is None:
                    self._limit = half
                    self._size = min(self._size, max(self._least_size, self._size // 2))
                else:
                    self._after_trial, self._limit = half, 1
                self._calm = 0
                self._forget_step()
            if pause_s is not None:
                self._not_before = max(self._not_before, now + pause_s)
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody pass any more, and wake whoever waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _sleep_outside(self, seconds: float, sleep: Callable[[float], None]) -> None:
        self._changed.release()
        try:
            sleep(seconds)
        finally:
            self._changed.acquire()

    def _forget_step(self) -> None:
        self._before, self._sizes_next, self._n_vain = None, False, 0
        self._begin_round()

    def _begin_round(self) -> None:
        self._since = self._clock.monotonic()
        self._count = 0
        self._done = 0.0
        self._spent = 0.0
        self._starved = False
        tries_size = self._before is not None and self._before[1] != self._size
        about_size = self._sizes_next or tries_size or self._limit >= self._most
        self._round = max(self._limit, _SIZE_ROUND) if about_size else self._limit

    def _succeeded(self, entered: float, weight: float, size: int) -> None:
        if self._after_trial:
            self._limit, self._after_trial = self._after_trial, 0
            self._begin_round()
            return
        if not self._warm:
            # The first answer may have waited for the model to be loaded.
            self._warm = True
            answer_s = self._clock.monotonic() - entered
            if answer_s * self._start_size / self._size <= self._patience_s:
                self._size = max(self._size, min(self._start_size, self._most_size))
            self._begin_round()
            return
        if entered < self._since:
            return  # it ran beside another number of requests than is being measured
        if self._before and self._before[1] < self._size and size <= self._before[1]:
            return  # it is no larger than those before the step
        self._count += 1
        self._done += weight
        self._spent += self._clock.monotonic() - entered
        # Too little work at hand says nothing about the server.
        self._starved |= self._waiting == 0 and self._running + 1 < self._limit
        if self._count < self._round:
            return
        if not self._starved and self._spent > 0:
            self._judge(
                self._limit * self._done / self._spent,
                answer_s=self._spent / self._count,
                weight=self._done / self._count,
            )
        self._begin_round()

    def _judge(self, rate: float, *, answer_s: float, weight: float) -> None:
        """Go on, back or nowhere after a round that did `rate` work a second.

        Args:
            rate: measured in this round.
            answer_s: what a request took in it, on average.
            weight: of a request, on average.
        """
        if not self._adaptive and self._limit < self._most:
            self._limit = min(self._most, self._limit * 2)
            return
        if self._before and rate < self._rate_before * _GAIN:
            (self._limit, self._size), self._before = self._before, None
            self._n_vain += 1
            if self._limit < _SIZE_ROUND and self._n_vain < 2:
                return  # that was measured with too few requests to judge sizes by it
            rate, answer_s = self._rate_before, self._answer_s_before
        elif answer_s > self._patience_s and self._size > self._least_size:
            self._size = self._most_size = max(self._least_size, self._size // 2)
            self._before = None
            return
        elif self._calm:
            self._calm -= 1
            return
        elif self._before:
            self._n_vain = 0
        here = (self._limit, self._size)
        # Number and size in turn, as rounds are short while both are small.
        while self._n_vain < 2 and here == (self._limit, self._size):
            if self._sizes_next:
                self._size = self._larger(answer_s, weight)
            elif self._limit < self._most and answer_s <= self._patience_s:
                factor = _LONG_STEP if self._limit < _LONG_STEPS_BELOW else 2
                self._limit = min(self._most, self._limit * factor)
            self._sizes_next = not self._sizes_next
            self._n_vain += here == (self._limit, self._size)
        if here == (self._limit, self._size):
            self._before, self._calm, self._n_vain = None, _CALM_ROUNDS, 0
        else:
            self._before, self._rate_before, self._answer_s_before = here, rate, answer_s

    def _larger(self, answer_s: float, weight: float) -> int:
        """The next size to try; the present one if there is none."""
        factor = _LONG_STEP if self._size < _LONG_SIZE_STEPS_BELOW else 2
        size = min(self._most_size, self._size * factor)
        growth = size / self._size
        if weight * growth > self._most_weight or answer_s * growth > self._patience_s:
            return self._size
        return max(size, self._size)
