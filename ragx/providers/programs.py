"""Programs of this machine, never of the directory that somebody stands in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

__all__ = ["program_on_path"]


def program_on_path(name: str, env: Mapping[str, str] | None = None) -> str | None:
    """Find a program in the directories of PATH that are absolute.

    An entry that is empty or relative means the current directory, or one below it: in a clone,
    that program would be the clone's.

    Args:
        name: without a directory.
        env: variables; None takes this process's.
    Returns:
        Its absolute path; None if there is none.
    """
    path = (os.environ if env is None else env).get("PATH", os.defpath)
    absolute = [entry for entry in path.split(os.pathsep) if os.path.isabs(entry)]
    found = shutil.which(name, path=os.pathsep.join(absolute))
    # Windows looks in the current directory all the same.
    return found if found and os.path.isabs(found) else None
