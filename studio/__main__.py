"""`python -m studio`: the embedded studio alone."""

from __future__ import annotations

import sys

from studio.server import main

if __name__ == "__main__":
    sys.exit(main())
