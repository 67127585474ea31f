"""`python -m studio`: the embedded studio alone; `... keys`: its API keys."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # What it writes is for its owner alone.
    os.umask(0o077)
    # Each imports what it needs: a command on keys does not wait for the web framework.
    if sys.argv[1:2] == ["keys"]:
        from studio.key_commands import main as keys_main

        sys.exit(keys_main(sys.argv[2:]))
    from studio.server import main

    sys.exit(main())
