"""The settings in annotations of Nodes: seed document of v1, "Virtual Router Attributes"."""

from __future__ import annotations

import pytest

from reconcilers.cilium.v1.annotations import (
    AnnotationError,
    RouterSettings,
    router_settings,
    unreadable_keys,
)

KEY = "cilium.io/bgp-virtual-router.65001"


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("router-id=127.0.0.1", RouterSettings("127.0.0.1")),
        ("local-port=45450", RouterSettings(None, 45450)),
        ("router-id=1.2.3.4,local-port=179", RouterSettings("1.2.3.4", 179)),
        (" local-port = 179 , router-id = 1.2.3.4 ", RouterSettings("1.2.3.4", 179)),
        ("router-id=1.1.1.1,router-id=2.2.2.2", RouterSettings("2.2.2.2")),
        ("local-port=0", RouterSettings()),
        ("", RouterSettings()),
        (",", RouterSettings()),
        (
            "color=red,router-id=1.1.1.1,word",
            RouterSettings("1.1.1.1", None, ("color=red", "word")),
        ),
        ("router-id", RouterSettings(ignored=("router-id",))),
    ],
)
def test_settings_of_a_virtual_router(text: str, settings: RouterSettings) -> None:
    assert router_settings({KEY: text}, 65001) == settings


def test_annotations_apply_to_their_own_virtual_router() -> None:
    assert router_settings({KEY: "local-port=179"}, 6500) == RouterSettings()


@pytest.mark.parametrize(
    "text",
    [
        "router-id=0.0.0.0",
        "router-id=",
        "router-id=fd00::1",
        "router-id=1.2.3.04",
        "router-id=1.2.3.4=5",
        "local-port=65536",
        "local-port=-1",
        "local-port=1_79",
        "local-port=",
        "local-port=999999999999999999999999",
    ],
)
def test_an_invalid_value_is_an_error_that_names_the_annotation(text: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        router_settings({KEY: text}, 65001)
    assert caught.value.key == KEY
    assert text.partition("=")[0] in caught.value.message


def test_annotation_keys_without_an_as_number_are_found() -> None:
    annotations = {
        KEY: "",
        "cilium.io/bgp-virtual-router": "",
        "cilium.io/bgp-virtual-router.": "",
        "cilium.io/bgp-virtual-router.as1": "",
        "cilium.io/other": "",
    }
    assert unreadable_keys(annotations) == [
        "cilium.io/bgp-virtual-router",
        "cilium.io/bgp-virtual-router.",
        "cilium.io/bgp-virtual-router.as1",
    ]
