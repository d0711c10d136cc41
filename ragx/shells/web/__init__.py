"""`ragx web`: the graph and its answers, to be looked at in a browser.

| module     | holds                                                        |
|------------|--------------------------------------------------------------|
| documents  | a map and a chunk as JSON                                    |
| service    | what is asked, and the reply to it; knows nothing of sockets |
| assets     | the files of the page, read once                             |
| server     | HTTP: who may ask, what leads where, one thread a connection |
| static     | the page itself                                              |
"""

from __future__ import annotations

__all__: list[str] = []
