"""A certificate for servers on loopback, made by openssl, and the context that serves it."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def authority_and_server(directory: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate for 127.0.0.1 that is its own authority, for one day."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "1"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={name}"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context
