"""`python -m studio`: the embedded studio alone; `python -m studio keys`: its API keys."""

from __future__ import annotations

import os
import sys

from studio import key_commands, server

if __name__ == "__main__":
    # What it writes is for its owner alone.
    os.umask(0o077)
    if sys.argv[1:2] == ["keys"]:
        sys.exit(key_commands.main(sys.argv[2:]))
    sys.exit(server.main())
