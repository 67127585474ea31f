"""`python -m studio`: the embedded studio alone; `... keys`: its API keys."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Only its owner can read what it writes.
    os.umask(0o077)
    # Each command imports what it needs, so that one about keys does not wait for the web framework.
    if sys.argv[1:2] == ["keys"]:
        from studio.key_commands import main as keys_main

        sys.exit(keys_main(sys.argv[2:]))
    from studio.server import main

    sys.exit(main())
