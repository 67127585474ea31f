"""The embedded studio of a home, which its commands share as they share a Prefect server."""

import contextlib
import importlib.util
import json
import secrets
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cli.shared import Launch, Shared, environment, shared_process
from patternmill.errors import Refusal
from patternmill.settings import PREFIX, STUDIO, Settings

_STARTUP = 60.0
_READY, _KEY = "ready.json", "api-key"


@contextlib.contextmanager
def embedded_studio(home: Path, pace: str = "quick", port: int = 0) -> Iterator[str]:
    """Have settings name the embedded studio meanwhile; yields its address. Pace and port count where it is started."""
    folder = (home / "studio").resolve()
    with shared_process(folder, partial(_launch, folder, pace), port) as shared:
        address = _address(shared)
        package = importlib.util.find_spec("studio")  # to import it would take as long as to start it
        assert package and package.origin
        said = {
            f"{PREFIX}STUDIO_URL": address,
            f"{PREFIX}API_KEY": (folder / _KEY).read_text().strip(),
            f"{PREFIX}ENVIRONMENT": STUDIO,
            f"{PREFIX}SERVICE_FILE": str(Path(package.origin).with_name("service.toml")),
        }
        with environment(said):
            yield address


def is_meant(settings: Settings) -> bool:
    """Return whether the embedded studio is meant: it is named, or no service was ever configured in this home."""
    from patternmill.ledger.database import Database

    if settings.studio_url or settings.environment:
        return settings.environment == STUDIO and not settings.studio_url
    if not settings.ledger_url and not Path(settings.ledger_address).exists():
        return True  # to look must not make a ledger
    database = Database(settings.ledger_address)
    try:
        return not database.read("SELECT name FROM environments WHERE name <> :studio", studio=STUDIO)
    finally:
        database.disconnect()


def _launch(folder: Path, pace: str, port: int) -> Launch:
    (folder / _READY).unlink(missing_ok=True)
    key = folder / _KEY
    key.touch(0o600)
    key.write_text(f"studio_{secrets.token_urlsafe(24)}\n")  # a new one each time
    files = ["--home", str(folder), "--key-file", str(key), "--ready-file", str(folder / _READY)]
    return ["studio", "--fd", "0", *files, "--pace", pace, "--environment", STUDIO], {}


def _address(shared: Shared) -> str:
    """Return its address once it has said where it answers. Raises Refusal if it does not."""
    until = time.monotonic() + _STARTUP
    while shared.is_alive() and time.monotonic() < until:
        with contextlib.suppress(FileNotFoundError):
            return str(json.loads((shared.folder / _READY).read_text())["base_url"])
        time.sleep(0.05)
    message = f"The embedded studio does not answer; its log is {shared.folder / 'server.log'}."
    raise Refusal("studio", message, f"Set {PREFIX}STUDIO_URL to a service.")
