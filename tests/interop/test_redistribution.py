"""Routes that another program installs in the kernel, as a health checker does, at a router."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.test_kernel_routes import PORT, Lab, address, configuration, lab
from tests.support.netns import DEVICE
from tests.support.routers.base import IPV4
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

VIP = "192.0.2.10/32"
PREFIXES = [{"prefix": "192.0.2.0/24", "ge": 32}]
ROUTE = f"{VIP} dev {DEVICE} table 198 proto 248"
WITHDRAWN_WITHIN_SECONDS = 0.05
"""With the start of the router's own client, which reads the table."""
ATTEMPTS = 40
"""On a machine that is busy with something else."""


def advertised(found: Lab, *prefixes: str) -> None:
    (router,) = found.routers
    assert set(router.routes(IPV4)) == set(prefixes)


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_a_route_is_advertised_while_the_kernel_has_it(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with lab(kind, 1, tmp_path) as found:
        kernel = found.link.left
        kernel.batch(f"route add {ROUTE}", f"route add 192.0.2.11 dev {DEVICE} table 198")
        vips = configuration(1)
        vips["metadata"] |= {
            "name": "vips",
            "annotations": {
                "waggle.dev/redistribute": json.dumps(
                    [{"table": 198, "protocol": 248, "prefixes": PREFIXES}]
                )
            },
        }
        (neighbor,) = vips["spec"]["bgp"]["routers"][0]["neighbors"]
        neighbor["toAdvertise"] = {"allowed": {"mode": "all"}}
        assert neighbor["port"] == PORT
        found.agent.write_objects("vips.json", vips)
        eventually(lambda: advertised(found, VIP), context=found.logs)
        seconds = [math.inf]
        while min(seconds) > WITHDRAWN_WITHIN_SECONDS and len(seconds) <= ATTEMPTS:
            kernel.batch(f"route del {ROUTE}")
            began = time.monotonic()
            eventually(lambda: advertised(found), interval=0.005, context=found.logs)
            seconds.append(time.monotonic() - began)
            kernel.batch(f"route add {ROUTE}")
            eventually(lambda: advertised(found, VIP), context=found.logs)
        assert min(seconds) <= WITHDRAWN_WITHIN_SECONDS
        (item,) = found.agent.ask("/v1/explain", target=VIP, peer=address(0))
        assert (item["addressType"], item["reason"]) == ("KernelRoute", "Advertised")
