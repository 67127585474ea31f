"""Certificates for TLS faults: of the test's own authority, expired, or for another host."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    #: What a client is to trust (SSL_CERT_FILE), and what the service shows (certificate and key).
    authority: Path
    service: Path


def write_certificates(folder: Path, *, expired: bool = False, host: str = "127.0.0.1") -> Certificates:
    """A valid certificate for the loopback address, unless an invalid one is requested."""
    root_key = ec.generate_private_key(ec.SECP256R1())
    root = _certificate("test authority", root_key, "test authority", root_key, None, expired=False)
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = _certificate(host, key, "test authority", root_key, host, expired=expired)
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificates(folder / "authority.pem", folder / "service.pem")
    made.authority.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    made.service.write_bytes(leaf.public_bytes(serialization.Encoding.PEM) + private)
    return made


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    host: str | None,
    *,
    expired: bool,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    ends = now - datetime.timedelta(days=1) if expired else now + datetime.timedelta(days=7)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=30))
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        # Python 3.13 verifies strictly: a certificate names who signed it, and what its key is for.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
        .add_extension(_key_usage(signs_certificates=host is None), critical=True)
    )
    if host is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    unused = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(digital_signature=not signs_certificates, key_cert_sign=signs_certificates, **unused)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
