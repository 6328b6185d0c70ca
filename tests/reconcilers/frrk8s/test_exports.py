"""The attributes of what an object advertises."""

from tests.reconcilers.frrk8s.build import merge, neighbor, router, unit


def test_every_route_has_the_med_of_a_network_statement_of_frr() -> None:
    prefixes = ["10.1.0.0/16", "10.2.0.0/16"]
    advertise = {
        "allowed": {"mode": "all"},
        "withCommunity": [{"community": "65001:1", "prefixes": prefixes[:1]}],
    }
    (found,) = (
        merge([unit("a", router(neighbor(toAdvertise=advertise), prefixes=prefixes))]).routers or ()
    )
    ((_, routes),) = found.neighbors[0].exports
    assert [attributes.med for attributes in routes.values()] == [0, 0]
