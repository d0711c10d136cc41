"""`ragx mcp`: the corpus as tools for agents, by the Model Context Protocol.

| module     | holds                                                            |
|------------|------------------------------------------------------------------|
| tools      | search, read, neighbors, status: arguments in, documents out     |
| server     | the tools behind the official SDK                                |
| stdio      | one client over standard input and output                        |
| http       | many clients over HTTP                                           |

Only server, stdio and http import the SDK, inside their functions.
"""

from __future__ import annotations

__all__: list[str] = []
