"""`python -m studio`: the embedded studio alone."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # the drawing processes load this module too
    from studio.server import main

    os.umask(0o077)  # only its owner can read what it writes
    sys.exit(main())
