"""The tools behind the official SDK's low-level server, which takes schemas as they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ragx import __version__
from ragx.errors import MissingDependency
from ragx.shells.mcp.tools import NOTICE, TOOLS, Toolbox

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult
    from mcp_types import PaginatedRequestParams as Paginated

__all__ = ["build_server", "require_sdk"]

INSTRUCTIONS = (
    "ragx finds the files and exact lines of this corpus that answer a question. Usual order:"
    " search, then read what looks right; neighbors follows links, imports and mentions; status"
    " tells how far the index is behind. Where a reply names a command, run it in the corpus. "
    + NOTICE
)
# Calls at a time; more wait. A call takes one core for milliseconds.
_CALLS_AT_ONCE = 8
_SURROGATE = re.compile("[\ud800-\udfff]")


def require_sdk() -> None:
    """Make sure that the SDK is there before anything is started.

    Raises:
        MissingDependency: it is not, or is too old.
    """
    from importlib.util import find_spec

    # The second is a package of its own, which SDKs before 2 lack.
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise MissingDependency(
            "the MCP SDK (mcp 2.3 or newer) is not installed",
            hint="in ragx's checkout: pip install '.[mcp]'",
        )


def build_server(box: Toolbox) -> Server[Any]:
    """A server that lists the tools and calls them, each call in a thread of its own.

    Returns:
        The SDK's server, to be run over a transport.
    """
    import anyio
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.lowlevel import Server

    listed = types.ListToolsResult(
        tools=[
            types.Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                input_schema=tool.input_schema(),
                output_schema=tool.output_schema(),
                annotations=types.ToolAnnotations(
                    title=tool.title,
                    read_only_hint=True,
                    destructive_hint=False,
                    idempotent_hint=True,
                    open_world_hint=False,
                ),
            )
            for tool in TOOLS.values()
        ]
    )
    limiter: anyio.CapacityLimiter | None = None

    async def list_tools(
        _context: ServerRequestContext[Any], _params: Paginated | None
    ) -> ListToolsResult:
        return listed

    async def call_tool(
        _context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        nonlocal limiter
        if limiter is None:  # it belongs to the running event loop
            limiter = anyio.CapacityLimiter(_CALLS_AT_ONCE)
        reply = await anyio.to_thread.run_sync(
            box.call, params.name, params.arguments or {}, abandon_on_cancel=True, limiter=limiter
        )
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=_sendable(reply.text))],
            structured_content=None if reply.document is None else _sendable(reply.document),
            is_error=reply.failed,
        )

    return Server(
        "ragx",
        version=__version__,
        title="ragx",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _sendable(value: Any) -> Any:
    """Names that are not UTF-8 hold lone surrogates: they become visible text."""
    if isinstance(value, str):
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
    if isinstance(value, dict):
        return {_sendable(key): _sendable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(item) for item in value]
    return value
