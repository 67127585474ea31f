"""Days of imports in virtual time, judged from outside: weather, dialects, deaths, two runs at once, people.

`python -m tests.simulation SEED...` replays seeds; `--days 10 FILE` plays new ones until they last so long together.
"""

from tests.simulation import clock as clock  # first: the program's modules bind their clocks as they are read
