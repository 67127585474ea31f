"""Play seeds: `python -m tests.integration.simulation 17 18`; prints a hash of each trace, or what is wrong.

`--days 30 FILE` plays seeds from 1000 on, in two processes, until they last so many virtual days together. It writes a
line a seed into the file, and goes on after those that are there.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from multiprocessing import Pool
from pathlib import Path

from tests.integration.simulation import judge
from tests.integration.simulation.play import mixed_setup, play

AT_ONCE, A_DAY = 20, 86_400.0


def main(seeds: list[str]) -> int:
    if seeds[0] == "--days":
        return soak(float(seeds[1]), Path(seeds[2]))
    logging.disable()
    wrong = 0
    for seed in seeds:
        story = play(mixed_setup(int(seed)))
        faults = judge.faults(story)
        wrong += bool(faults)
        trace = hashlib.sha256(story.trace().encode()).hexdigest()
        print(seed, *faults or [trace], sep="\n  ", flush=True)
    return wrong


def soak(days: float, file: Path) -> int:
    """Play until the days are full; returns whether there were faults."""
    found = Counter[str]()
    for seed, counts, faults in _played(file):
        found.update(counts)
        if faults:
            print(seed, *faults, sep="\n  ", flush=True)
        if found["seconds"] >= days * A_DAY:
            break
    print(
        f"{found['seconds'] / A_DAY:.1f} virtual days, {found['lives']} lives, {found['deaths']} deaths, "
        f"{found['purchases']} purchases: {found['twice']} twice, {found['lost']} lost, {found['advice']} wrong advice"
    )
    return int(found["twice"] + found["lost"] + found["advice"] > 0)


def _played(file: Path) -> Iterator[tuple[int, dict[str, float], list[str]]]:
    """The lines of the file, then a new one for each further seed."""
    lines = list(map(json.loads, file.read_text().splitlines())) if file.exists() else []
    yield from lines
    seeds = iter(sorted(set(range(1000, 100_000)) - {seed for seed, *_ in lines}))
    with Pool(2) as pool, file.open("a") as kept:
        while True:
            for line in pool.imap_unordered(_one_seed, list(islice(seeds, AT_ONCE))):
                print(json.dumps(line), file=kept, flush=True)
                yield line


def _one_seed(seed: int) -> tuple[int, dict[str, float], list[str]]:
    """Play it; what it raises is a fault of it."""
    logging.disable()
    try:
        story = play(mixed_setup(seed))
    except Exception as error:
        return seed, {"lost": 1}, [repr(error)]
    faults = judge.faults(story)
    counts = {
        "seconds": story.lasted,
        "lives": len(story.lives),
        "deaths": sum("died" in life for life in story.lives),
        "purchases": len(story.service.jobs),
        "twice": len(list(judge.bought_twice(story))),
        "advice": len(list(judge.wrong_advice(story))),
    }
    return seed, counts | {"lost": len(faults) - counts["twice"] - counts["advice"]}, faults


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
