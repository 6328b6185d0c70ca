"""The kinds of Antrea's API for BGP."""

from __future__ import annotations

from resources.antrea.bgppolicy import BGPPolicy, bgp_policy_errors
from resources.antrea.egress import Egress, egress_errors
from resources.crds.schema_markers import Column, Definition
from resources.kind import Kind, KindFamily

BGP_POLICY = Kind(
    "BGPPolicy",
    BGPPolicy,
    group="crd.antrea.io",
    versions=("v1alpha1",),
    plural="bgppolicies",
    namespaced=False,
    errors=bgp_policy_errors,
    strict=True,
    definition=Definition(
        "BGPPolicy configures BGP on the nodes that it selects: AS number, routers, and what is "
        "advertised to them. Of several that select a node the oldest one is effective.",
        columns=(
            Column("Local ASN", ".spec.localASN", "integer", "The AS number of the nodes."),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    ),
    table="antrea-bgp-policies",
    family=KindFamily("BGP"),
    draft_groups=("antrea.io",),
)
EGRESS = Kind(
    "Egress",
    Egress,
    group="crd.antrea.io",
    versions=("v1beta1",),
    plural="egresses",
    namespaced=False,
    errors=egress_errors,
    table="antrea-egresses",
)
