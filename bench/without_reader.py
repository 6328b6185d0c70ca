"""A table received and lost by a core that no reader follows, in CPU seconds: `bench.bench_best_paths`.

Run by its path, so that it measures the checkout of ``PYTHONPATH``, also a checkout without streams of
best paths: ``python bench/without_reader.py TABLE``.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Final

from speaker.api import InstanceConfig, PeerConfig
from speaker.capability import FourOctetAs, Multiprotocol
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    Input,
    SendUpdates,
    SetInstance,
    SetPeer,
    TransportAccepted,
    TransportClosed,
)
from speaker.message import KEEPALIVE, Open
from speaker.nlri import IPV4_UNICAST

PIECE: Final = 32 * 1024
ASN: Final = 65001
PEER: Final = "10.0.1.1"


def main() -> None:
    """Print the CPU seconds of both."""
    table = Path(sys.argv[1]).read_bytes()
    engine = Engine(random.Random(1))  # noqa: S311  jitter

    def give(item: Input) -> None:
        engine.handle(item, 0.0)
        while engine.updates_pending:
            engine.handle(SendUpdates(), 0.0)

    give(SetInstance(InstanceConfig(name="i", local_asn=65000, router_id="10.0.0.1")))
    give(
        SetPeer("i", PeerConfig(name="p", address=PEER, peer_asn=ASN, passive=True, import_="all"))
    )
    give(TransportAccepted(1, "i", ("10.0.0.1", 179), (PEER, 4000)))
    capabilities = (Multiprotocol(IPV4_UNICAST), FourOctetAs(ASN))
    greeting = Open(asn=ASN, hold_time=90, router_id=1, capabilities=capabilities)
    give(BytesReceived(1, greeting.encode()))
    give(BytesReceived(1, KEEPALIVE))
    began = time.thread_time()
    for at in range(0, len(table), PIECE):
        give(BytesReceived(1, table[at : at + PIECE]))
    received = time.thread_time()
    give(TransportClosed(1, "gone"))
    print(received - began, time.thread_time() - received)


if __name__ == "__main__":
    main()
