"""`python -m studio`: the embedded studio alone."""

from __future__ import annotations

import os
import sys

from studio.server import main

if __name__ == "__main__":
    # What it writes is for its owner alone.
    os.umask(0o077)
    sys.exit(main())
