"""Certificates for TLS faults: valid for a client that trusts them, expired, or for another host."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
UNUSED = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")


@dataclass(frozen=True)
class Certificates:
    #: What a client is to trust (SSL_CERT_FILE), and what the service shows (certificate and key).
    authority: Path
    service: Path


def write_certificates(folder: Path, *, expired: bool = False, host: str = "127.0.0.1") -> Certificates:
    """Write a certificate that is its own authority, for the loopback address and a week unless told otherwise."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    its_host = x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    usage = dict.fromkeys((*UNUSED, "encipher_only", "decipher_only"), False)
    extensions = [
        x509.BasicConstraints(ca=True, path_length=None),
        # Python 3.13 verifies strictly: a certificate names its key, and what that is for.
        x509.KeyUsage(digital_signature=True, key_cert_sign=True, **usage),
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
        x509.SubjectAlternativeName([its_host]),
    ]
    builder = x509.CertificateBuilder(
        name,
        name,
        key.public_key(),
        x509.random_serial_number(),
        now - 30 * DAY,
        now - DAY if expired else now + 7 * DAY,
    )
    for extension in extensions:
        is_critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(extension, critical=is_critical)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificates(folder / "authority.pem", folder / "service.pem")
    made.authority.write_bytes(certificate)
    made.service.write_bytes(certificate + private)
    return made
