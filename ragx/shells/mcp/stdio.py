"""One client over standard input and output; the end of its input ends the process.

Standard output belongs to the protocol (`envelope.take_stdout`), and standard input leads nowhere
for everybody else. Input is read by a thread that nobody waits for, so that an interrupt ends the
process although the client says nothing.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from ragx.shells.cli import envelope
from ragx.shells.mcp.server import build_server
from ragx.shells.mcp.tools import Toolbox

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

__all__ = ["serve_stdio"]


def serve_stdio(box: Toolbox) -> None:
    """Serve until the input ends or nobody reads the output any more.

    Raises:
        KeyboardInterrupt: the user interrupted.
    """
    import anyio

    wire_in, wire_out = _take_stdin(), envelope.take_stdout()
    interrupt = _Interrupt()
    try:
        with interrupt.heard():
            anyio.run(_serve, box, wire_in, wire_out, interrupt)
    except* (BrokenPipeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # the client is gone, or the SDK's tasks fell over each other as they ended
    finally:
        box.close()
    if interrupt.came:
        raise KeyboardInterrupt


class _Interrupt:
    """Ends the server where it can be ended; raised in the middle of it, it would make a mess."""

    def __init__(self) -> None:
        self.came = False
        self._stop: Callable[[], object] | None = None

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Take interrupts, unless they are ignored, as by a shell for its background jobs."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            yield
            return
        signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def stops(self, stop: Callable[[], object]) -> None:
        """Say what an interrupt shall do; it is done at once if one has come."""
        self._stop = stop
        if self.came:
            stop()

    def _handle(self, _number: int, _frame: object) -> None:
        if self.came:
            os._exit(envelope.INTERRUPTED)
        self.came = True
        if self._stop is not None:
            self._stop()


async def _serve(
    box: Toolbox, wire_in: BinaryIO, wire_out: BinaryIO, interrupt: _Interrupt
) -> None:
    import asyncio

    import anyio
    import anyio.lowlevel
    from mcp.server.stdio import stdio_server

    server = build_server(box)
    send, receive = anyio.create_memory_object_stream[str](16)
    token = anyio.lowlevel.current_token()
    reader = threading.Thread(
        target=_read_lines, args=(wire_in, send, token), name="stdin", daemon=True
    )
    lines: Any = _Lines(receive)
    output: Any = _Output(wire_out)
    loop = asyncio.get_running_loop()
    with send, receive, anyio.CancelScope() as scope:
        interrupt.stops(lambda: loop.call_soon_threadsafe(scope.cancel))
        async with stdio_server(lines, output) as (read_stream, write_stream):
            reader.start()
            await server.run(read_stream, write_stream, server.create_initialization_options())


def _take_stdin() -> BinaryIO:
    """The client's messages; whoever else reads standard input finds its end."""
    if sys.stdin is None:
        return io.BytesIO()
    try:
        own = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    except (OSError, ValueError):  # inside another program, which has put something else there
        return sys.stdin.buffer
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return own


def _read_lines(wire: BinaryIO, send: MemoryObjectSendStream[str], token: Any) -> None:
    import anyio
    import anyio.from_thread

    try:
        for line in wire:
            text = line.decode("utf-8", "replace")
            if text.strip():
                anyio.from_thread.run(send.send, text, token=token)
        anyio.from_thread.run_sync(send.close, token=token)
    except (RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return  # the server has ended


class _Lines:
    """Lines of text as the SDK's transport reads them."""

    def __init__(self, receive: MemoryObjectReceiveStream[str]) -> None:
        self._receive = receive

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        import anyio

        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Output:
    """Where the SDK's transport writes: whole messages, straight to the descriptor."""

    def __init__(self, wire: BinaryIO) -> None:
        self._wire = wire

    async def write(self, text: str) -> None:
        import anyio.to_thread

        data = text.encode("utf-8", "backslashreplace")
        # A client that does not read must not keep an interrupt from being heard.
        await anyio.to_thread.run_sync(self._write_all, data, abandon_on_cancel=True)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._wire.write(view) or 0 :]

    async def flush(self) -> None:
        """Nothing is held back."""
