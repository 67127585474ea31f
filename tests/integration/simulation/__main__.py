"""Play seeds: `python -m tests.integration.simulation 17 18`; prints a hash of each trace, or what is wrong."""

from __future__ import annotations

import hashlib
import logging
import sys

from tests.integration.simulation import judge
from tests.integration.simulation.play import mixed_setup, play


def main(seeds: list[str]) -> int:
    logging.disable()
    wrong = 0
    for seed in seeds:
        story = play(mixed_setup(int(seed)))
        faults = judge.faults(story)
        wrong += bool(faults)
        trace = hashlib.sha256(story.trace().encode()).hexdigest()
        print(seed, *faults or [trace], sep="\n  ", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
