"""Versions of the programs that a dialect relies on are held against the tested range."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from reconcilers.dialect import Companion
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.operator.tested_versions import Untested, untested_versions
from resources.kubernetes import StatusError

BOTH = frozenset({"metallb.io/v1beta1", "metallb.io/v1beta2", "apps/v1"})
(METALLB,) = MetalLBDialect.each(Companion)


class Api:
    """An API server with one Deployment."""

    def __init__(self, image: str = "", served: frozenset[str] = BOTH) -> None:
        container = {"name": "controller", "image": image}
        others = [{"name": "proxy", "image": "proxy:v9.9"}]
        spec = {"template": {"spec": {"containers": [*others, container]}}}
        self.deployments = [{"spec": spec}] if image else []
        self.served = served
        self.selectors: list[str] = []
        self.refuses = 0

    async def served_versions(self) -> frozenset[str]:
        if self.refuses:
            raise StatusError(self.refuses, "no")
        return self.served

    async def get(self, path: str, parameters: Sequence[tuple[str, str]]) -> dict[str, Any]:
        assert path == "/apis/apps/v1/deployments"
        if self.refuses:
            raise StatusError(self.refuses, "no")
        selector = dict(parameters)["labelSelector"]
        self.selectors.append(selector)
        return {"items": self.deployments if selector.startswith("app=") else []}


def found(api: Api, *companions: Any) -> list[Untested]:  # noqa: ANN401
    dialect: Any = type("Relying", (MetalLBDialect,), {"extensions": companions or (METALLB,)})
    client: Any = api
    return asyncio.run(untested_versions(client, [dialect]))


@pytest.mark.parametrize(
    "image",
    [
        "quay.io/metallb/controller:v0.14.9",
        "quay.io/metallb/controller:v0.16.1",
        "registry.example:5000/controller:0.15.2-rc1@sha256:abc",
        # Without a version nothing is known.
        "quay.io/metallb/controller:main",
        "registry.example:5000/metallb/controller",
        "quay.io/metallb/controller@sha256:abc",
        "",
    ],
)
def test_a_tested_version_and_an_unknown_one_are_no_reason(image: str) -> None:
    assert found(Api(image)) == []


@pytest.mark.parametrize("version", ["0.13.12", "0.17.0", "1.0.0"])
def test_another_version_is_named_with_the_range(version: str) -> None:
    api = Api(f"quay.io/metallb/controller:v{version}")
    (one,) = found(api)
    assert one == Untested(
        "metallb",
        f"MetalLB's controller is quay.io/metallb/controller:v{version}; tested are versions "
        "0.14 to 0.16",
    )
    assert len(api.selectors) == 2


def test_definitions_without_a_version_that_is_read_are_named() -> None:
    (one,) = found(Api(served=frozenset({"metallb.io/v1beta1"})))
    assert one.message == (
        "the API server serves bgppeers.metallb.io without version v1beta2, which the definitions of "
        "MetalLB's controller have"
    )
    # Without any definition there is nothing to compare.
    assert found(Api(served=frozenset({"apps/v1"}))) == []


@pytest.mark.parametrize("status", [403, 404])
def test_what_may_not_be_read_is_no_reason(status: int) -> None:
    api = Api("quay.io/metallb/controller:v0.1.0")
    api.refuses = status
    assert found(api) == []
