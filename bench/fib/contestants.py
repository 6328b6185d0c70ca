"""The routers that are compared, and BIRD, which feeds them."""

from __future__ import annotations

import ipaddress
import json
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.support.daemon import Daemon
from tests.support.netns import Namespace
from tests.support.routers.bird import program
from tests.support.wait import NotReadyError

PORT: Final = 1790
OURS = {4: "10.99.0.1", 6: "fd00:99::1"}
FEEDERS = tuple({4: f"10.99.0.{n}", 6: f"fd00:99::{n}"} for n in (11, 12, 13))
"""The second one announces the same routes with ``--ecmp``, the third one a route with ``--change``."""
LISTENER: Final = "10.99.0.14"
"""The peer that is advertised all routes, with ``--pass-on``."""
SINGLE: Final = {4: ("198.18.0.0/24", "198.18.0.1"), 6: ("2001:db8:ffff::/48", "2001:db8:ffff::1")}
"""The route of the third one, and a host."""
OUR_AS, FEEDER_AS, LISTENER_AS = 64710, 64701, 64702
FIRST: Final = {4: 0x14000000, 6: 0x20010DB8 << 96}
"""The first network: consecutive /24 from 20.0.0.0, /48 from 2001:db8::."""
FRR: Final = Path("/usr/lib/frr")


class Contestant(ABC):
    """A router that installs what it receives."""

    name: str
    installs = True
    """Whether the routes come into the kernel."""
    load: Sequence[str] = ()
    """A program in its namespace that writes the routes into the kernel, once its input ends."""

    def __init__(self, namespace: Namespace, directory: Path, family: int) -> None:
        self.namespace = namespace
        self.directory = directory
        self.family = family
        directory.mkdir()

    @abstractmethod
    def daemons(self) -> list[Daemon]:
        """Return its processes, in the order of their start; writes their configuration."""

    def run(self, command: list[str | Path], name: str) -> Daemon:
        """Return a process of it."""
        return Daemon(name, command, log=self.directory / f"{name}.log", namespace=self.namespace)


class Waggle(Contestant):
    """An agent with an FRRConfiguration."""

    name = "waggle"

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        manifests = self.directory / "manifests"
        manifests.mkdir()
        neighbors = [
            {
                "address": feeder[self.family],
                "asn": FEEDER_AS,
                "port": PORT,
                "toReceive": {"allowed": {"mode": "all"}},
            }
            for feeder in FEEDERS
        ]
        router = {"asn": OUR_AS, "id": OURS[4], "neighbors": neighbors}
        configuration = {
            "apiVersion": "frrk8s.metallb.io/v1beta1",
            "kind": "FRRConfiguration",
            "metadata": {"name": "bench", "namespace": "frr-k8s-system"},
            "spec": {"bgp": {"routers": [router]}},
        }
        (manifests / "configuration.json").write_text(json.dumps(configuration))
        command: list[str | Path] = [
            *(sys.executable, "-m", "waggle_agent", "--node-name", "bench"),
            *("--manifests", manifests, "--api-socket", self.directory / "api"),
            *("--enable-cell", "frrk8s", "--disable-cell", "cilium"),
        ]
        return [self.run(command, "waggle-agent")]


class Router(Contestant):
    """``waggle router``, over IPv4, which passes all routes on to the listener."""

    name = "router"
    kernel = True
    """Whether it installs them itself."""

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        common = {"port": PORT, "connectRetryTime": 1}
        neighbors = [
            {"address": feeder[4], "asn": FEEDER_AS, "import": "all", **common}
            for feeder in FEEDERS
        ]
        neighbors.append({"address": LISTENER, "asn": LISTENER_AS, "export": "all", **common})
        document = {
            "asn": OUR_AS,
            "routerID": OURS[4],
            "kernel": self.kernel,
            "apiSocket": str(self.directory / "api"),
            "neighbors": neighbors,
        }
        file = self.directory / "router.yaml"
        file.write_text(json.dumps(document))
        return [self.run([sys.executable, "-m", "waggle", "router", "-c", file], self.name)]


class RouterWithout(Router):
    """The same without routes in the kernel."""

    name = "without"
    kernel = installs = False


class Beside(RouterWithout):
    """The same beside another program that installs the routes: the floor of passing a change on."""

    name = "beside"
    installs = True
    load = (sys.executable, "-m", "bench.route_load")


class Bird(Contestant):
    """BIRD with its kernel protocol."""

    name = "bird"

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        return [_bird(self, OURS[4], _bird_peers(self.family), kernel=True)]


class Frr(Contestant):
    """bgpd and zebra."""

    name = "frr"

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        directory, words = self.directory, f"ipv{self.family} unicast"
        neighbors = [f"neighbor {feeder[self.family]}" for feeder in FEEDERS]
        sessions = "".join(
            f" {neighbor} remote-as {FEEDER_AS}\n {neighbor} port {PORT}\n"
            f" {neighbor} timers connect 1\n"
            for neighbor in neighbors
        )
        activated = "".join(f"  {neighbor} activate\n" for neighbor in neighbors)
        (directory / "zebra.conf").touch()
        (directory / "group").write_text("root:x:0:\nfrrvty:x:999:root\n")
        (directory / "bgpd.conf").write_text(
            f"router bgp {OUR_AS}\n bgp router-id {OURS[4]}\n no bgp ebgp-requires-policy\n"
            f" no bgp default ipv4-unicast\n{sessions}"
            f" address-family {words}\n{activated} exit-address-family\n"
        )
        common: list[str | Path] = [
            *("-z", directory / "zserv", "--vty_socket", directory),
            *("-A", "127.0.0.1", "-P", "0", "-u", "root", "-g", "root", "--log", "stdout"),
        ]
        # It insists on a user of its own group, which root need not be in.
        grouped = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"']
        zebra: list[str | Path] = [*grouped, directory / "group", FRR / "zebra", *common]
        zebra += ["-f", directory / "zebra.conf", "-i", directory / "zebra.pid"]
        bgpd: list[str | Path] = [FRR / "bgpd", *common, "-S", "-p", str(PORT)]
        bgpd += ["-l", OURS[self.family], "-f", directory / "bgpd.conf"]
        bgpd += ["-i", directory / "bgpd.pid"]
        return [self.run(zebra, "zebra"), self.run(bgpd, "bgpd")]


class Least(Contestant):
    """The least program that does it, over IPv4: the floor."""

    name = "least"
    options: Sequence[str] = ()

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        neighbors = [feeder[4] for feeder in FEEDERS]
        command: list[str | Path] = [sys.executable, "-m", "bench.least_router", *self.options]
        return [self.run([*command, str(OUR_AS), OURS[4], str(PORT), *neighbors], self.name)]


class LeastOfTwo(Least):
    """The same in two processes: one speaks BGP, and the other one writes into the kernel."""

    name = "least2"
    options = ("--writer",)


class Feeder(Contestant):
    """BIRD with a table, whose session begins and ends when it is asked."""

    name = "feeder"

    def __init__(
        self,
        namespace: Namespace,
        directory: Path,
        family: int,
        count: int,
        addresses: Mapping[int, str],
    ) -> None:
        super().__init__(namespace, directory, family)
        self.count = count
        self._addresses = addresses

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        length, step = (24, 1 << 8) if self.family == 4 else (48, 1 << 80)
        networks = (FIRST[self.family] + n * step for n in range(self.count))
        routes = "".join(
            f"route {ipaddress.ip_address(network)}/{length} blackhole;\n" for network in networks
        )
        static = f"protocol static {{ ipv{self.family}; {routes} }}\n"
        single = f"route {SINGLE[self.family][0]} blackhole;"
        if not self.count:
            static = f"protocol static single {{ disabled; ipv{self.family}; {single} }}\n"
        peer = (
            f"protocol bgp feed {{ local {self._addresses[self.family]} port {PORT} as {FEEDER_AS};\n"
            f"neighbor {OURS[self.family]} port {PORT} as {OUR_AS};\n"
            f"passive on; {'disabled;' if self.count else ''} strict bind on;\n"
            f"connect retry time 1; error wait time 1, 1;\n"
            f"ipv{self.family} {{ import none; export all; next hop self; }}; }}\n"
        )
        return [_bird(self, self._addresses[4], static + peer, kernel=False)]

    def ask(self, text: str) -> str:
        """Send a command of birdc."""
        try:
            with socket.socket(socket.AF_UNIX) as control:
                control.settimeout(10)
                control.connect(str(self.directory / "control"))
                control.recv(4096)
                control.sendall(f"{text}\n".encode())
                return control.recv(1 << 16).decode()
        except OSError as error:
            raise NotReadyError(str(error)) from error


def _bird(owner: Contestant, router_id: str, text: str, *, kernel: bool) -> Daemon:
    lines = f'router id {router_id};\nlog "{owner.directory / "bird.log"}" all;\n'
    lines += "protocol device { scan time 1; }\nprotocol direct { ipv4; ipv6; }\n"
    if kernel:
        channel = f"ipv{owner.family} {{ import none; export all; }}"
        lines += f"protocol kernel {{ merge paths on; {channel}; }}\n"
    (owner.directory / "bird.conf").write_text(lines + text)
    files = ("-c", owner.directory / "bird.conf", "-s", owner.directory / "control")
    command: list[str | Path] = [program() or "bird", "-f", *files]
    return owner.run([*command, "-P", owner.directory / "pid"], owner.name)


def _bird_peers(family: int) -> str:
    return "".join(
        f"protocol bgp {{ local {OURS[family]} port {PORT} as {OUR_AS};\n"
        f"neighbor {feeder[family]} port {PORT} as {FEEDER_AS};\n"
        "connect retry time 1; connect delay time 1; error wait time 1, 1;\n"
        f"ipv{family} {{ import all; export none; }}; }}\n"
        for feeder in FEEDERS
    )
