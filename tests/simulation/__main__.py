"""Play seeds, and say what was wrong: see the package."""

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pool, get_context
from pathlib import Path

import patternmill.tables.checks  # noqa: F401  # with pandas, which a run imports when it needs it: forks have it
from tests.simulation.bugs import BUGS
from tests.simulation.play import play

A_DAY, FIRST_SEED = 86_400.0, 1000
#: How long a story lasts on the virtual clock, and for how much of that runs go on, in seconds.
LASTED = ("lasted", "at_work")
#: What is counted over all seeds; replay a seed with one of the last three by its number.
COUNTED = ("lives", "deaths", "purchases", "faults", "twice", "lost", "wrong_advice", "otherwise_wrong")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.simulation")
    parser.add_argument("what", nargs="+", help="seeds; with --days, a file")
    parser.add_argument("--days", type=float)
    parser.add_argument("--bugs", action="store_true", help="play each BUG:SEED in a process of its own")
    options = parser.parse_args()
    logging.disable()
    if options.bugs:
        return with_bugs(options.what)
    return soak(options.days, Path(options.what[0])) if options.days else replay([*map(int, options.what)])


def replay(seeds: list[int]) -> int:
    """Play seeds one by one, and tell their stories."""
    wrong = 0
    for seed in seeds:
        story = play(seed)
        wrong += bool(story.wrong)
        counts = ", ".join(f"{count} {name}" for name, count in story.counts.items())
        print(
            f"seed {seed}, {story.double.weather.dialect}: {story.lasted / 3600:.1f} hours on the virtual clock, "
            f"with runs for {story.at_work / 3600:.1f} of them, {counts}"
        )
        print(*story.outcomes, *(f"WRONG {one}" for one in story.wrong[:20]), sep="\n  ", flush=True)
    return wrong


def with_bugs(pairs: list[str]) -> int:
    """Play seeds with bugs, each in a fork of this process, which has imported all; return how many were not found."""
    missed = 0
    with get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for pair, wrong in zip(pairs, pool.imap(_with_bug, pairs), strict=True):
            missed += not wrong
            print(*(f"{pair} WRONG {one}" for one in wrong[:20]), sep="\n", flush=True)
    return missed


def _with_bug(pair: str) -> list[str]:
    bug, _, seed = pair.partition(":")
    BUGS[bug]()
    return play(int(seed)).wrong


def soak(days: float, file: Path) -> int:
    """Play seeds until their stories last so many days on the virtual clock; those in the file count."""
    total, seeds = Counter[str](), 0
    for line in _played(file):
        total.update({name: line[name] for name in (*LASTED, *COUNTED)})
        seeds += 1
        if total["lasted"] >= days * A_DAY:
            break
    lasted, at_work = (total[name] / A_DAY for name in LASTED)
    said = ", ".join(f"{total[name]} {name.replace('_', ' ')}" for name in COUNTED)
    print(
        f"{lasted:.1f} days on the virtual clock, with runs for {at_work:.1f} of them, in {seeds} seeds: {said}"
    )
    return sum(total[name] for name in COUNTED[-4:])


def _played(file: Path) -> Iterator[dict[str, float]]:
    """Yield the lines of the file, then a new one for each further seed, as many at once as there are cores."""
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    yield from lines
    seeds = sorted(set(range(FIRST_SEED, 100_000)) - {line["seed"] for line in lines})
    with Pool() as pool, file.open("a") as kept:
        for line in pool.imap_unordered(_one_seed, seeds):
            print(json.dumps(line), file=kept, flush=True)
            yield line


def _one_seed(seed: int) -> dict[str, float]:
    """Play a seed, and return its counts; an exception counts as well."""
    try:
        story = play(seed)
    except Exception as error:
        print(f"seed {seed}: {error!r}", file=sys.stderr, flush=True)
        return {"seed": seed, **dict.fromkeys((*LASTED, *COUNTED), 0), "otherwise_wrong": 1}
    counts = {name: story.counts[name] for name in COUNTED}
    counts["otherwise_wrong"] = len(story.wrong) - sum(
        counts[name] for name in ("twice", "lost", "wrong_advice")
    )
    return {"seed": seed, **{name: getattr(story, name) for name in LASTED}, **counts}


if __name__ == "__main__":
    sys.exit(min(main(), 100))
