"""The network under the client: odd answers, stale connections, names not found, certificates, 1 % of faults."""

import asyncio
import contextlib
import datetime
import gzip
import ipaddress
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from patternmill.errors import Refusal
from patternmill.service.answers import Accepted, Held, Refused, Stop
from patternmill.service.client import Client
from patternmill.states import Outcome
from tests.test_client import BODY, INTENDED, JOB, KEY, nobody, refuse, settings
from tests.test_runs import double, row, run, sheet  # noqa: F401

ROOT = Path(__file__).parent.parent
READY = json.dumps(JOB).encode()


def raw(status, body, headers=""):
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


KEPT = raw(200, READY, "connection: keep-alive\r\n")
TOO_LONG = raw(400, b'{"error": "prompt is too long"}')
CLOSED = None


class Connections:
    """A server that has a script for each connection: its answers in turn, then it closes; CLOSED: it resets."""

    def __init__(self, *scripts, context=None):
        self.scripts, self.context = list(scripts), context
        self.heads, self.bodies, self.begun = [], [], 0

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.context)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()
        await asyncio.sleep(0.05)

    def client(self, host="127.0.0.1", **more):
        scheme = "https" if self.context else "http"
        return Client(settings(studio_url=f"{scheme}://{host}:{self.port}/v1", **more))

    async def _serve(self, reader, writer):
        self.begun += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            for answer in self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.bodies.append(json.loads(await reader.readexactly(length)))
                self.heads.append(head)
                if answer is CLOSED:
                    writer.transport.abort()
                writer.write(answer or b"")
                await writer.drain()
        writer.close()


async def created(client):
    return await client.create(INTENDED, in_doubt=False, is_other=nobody)


def on_the_wire(*scripts, work=created, host="127.0.0.1", context=None, **more):
    """Return what some work with a client of such a server comes to, and the bodies that the server got."""

    async def main():
        async with Connections(*scripts, context=context) as server, server.client(host, **more) as client:
            return await work(client), server.bodies

    return asyncio.run(main())


async def created_twice(client):
    first = await created(client)
    await asyncio.sleep(0.2)
    return first, await created(client)


def test_a_create_that_may_not_leave_gets_no_further_than_its_head():
    async def refused(client):
        client.confirm = refuse
        with pytest.raises(Refusal, match="Another run"):
            await created(client)

    assert not on_the_wire([raw(200, READY)], work=refused)[1]


@pytest.mark.parametrize(
    "answer",
    [
        raw(200, READY), KEPT, raw(200, READY, f"Content-Security-Policy: {'x' * 20_000}\r\n"),
        raw(200, gzip.compress(READY), "Content-Encoding: gzip\r\n"),
        raw(200, READY.replace(b"null", b'"Gr\xf6\xdfe"')), raw(200, json.dumps(JOB).encode("utf-16")),
        raw(200, b"\xef\xbb\xbf" + READY),
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(READY), READY),
    ],
)  # fmt: skip
def test_odd_answers_are_read(answer):
    assert on_the_wire([answer])[0] == Accepted("job_1")


@pytest.mark.parametrize(
    "answer",
    [
        CLOSED, b"", b"HTTP/1.1 200 X\r\nContent-Length: 999\r\n\r\n{", b"not HTTP at all\r\n\r\n",
        raw(200, gzip.compress(b"0" * (64 << 20)), "Content-Encoding: gzip\r\n"),
        raw(200, b"broken", "Content-Encoding: gzip\r\n"), raw(200, b"[" * (5 << 20)),
    ],
    ids=["reset", "closed", "cut short", "no HTTP", "bomb", "broken", "huge"],
)  # fmt: skip
def test_what_cannot_be_read_leaves_the_request_in_doubt(answer):
    decision, bodies = on_the_wire([answer], [TOO_LONG])
    assert isinstance(decision, Held) and decision.code == "refused_in_doubt" and len(bodies) == 2


def test_a_dripping_answer_ends_at_the_deadline():
    drip = b"HTTP/1.1 200 X\r\nContent-Length: 99\r\nconnection: keep-alive\r\n\r\n{"
    assert on_the_wire([drip, KEPT], [KEPT], request_timeout=0.3)[0] == Accepted("job_1")


def test_a_redirect_to_elsewhere_never_gets_the_key(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # and loopback is reached without the proxy

    async def main():
        async with Connections([KEPT]) as other:
            away = raw(307, b"", f"Location: http://127.0.0.1:{other.port}/v1/patterns/create\r\n")
            async with Connections([away]) as server, server.client() as client:
                return await created(client), server.heads, other.begun

    decision, heads, elsewhere = asyncio.run(main())
    assert isinstance(decision, Stop) and decision.code == "wrong_address" and not elsewhere
    assert f"Authorization: Bearer {KEY}".encode() in heads[0] and b"User-Agent: patternmill/" in heads[0]


@pytest.mark.parametrize(
    ("then", "kind"), [(KEPT, Accepted), (TOO_LONG, Held)], ids=["sent again", "and then refused"]
)
def test_a_kept_connection_that_closes_as_the_next_request_arrives_leaves_it_in_doubt(then, kind):
    (first, second), bodies = on_the_wire([KEPT, CLOSED], [then], work=created_twice)
    assert first == Accepted("job_1")
    assert isinstance(second, kind)
    assert getattr(second, "code", "") in ("", "refused_in_doubt")
    assert bodies == [BODY] * 3


def test_a_kept_connection_that_was_closed_meanwhile_is_not_used():
    (_, decision), bodies = on_the_wire([KEPT], [TOO_LONG], work=created_twice)
    assert isinstance(decision, Refused), "it was never sent on the closed connection, so nothing is in doubt"
    assert len(bodies) == 2


def test_a_name_that_is_not_found_at_the_start_is_a_wrong_address(double, monkeypatch):  # noqa: F811
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://nowhere.invalid/v1")
    sheet(row(1))
    end = run()
    assert (end.outcome, end.summary.causes[0].code) == (Outcome.REFUSED, "unusable_address")
    assert "its name is not found" in end.message
    assert not Path("results").exists()


def test_a_name_that_is_not_found_in_mid_run_is_waited_for_and_leaves_nothing_in_doubt(monkeypatch):
    found, left = socket.getaddrinfo, [True, False, False]

    def resolve(host, *more, **about):
        if host == "studio.test" and left and not left.pop(0):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found("127.0.0.1" if host == "studio.test" else host, *more, **about)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: time.monotonic() * 100)  # its cache of names

    scripts = [raw(200, READY)], [TOO_LONG]
    (first, second), bodies = on_the_wire(*scripts, work=created_twice, host="studio.test")
    assert (first, left) == (Accepted("job_1"), [])
    assert isinstance(second, Refused)
    assert len(bodies) == 2


def certificate(folder, name, host, issuer=None, days=1):
    """Write a certificate with its key, by an issuer or by itself, and return both, and the file."""
    key, day = ec.generate_private_key(ec.SECP256R1()), datetime.timedelta(1)
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    of = x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    parent, signer = issuer or (None, key)
    built = x509.CertificateBuilder(
        parent.subject if parent else subject, subject, key.public_key(), x509.random_serial_number(), now - 3 * day,
        now + days * day,
    ).add_extension(x509.SubjectAlternativeName([of]), False).add_extension(
        x509.BasicConstraints(issuer is None, None), True
    ).sign(signer, hashes.SHA256())  # fmt: skip
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (path := folder / f"{name}.pem").write_bytes(
        built.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    )
    return (built, key), path


CERTIFICATES = [
    ("127.0.0.1", True, 1, True), ("other.example", True, 1, False), ("127.0.0.1", False, 1, False),
    ("127.0.0.1", True, -1, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("host", "by_authority", "days", "is_good"), CERTIFICATES, ids=["good", "other host", "self-signed", "expired"]
)  # fmt: skip
@pytest.mark.parametrize("works", [False, True], ids=["at the start", "in mid-run"])
def test_only_a_certificate_of_this_host_by_a_known_authority_is_accepted(
    tmp_path, monkeypatch, host, by_authority, days, is_good, works
):
    authority, known = certificate(tmp_path, "authority", "authority.example")
    _, served = certificate(tmp_path, "served", host, authority if by_authority else None, days)
    monkeypatch.setenv("SSL_CERT_FILE", str(known))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(served)

    def created_by(client):
        client._works = works
        return created(client)

    decision, bodies = on_the_wire([raw(200, READY)], work=created_by, context=context)
    if is_good:
        assert (decision, bodies) == (Accepted("job_1"), [BODY])
    else:
        assert isinstance(decision, Stop)
        assert "certificate" in decision.message
        assert bodies == []


STEADY = """
import asyncio, json, os, random, sys
from tests.simulation import clock, people
from pathlib import Path
from patternmill.pipeline import carry_out
from tests.double import Double, Line, Weather
from tests.double.audit import sheet_of
from tests.double.weather import FAULTS
from tests.simulation.play import _surroundings

folder, share = Path(sys.argv[1]), float(sys.argv[2])
double = Double(Weather(faults={fault: share / len(FAULTS) for fault in FAULTS}), "7", clock.now)
sheet = folder / "spring.csv"
sheet.write_text(sheet_of([Line(f"S-{number}", f"prompt {number}") for number in range(100)]))

async def story():
    going = clock.Process().start(carry_out(people.request("import", "spring", sheet, folder / "out")))
    return await going

with _surroundings(folder, double, random.Random(1)):
    clock.play("7", story)
operations = [event["operation"] for event in double.record if event["event"] == "request"]
rows = (folder / "out/results.jsonl").read_text().splitlines()
print(json.dumps({
    "creates": sum("create" in one for one in operations), "all": len(operations), "jobs": len(double.jobs),
    "faults": double.fired.total(), "ended": sum(json.loads(one)["status"] == "succeeded" for one in rows),
}))
"""


@pytest.mark.slow
def test_a_steady_1_percent_of_faults_costs_less_than_a_tenth_more_requests(tmp_path):
    """The least possible: one create and as many polls for each job as in fair weather."""

    def requests(share):
        (folder := tmp_path / str(share)).mkdir()
        played = subprocess.run(
            [sys.executable, "-c", STEADY, str(folder), str(share)], cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert played.returncode == 0, played.stderr
        return json.loads(played.stdout.splitlines()[-1])

    least, found = requests(0), requests(0.01)
    assert (least["creates"], least["jobs"], least["ended"]) == (200, 200, 100)
    assert found["jobs"] == 200
    assert found["ended"] >= 97  # the others are a person's: answers that name no job
    assert found["faults"] > 2
    assert found["creates"] < 1.1 * least["creates"]
    assert found["all"] < 1.1 * least["all"]
