"""RouteAdvertisements: which networks are advertised to the neighbours of which FRRConfigurations.

The limits and rules are from ``k8s.ovn.org/v1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from resources.crds.schema_markers import ATOMIC_LIST, Rule, SchemaPart, doc
from resources.errors import FieldError
from resources.label_selectors import LabelSelector, strict_selector_errors
from resources.meta import Resource, Struct
from resources.metav1 import Conditions
from resources.ovnk.managed_fields import ManagedMeta

Advertisement: TypeAlias = Literal["PodNetwork", "EgressIP"]
SelectionType: TypeAlias = Literal[
    "DefaultNetwork",
    "ClusterUserDefinedNetworks",
    "PrimaryUserDefinedNetworks",
    "SecondaryUserDefinedNetworks",
    "NetworkAttachmentDefinitions",
]
_OF_ALL_NODES: Final = "has to be empty: a pod network needs to be advertised on all nodes"
AUTO: Final = "auto"
"""The target VRF of which each network is advertised in its own VRF."""
_BY_SELECTION: SchemaPart = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["networkSelectionType"],
}
_BLOCKS: Final = {
    "ClusterUserDefinedNetworks": "clusterUserDefinedNetworkSelector",
    "PrimaryUserDefinedNetworks": "primaryUserDefinedNetworkSelector",
    "SecondaryUserDefinedNetworks": "secondaryUserDefinedNetworkSelector",
    "NetworkAttachmentDefinitions": "networkAttachmentDefinitionSelector",
}
"""The field that each selection type requires, and no other type may have."""


def _block_rule(selection: str, field: str) -> Rule:
    cel = f"self.networkSelectionType == '{selection}' ? has(self.{field}) : !has(self.{field})"
    return Rule(cel, f"is required with networkSelectionType {selection}, and with no other", field)


class ClusterNetworkSelector(Struct, frozen=True):
    """Selects ClusterUserDefinedNetworks by their labels."""

    network_selector: Annotated[
        LabelSelector, doc("The labels of the networks; empty selects all of them.")
    ]


class NamespacedNetworkSelector(Struct, frozen=True):
    """Selects networks of namespaces; RouteAdvertisements do not accept it."""

    namespace_selector: Annotated[LabelSelector, doc("The labels of the namespaces.")]
    network_selector: Annotated[LabelSelector, doc("The labels of the networks.")] = msgspec.field(
        default_factory=LabelSelector
    )


class NetworkSelector(Struct, frozen=True):
    """Selects networks of one type."""

    cel: ClassVar[tuple[Rule, ...]] = tuple(_block_rule(*item) for item in _BLOCKS.items())
    network_selection_type: Annotated[
        SelectionType,
        doc("The type of the networks: DefaultNetwork or ClusterUserDefinedNetworks."),
    ]
    cluster_user_defined_network_selector: Annotated[
        ClusterNetworkSelector | None, doc("The ClusterUserDefinedNetworks, by their labels.")
    ] = None
    primary_user_defined_network_selector: Annotated[
        NamespacedNetworkSelector | None, doc("Not accepted in RouteAdvertisements.")
    ] = None
    secondary_user_defined_network_selector: Annotated[
        NamespacedNetworkSelector | None, doc("Not accepted in RouteAdvertisements.")
    ] = None
    network_attachment_definition_selector: Annotated[
        NamespacedNetworkSelector | None, doc("Not accepted in RouteAdvertisements.")
    ] = None


class RouteAdvertisementsSpec(Struct, frozen=True):
    """The specification."""

    cel: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(!has(self.nodeSelector.matchLabels) && !has(self.nodeSelector.matchExpressions))"
            " || !('PodNetwork' in self.advertisements)",
            _OF_ALL_NODES,
            "nodeSelector",
        ),
        Rule(
            "!self.networkSelectors.exists(i, i.networkSelectionType != 'DefaultNetwork'"
            " && i.networkSelectionType != 'ClusterUserDefinedNetworks')",
            "only DefaultNetwork and ClusterUserDefinedNetworks can be advertised",
            "networkSelectors",
        ),
        Rule(
            "self.advertisements.all(x, self.advertisements.exists_one(y, x == y))",
            "has an element twice",
            "advertisements",
        ),
    )
    network_selectors: Annotated[
        tuple[NetworkSelector, ...],
        Meta(min_length=1, max_length=5),
        doc("The networks that are advertised.", _BY_SELECTION),
    ]
    node_selector: Annotated[
        LabelSelector, doc("The nodes that advertise; all of them where pods are advertised.")
    ]
    frr_configuration_selector: Annotated[
        LabelSelector, doc("The FRRConfigurations whose neighbours are advertised to.")
    ]
    advertisements: Annotated[
        tuple[Advertisement, ...],
        Meta(min_length=1, max_length=2),
        doc("What is advertised: PodNetwork, EgressIP, or both.", ATOMIC_LIST),
    ]
    target_vrf: Annotated[
        str,
        doc(
            "The VRF of the routers that advertise: empty or default is the default one, auto that of "
            "each network."
        ),
    ] = msgspec.field(name="targetVRF", default="")


class RouteAdvertisementsStatus(Struct, frozen=True):
    """The status."""

    status: Annotated[str, doc("Accepted, or Not Accepted with the reason.")] = ""
    conditions: Conditions = ()


NO_SPEC: Final = RouteAdvertisementsSpec(
    network_selectors=(),
    node_selector=LabelSelector(),
    frr_configuration_selector=LabelSelector(),
    advertisements=(),
)
"""Of an object that breaks rules: nothing of it is used."""


class RouteAdvertisements(Resource, frozen=True):
    """Selects the routes of networks that are advertised."""

    metadata: ManagedMeta
    spec: Annotated[RouteAdvertisementsSpec, doc("The networks, the nodes and the neighbours.")]

    invalid: tuple[FieldError, ...] = ()
    """Not a field of the API: the rules that the object breaks. Nothing of it is used, and what was
    generated for it stays."""

    @property
    def broken_rules(self) -> tuple[FieldError, ...]:
        """The rules that the RouteAdvertisements object breaks."""
        return self.invalid


def route_advertisements_errors(row: RouteAdvertisements) -> Iterator[FieldError]:
    """Yield the rules that RouteAdvertisements break, and a schema cannot express."""
    spec = row.spec
    yield from strict_selector_errors(spec.node_selector, "spec.nodeSelector")
    selector = spec.frr_configuration_selector
    yield from strict_selector_errors(selector, "spec.frrConfigurationSelector")
    if len(set(spec.advertisements)) < len(spec.advertisements):
        yield FieldError("spec.advertisements", "has an element twice")
    nodes = spec.node_selector
    if "PodNetwork" in spec.advertisements and (nodes.match_labels or nodes.match_expressions):
        yield FieldError("spec.nodeSelector", _OF_ALL_NODES)
    types: set[str] = set()
    for i, entry in enumerate(spec.network_selectors):
        yield from _selector_errors(entry, f"spec.networkSelectors[{i}]", types)


def empty_selector_errors(value: Any) -> Iterator[FieldError]:  # noqa: ANN401  JSON
    """Yield what an API server rejects in a node selector that selects every node.

    Its rule asks whether the fields are there, and they are with nothing in them, too.
    """
    spec = value["spec"] if isinstance(value, dict) else {}
    fields = [spec.get("nodeSelector", {}).get(key) for key in ("matchLabels", "matchExpressions")]
    there = [field for field in fields if field is not None]
    if "PodNetwork" in spec.get("advertisements", ()) and there and not any(there):
        yield FieldError("spec.nodeSelector", _OF_ALL_NODES)


def _selector_errors(selector: NetworkSelector, path: str, types: set[str]) -> Iterator[FieldError]:
    kind = selector.network_selection_type
    if kind in types:
        yield FieldError(f"{path}.networkSelectionType", f"{kind} is listed twice")
    types.add(kind)
    if kind not in ("DefaultNetwork", "ClusterUserDefinedNetworks"):
        text = f"{kind}: only DefaultNetwork and ClusterUserDefinedNetworks can be advertised"
        yield FieldError(f"{path}.networkSelectionType", text)
    blocks = (
        selector.cluster_user_defined_network_selector,
        selector.primary_user_defined_network_selector,
        selector.secondary_user_defined_network_selector,
        selector.network_attachment_definition_selector,
    )
    for (selection, field), block in zip(_BLOCKS.items(), blocks, strict=True):
        where = f"{path}.{field}"
        if block is None and selection == kind:
            yield FieldError(where, f"is required with networkSelectionType {selection}")
        elif block is not None and selection != kind:
            yield FieldError(where, f"is for networkSelectionType {selection} alone, not {kind}")
    clusters = selector.cluster_user_defined_network_selector
    if clusters is not None:
        where = f"{path}.clusterUserDefinedNetworkSelector.networkSelector"
        yield from strict_selector_errors(clusters.network_selector, where)
