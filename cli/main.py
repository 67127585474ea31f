"""The command line: the verbs by trade, and what every command ends with."""

import importlib
import os
import sys
from typing import Any

import click

from patternmill.errors import Refusal

_VERBS = {
    "check": "making", "offer": "making", "import": "making", "refresh": "making", "retry": "making",
    "remake": "making",
    "status": "looking_up", "explain": "looking_up", "catalog": "looking_up", "results": "looking_up",
    "look": "look",
    "order": "ordering",
    "settle": "deciding", "pause": "deciding", "unpause": "deciding",
    "up": "serving", "studio": "serving",
}  # fmt: skip


class _Verbs(click.Group):
    """The verbs, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        module = importlib.import_module(f"cli.{_VERBS[cmd_name]}")
        found = getattr(module, cmd_name + "_" * (cmd_name == "import"))
        assert isinstance(found, click.Command)
        return found


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="patternmill", prog_name="patternmill")
def verbs() -> None:
    """Turn a sheet of prompts and category selections into products. Nothing is paid for twice.

    Exit codes: 0 done; 1 failed; 2 refused before anything was bought; 3 not all rows; 4 another run of the catalog
    goes on; 130 stopped.
    """


def run(arguments: list[str] | None = None) -> int:
    """Run a command, and return its exit code. An expected refusal is a sentence and a remedy, never a traceback."""
    try:
        ended: Any = verbs.main(arguments, prog_name="patternmill", standalone_mode=False)
        return ended if isinstance(ended, int) else 0
    except Refusal as refusal:
        click.echo(f"{refusal.message} {refusal.remedy}".rstrip() + f" [{refusal.code}]", err=True)
        return refusal.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def main() -> None:
    """Run the command of this process."""
    sys.exit(run())


if __name__ == "__main__":
    main()
