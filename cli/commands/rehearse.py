"""The verb `rehearse`: a file against the embedded studio, with faults and kills, before it costs anything."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.run_options import checked_request, named_options
from cli.terminal import echo, echo_lines, write_output
from patternmill.runs.request import ImportRequest
from patternmill.states import EXIT_CODES, Outcome

if TYPE_CHECKING:
    from patternmill.results.certificate import Certificate

_KILLS = 6


@click.command("rehearse")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--kills",
    type=click.IntRange(0, 500),
    default=_KILLS,
    help=f"Kill the import so often (default: {_KILLS}).",
)
@click.option(
    "--rows", type=click.IntRange(1), help="Rehearse so many rows, drawn from a large file (default: all)."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Draw faults, kills and rows as an earlier rehearsal did.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(),
    help="The certificate's folder (default: this one).",
)
@click.option("--environment", help="staging, production, ...: whose settings and past jobs count.")
@click.option("--catalog", help="The catalog that the rows belong to (default: named after the file).")
@named_options(ImportRequest, "encoding", "worksheet", "mapping")
@click.option(
    "--max-in-flight",
    type=click.IntRange(1),
    metavar="N",
    help="The most jobs in flight at once, as for `import`.",
)
@click.option(
    "--attempts", type=click.IntRange(1), metavar="N", help="How often to try an item, as for `import`."
)
def command(kills: int, rows: int | None, seed: int | None, out: Path, **asked: Any) -> int:
    """Import FILE for trial, with faults and kills, and write a certificate; spends nothing.

    The rows go to an embedded studio of its own that loses answers, refuses, fails jobs and is killed, while the
    importing process is killed as well and started again. Settings as for `import` (jobs in flight, attempts, prices);
    your service, key, ledger and results are left alone. The certificate, rehearsal.html and rehearsal.json, says
    what was bought twice and lost by the studio's own record, and what the real import is expected to take.

    \b
    Examples:
      patternmill rehearse spring.csv
      patternmill rehearse large.csv --rows 500 --kills 20 --out rehearsals

    Exit codes: 0 the certificate is clean; 1 it is not; 2 the file or a setting is wrong; 130 interrupted.
    """
    from cli.file_rehearsal import FileRehearsal
    from patternmill.results.certificate import CERTIFICATE_PAGE
    from patternmill.runs.corrected_input import notes_of, read_corrections
    from patternmill.runs.input_mapping import read_input
    from patternmill.runs.spec import import_spec

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    spec = import_spec(checked_request(ImportRequest, asked))
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    file, overlay = read_corrections(spec, read_input(spec))
    echo_lines(notes_of(overlay))
    certificate = FileRehearsal(spec, file, kills=kills, rows=rows, seed=seed, report=echo).run()
    echo_lines(ending_lines(certificate))
    # Last: what came of it is seen where it cannot be written, too.
    write_certificate(certificate, out)
    echo(f"Certificate: {out / CERTIFICATE_PAGE}")
    return EXIT_CODES[Outcome.COMPLETED if certificate.is_clean else Outcome.FAILED]


def ending_lines(certificate: Certificate) -> Iterator[str]:
    from patternmill.text import counted, plural

    kills, bought = certificate.kills, certificate.bought
    yield (
        f"{'Clean' if certificate.is_clean else 'Not clean'}: bought twice {certificate.bought_twice:,}, "
        f"lost {certificate.lost:,}; {plural(len(kills.imports), 'kill')} of the import, "
        f"{len(kills.studio):,} of the studio, {plural(sum(one.fired for one in certificate.faults), 'fault')}."
    )
    yield from (f"  {finding}" for finding in certificate.findings)
    yield f"Rows: {counted(certificate.rows)}; {plural(sum(bought.items.values()), 'request')} paid for."
    if certificate.forecast is not None:
        yield f"The real import: {certificate.forecast.text}."


def write_certificate(certificate: Certificate, out: Path) -> None:
    """Raises ConfigurationError when the folder cannot be written."""
    from patternmill.results import certificate as of_rehearsal

    write_output(out / of_rehearsal.CERTIFICATE_JSON, [of_rehearsal.certificate_json(certificate)])
    write_output(out / of_rehearsal.CERTIFICATE_PAGE, [of_rehearsal.certificate_page(certificate)])
