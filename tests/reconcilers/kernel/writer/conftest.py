"""A namespace with two interfaces and neighbours on them, and a writer in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconcilers.kernel.writer.protocol_messages import NextHop
from tests.support.kernel_writer import WriterProcess, hop, index, writer_in
from tests.support.netns import DEVICE, Link, Namespace

OTHER = "other"


class Ground:
    """The namespace of the writer: two interfaces, with next hops on both."""

    def __init__(self, link: Link) -> None:
        self.side: Namespace = link.left
        self.far: Namespace = link.right
        self.side.batch(
            f"link add {OTHER} type veth peer name {OTHER} netns {link.right.name}",
            f"link set {OTHER} up",
            f"addr add 192.0.2.1/24 dev {DEVICE}",
            f"addr add 198.51.100.1/24 dev {OTHER}",
            f"addr add 2001:db8:a::1/64 dev {DEVICE} nodad",
            f"addr add 2001:db8:b::1/64 dev {OTHER} nodad",
        )
        self.far.batch(f"link set {OTHER} up")
        device, other = index(self.side, DEVICE), index(self.side, OTHER)
        self.device, self.other = device, other
        self.a: NextHop = hop("192.0.2.2", device)
        self.b: NextHop = hop("198.51.100.2", other)
        self.c: NextHop = hop("192.0.2.3", device)
        self.a6: NextHop = hop("2001:db8:a::2", device)
        self.b6: NextHop = hop("2001:db8:b::2", other)
        self.local6: NextHop = hop("fe80::2", device)


@pytest.fixture
def ground(link: Link) -> Ground:
    """A namespace with two interfaces."""
    return Ground(link)


@pytest.fixture(params=["auto", "never"], ids=["objects", "plain"])
def writer(request: pytest.FixtureRequest, ground: Ground) -> Iterator[WriterProcess]:
    """A writer, with the kernel's nexthop objects and without them."""
    with writer_in(ground.side, f"--nexthop-objects={request.param}") as running:
        yield running


@pytest.fixture
def object_writer(ground: Ground) -> Iterator[WriterProcess]:
    """A writer with the kernel's nexthop objects."""
    with writer_in(ground.side) as running:
        yield running
