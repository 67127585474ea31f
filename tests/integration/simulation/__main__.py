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

AT_ONCE, A_DAY = 20, 86_400
#: The counts of a seed; `lost` includes whatever else is wrong. Replay a seed with one of the last three by number.
COUNTED = ("seconds", "lives", "deaths", "purchases", "twice", "lost", "wrong_advice")


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


def soak(days: float, file: Path) -> bool:
    """Play until the days are full; returns whether anything was wrong."""
    total = Counter[str]()
    for line in _played(file):
        total.update({name: line[name] for name in COUNTED})
        if total["seconds"] >= days * A_DAY:
            break
    said = [f"{total[name]} {name.replace('_', ' ')}" for name in COUNTED[1:]]
    print(f"{total['seconds'] / A_DAY:.1f} virtual days,", ", ".join(said))
    return any(total[name] for name in COUNTED[-3:])


def _played(file: Path) -> Iterator[dict[str, int]]:
    """The lines of the file, then a new one for each further seed."""
    lines = list(map(json.loads, file.read_text().splitlines())) if file.exists() else []
    yield from lines
    seeds = iter(sorted(set(range(1000, 100_000)) - {line["seed"] for line in lines}))
    with Pool(2) as pool, file.open("a") as kept:
        while True:
            for line in pool.imap_unordered(_one_seed, list(islice(seeds, AT_ONCE))):
                print(json.dumps(line), file=kept, flush=True)
                yield line


def _one_seed(seed: int) -> dict[str, int]:
    """Play a seed and return its counts; an exception counts as a fault."""
    logging.disable()
    try:
        story = play(mixed_setup(seed))
    except Exception:
        return {"seed": seed, **dict.fromkeys(COUNTED, 0), "lost": 1}
    deaths = sum("died" in life for life in story.lives)
    twice, advice = len(list(judge.bought_twice(story))), len(list(judge.wrong_advice(story)))
    other = len(judge.faults(story)) - twice - advice
    counts = (round(story.lasted), len(story.lives), deaths, len(story.service.jobs), twice, other, advice)
    return {"seed": seed, **dict(zip(COUNTED, counts, strict=True))}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
