"""``waggle check``: objects without effect, and every problem of an object at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from waggle.__main__ import main

METALLB = "metallb-system"


def obj(
    kind: str, name: str, spec: object, namespace: str = METALLB, **more: object
) -> dict[str, object]:
    version = {"BGPPeer": "v1beta2"}.get(kind, "v1beta1")
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"metallb.io/{version}",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        **more,
    }


PEER = {"myASN": 65000, "peerASN": 65001, "peerAddress": "192.0.2.1"}
POOL = obj("IPAddressPool", "front", {"addresses": ["198.51.100.0/24"]})


def checked(
    path: Path, capsys: pytest.CaptureFixture[str], *objects: object
) -> tuple[int, list[str]]:
    """Check objects, or a path; returns the exit status and the lines."""
    if objects:
        path = path / "all.yaml"
        path.write_text(yaml.safe_dump_all(objects))
    status = main(["check", "-f", str(path)])
    return status, [
        line.replace(f" ({path}", " (") for line in capsys.readouterr().out.splitlines()
    ]


def test_an_object_of_another_namespace_than_the_dialects_has_no_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    router = {"asn": 65000, "neighbors": [{"asn": 65001, "address": "192.0.2.9"}]}
    configuration = {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "draft", "namespace": METALLB},
        "spec": {"bgp": {"routers": [router]}},
    }
    objects = (obj("BGPPeer", "tor", PEER, namespace=""), configuration)
    assert checked(tmp_path, capsys, *objects) == (
        1,
        [
            f"{name}: metadata.namespace: only {objects} in namespace {namespace} are used"
            for name, objects, namespace in (
                ("BGPPeer/default/tor", "objects of MetalLB", METALLB),
                (f"FRRConfiguration/{METALLB}/draft", "FRRConfigurations", "frr-k8s-system"),
            )
        ],
    )


def test_names_and_selectors_of_an_advertisement_that_select_nothing_are_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {
        "ipAddressPools": ["front", "frnt"],
        "ipAddressPoolSelectors": [{"matchLabels": {"zone": "a"}}],
        "peers": ["tor", "nopeer"],
    }
    objects = (obj("BGPPeer", "tor", PEER), POOL, obj("BGPAdvertisement", "all", spec))
    of = "BGPAdvertisement/metallb-system/all: spec."
    assert checked(tmp_path, capsys, *objects) == (
        1,
        [
            f"{of}ipAddressPoolSelectors[0]: selects no IPAddressPool",
            f"{of}ipAddressPools[1]: there is no IPAddressPool 'frnt'; did you mean front?",
            f"{of}peers[1]: there is no BGPPeer 'nopeer'",
        ],
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        ("metallb.io/v1beta1", "BgpAdvertisement", "metallb.io; did you mean BGPAdvertisement?"),
        ("metallb.io/v1beta1", "AddressPool", "metallb.io; did you mean IPAddressPool?"),
        ("metallb.io/v1beta1", "Whatever", "metallb.io"),
        (
            "frrk8s.metallb.io/v1beta1",
            "FRRConfig",
            "frrk8s.metallb.io; did you mean FRRConfiguration?",
        ),
        (
            "cilium.io/v2",
            "CiliumBgpClusterConfig",
            "cilium.io; did you mean CiliumBGPClusterConfig?",
        ),
        ("crd.antrea.io/v1alpha1", "BGPPolicies", "crd.antrea.io; did you mean BGPPolicy?"),
        ("v1", "service", "the core group; did you mean Service?"),
        ("v1", "Nodes", "the core group; did you mean Node?"),
    ],
)
def test_an_unknown_kind_of_a_known_group_is_a_problem(
    api_version: str, kind: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    status, lines = checked(tmp_path, capsys, value)
    assert (status, lines) == (1, [f"{kind}/x: kind: there is no {kind} in {message} (:2)"])


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("cilium.io/v2", "CiliumNetworkPolicy"),
        ("cilium.io/v2alpha1", "CiliumNodeConfig"),
        ("crd.antrea.io/v1beta1", "ClusterNetworkPolicy"),
        ("metallb.io/v1beta1", "ServiceL2Status"),
        ("metallb.io/v1beta1", "ConfigurationState"),
        ("frrk8s.metallb.io/v1beta1", "FRRNodeState"),
        ("v1", "ConfigMap"),
        ("apps/v1", "Deployment"),
    ],
)
def test_a_kind_of_another_program_is_none(
    api_version: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "y"}}
    assert checked(tmp_path, capsys, value) == (0, [])


def test_fields_and_objects_that_are_accepted_without_effect_are_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    neighbor = {"asn": 65001, "address": "192.0.2.9", "disableMP": True}
    configuration = {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "tor", "namespace": "frr-k8s-system"},
        "spec": {"bgp": {"routers": [{"asn": 65000, "neighbors": [neighbor]}]}},
    }
    layer_2 = obj("L2Advertisement", "arp", {"ipAddressPools": ["front"]})
    objects = (obj("BGPPeer", "tor", {**PEER, "disableMP": True}), POOL, layer_2, configuration)
    assert checked(tmp_path, capsys, *objects) == (
        1,
        [
            "BGPPeer/metallb-system/tor: spec.disableMP: has no effect",
            (
                "FRRConfiguration/frr-k8s-system/tor: "
                "spec.bgp.routers[0].neighbors[0].disableMP: has no effect"
            ),
            "L2Advertisement/metallb-system/arp: has no effect: addresses are advertised by BGP alone",
        ],
    )


def cilium(kind: str, name: str, spec: object, **labels: str) -> dict[str, object]:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "cilium.io/v2", "kind": kind, "metadata": metadata, "spec": spec}


ADVERTISEMENT = cilium(
    "CiliumBGPAdvertisement",
    "pods",
    {"advertisements": [{"advertisementType": "PodCIDR"}]},
    use="x",
)


def test_names_in_overrides_and_advertisements_of_cilium_that_nothing_has_are_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = {"name": "tor", "peerAddress": "192.0.2.1", "peerASN": 65010}
    instance = {"name": "main", "localASN": 65001}
    peers = [{**peer, "peerConfigRef": {"name": "tor"}}]
    selects = {"afi": "ipv4", "safi": "unicast", "advertisements": {"matchLabels": {"use": "bgp"}}}
    overrides = [
        {"name": "main", "peers": [{"name": "tor"}, {"name": "tro"}]},
        {"name": "mian", "peers": [{"name": "tor"}]},
    ]
    objects = (
        cilium("CiliumBGPClusterConfig", "all", {"bgpInstances": [{**instance, "peers": peers}]}),
        cilium("CiliumBGPPeerConfig", "tor", {"families": [selects]}),
        ADVERTISEMENT,
        cilium("CiliumBGPNodeConfigOverride", "n1", {"bgpInstances": overrides}),
    )
    of = "CiliumBGPNodeConfigOverride/n1: spec.bgpInstances"
    assert checked(tmp_path, capsys, *objects) == (
        1,
        [
            (
                "CiliumBGPAdvertisement/pods: metadata.labels: no CiliumBGPPeerConfig selects it: "
                "none of its routes is advertised"
            ),
            (
                f"{of}[0].peers[1].name: there is no peer 'tro' in a CiliumBGPClusterConfig; "
                "did you mean tor?"
            ),
            (
                f"{of}[1].name: there is no instance 'mian' in a CiliumBGPClusterConfig; "
                "did you mean main?"
            ),
        ],
    )


def test_objects_that_others_may_refer_to_elsewhere_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    override = {"bgpInstances": [{"name": "main", "routerID": "192.0.2.7"}]}
    objects = (ADVERTISEMENT, cilium("CiliumBGPNodeConfigOverride", "n1", override))
    assert checked(tmp_path, capsys, *objects) == (0, [])


def test_a_directory_without_a_manifest_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "objects.txt").write_text("kind: List")
    assert checked(tmp_path, capsys) == (
        1,
        ["there are no manifests: files with the suffix .yaml, .yml or .json ()"],
    )


def test_a_link_out_of_the_directory_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    for folder in (tree, outside):
        folder.mkdir()
    (outside / "a.yaml").write_text("")
    (outside / "README").write_text("")
    (tree / "own.yaml").write_text("")
    for name in ("a.yaml", "README", "."):
        (tree / f"{name.replace('.', 'l', 1)}").symlink_to(outside / name)
    (tree / "a.yaml").symlink_to(outside / "a.yaml")
    assert checked(tree, capsys) == (
        1,
        [f"is a link out of the directory, and not followed (/{name})" for name in ("a.yaml", "l")],
    )


def test_types_rules_and_references_of_one_object_are_reported_in_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {
        **PEER,
        "peerPort": 99999,
        "peerASN": "abc",
        "routerID": "x",
        "holdTime": "1s",
        "bfdProfile": "nope",
        "passwordSecret": {"name": "none"},
    }
    _, lines = checked(tmp_path, capsys, obj("BGPPeer", "tor", spec))
    assert [line.split(": ")[1] for line in lines] == [
        "spec.bfdProfile",
        "spec.holdTime",
        "spec.passwordSecret",
        "spec.peerASN",
        "spec.peerPort",
        "spec.routerID",
    ]


def test_also_of_a_kind_whose_invalid_objects_are_not_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = {
        "name": "tor",
        "peerAddress": "192.0.2.1",
        "peerASN": 5,
        "peerConfigRef": {"name": "nope"},
    }
    instance = {"name": "main", "localASN": "x", "localPort": 70000, "peers": [peer]}
    value = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPClusterConfig",
        "metadata": {"name": "all"},
        "spec": {"bgpInstances": [instance]},
    }
    _, lines = checked(tmp_path, capsys, value)
    text = "\n".join(lines)
    for part in ("localASN: expected an integer", "localPort", "nope"):
        assert part in text, text


def test_wrong_fields_have_no_second_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without its interface the object would lack an end, and with the default AS number it is internal.
    spec = {"myASN": 65000, "interface": 5, "peerASN": -1, "ebgpMultiHop": True}
    _, lines = checked(tmp_path, capsys, obj("BGPPeer", "tor", spec))
    assert [line.split(": ")[1] for line in lines] == ["spec.interface", "spec.peerASN"]
