"""Serve the double: `python -m tests.double PORT [RECORD] [WEATHER]`, the weather as JSON: {"dialect": "409 bare"}."""

import asyncio
import json
import sys
from pathlib import Path

from tests.double.server import KEY, serve
from tests.double.service import Double
from tests.double.weather import Spell, Weather


async def main(port: int, record: str = "", weather: str = "{}") -> None:
    given = json.loads(weather)
    given["spells"] = tuple(Spell(**spell) for spell in given.get("spells", ()))
    server = await serve(Double(Weather(**given), file=Path(record) if record else None), port)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", KEY, flush=True)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
