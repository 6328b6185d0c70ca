"""FRR's bgpd without zebra, with ``coalesce-time 1`` instead of its second and more of waiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.speed.daemons.base import Contender
from tests.support.routers.frr import PROGRAM
from tests.support.routers.frr import Frr as Driver


class Frr(Contender):
    """A ``bgpd``."""

    name = "frr"
    switches = ("vtysock",)

    @classmethod
    def missing(cls) -> str | None:
        return Driver.missing()

    @classmethod
    def version(cls) -> str:
        return Driver.version()

    def command(self) -> Sequence[str | Path]:
        return [
            PROGRAM,
            "-Z", "-S",
            "-l", self.setting.address,
            "-p", "179",
            "-f", self.directory / "bgpd.conf",
            "-i", self.directory / "pid",
            "--vty_socket", self.directory,
            "-A", "127.0.0.1", "-P", "0",
            "-u", "root", "-g", "root",
            "--log", "stdout",
        ]  # fmt: skip

    def configuration(self) -> Mapping[str, str]:
        return {"bgpd.conf": "\n".join(self._lines()) + "\n"}

    def _lines(self) -> Iterator[str]:
        setting = self.setting
        yield from (
            "ip prefix-list nothing deny any",
            f"router bgp {setting.asn}",
            f" bgp router-id {setting.address}",
            " no bgp ebgp-requires-policy",
            " no bgp network import-check",
            " no bgp default ipv4-unicast",
            " coalesce-time 1",
        )
        for neighbor in setting.neighbors:
            yield from (
                f" neighbor {neighbor.address} remote-as {neighbor.asn}",
                f" neighbor {neighbor.address} passive",
                f" neighbor {neighbor.address} timers {setting.hold_time // 3} {setting.hold_time}",
                f" neighbor {neighbor.address} advertisement-interval 0",
                # Without zebra it knows no interfaces, so nothing is connected.
                f" neighbor {neighbor.address} disable-connected-check",
            )
        yield " address-family ipv4 unicast"
        for neighbor in setting.neighbors:
            yield f"  neighbor {neighbor.address} activate"
            yield f"  neighbor {neighbor.address} next-hop-self"
            if not neighbor.export:
                yield f"  neighbor {neighbor.address} prefix-list nothing out"
        for prefix in setting.originate:
            yield f"  network {prefix}"
        yield " exit-address-family"

    def ready(self) -> bool:
        return self._listens() and (self.directory / "bgpd.vty").exists()

    def switch(self, way: str, *, announce: bool) -> None:
        driver = Driver.__new__(Driver)
        driver.directory = self.directory
        driver.ask(
            "configure terminal",
            f"router bgp {self.setting.asn}",
            "address-family ipv4 unicast",
            f"{'' if announce else 'no '}network {self.setting.switched}",
        )
