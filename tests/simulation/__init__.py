"""Days of imports in virtual time, judged from outside: weather, dialects, deaths, two runs at once, people.

`python -m tests.simulation SEED...` replays seeds; `--days 400 FILE` plays new ones until they last so many days on the
virtual clock. Runs go on for two in a hundred of those hours; in the others jobs end and request IDs are forgotten.
"""

from tests.simulation import clock as clock  # first: the program's modules bind their clocks as they are read
