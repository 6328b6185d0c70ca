"""Checks of the API server: whether it answers, its kinds, rights, and certificates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from reconcilers.dialect import Check, ClusterEvidence, Evidence, Finding
from reconcilers.dialect.diagnosis import Certificate
from resources.enumeration import counted

SLOW_SECONDS: Final = 2.0
OLDEST_VERSION: Final = (1, 25)
"""Of Kubernetes (docs/install.md)."""
DAY: Final = 86400.0
WARNING_DAYS: Final = 14
SHARE_OF_LIFETIME: Final = 10
"""The part of a certificate's lifetime that is warned of, at the most."""
HOURS_BELOW_DAYS: Final = 2


def cluster_evidence(evidence: Evidence) -> ClusterEvidence:
    """Return the evidence of the API server, which checks of it `needs`."""
    assert evidence.cluster is not None  # noqa: S101  `needs` of the checks
    return evidence.cluster


def reachable(evidence: Evidence) -> Iterator[Finding]:
    """Check that the API server answers, soon, and is not too old."""
    cluster = cluster_evidence(evidence)
    if cluster.error:
        remedy = "check the kubeconfig (--kubeconfig, --context), the network and `kubectl version`"
        yield Finding(evidence=cluster.error, remedy=remedy)
        return
    if cluster.answer_seconds > SLOW_SECONDS:
        text = f"it took {cluster.answer_seconds:.1f} s to answer"
        remedy = "look at the load of the API server and of etcd: agents follow changes as late"
        yield Finding(level="warning", evidence=text, remedy=remedy)
    numbers = cluster.version.removeprefix("v").split(".")[:2]
    if all(n.isdecimal() for n in numbers) and tuple(map(int, numbers)) < OLDEST_VERSION:
        remedy = "update Kubernetes: 1.25 is the oldest version that is supported"
        yield Finding(level="warning", evidence=f"its version is {cluster.version}", remedy=remedy)


def definitions(evidence: Evidence) -> Iterator[Finding]:
    """Check that the API server has the kinds of a dialect in a version that Waggle reads."""
    cluster = cluster_evidence(evidence)
    if not cluster.served and "kinds" not in cluster.unread:
        remedy = "install the definitions: waggle crds cilium | kubectl create -f -"
        yield Finding(evidence="the API server has no kind of any BGP API", remedy=remedy)
    for name in sorted(cluster.missing):
        text = "it is not served in a version that Waggle reads; other kinds beside it are"
        remedy = f"install or update the definition: waggle crds {name.partition('.')[0]}"
        yield Finding(level="warning", object=name, evidence=text, remedy=remedy)


def rights(evidence: Evidence) -> Iterator[Finding]:
    """Check the rights of the person, and the missing rights of agents, at the API server."""
    for access in () if evidence.cluster is None else evidence.cluster.access:
        if not access.allowed:
            where = f" in namespace {access.namespace}" if access.namespace else ""
            text = f"you may not {access.verb} {access.resource}{where}"
            remedy = "have a role with this right bound to you, or use --from-statuses"
            yield Finding(level="warning", evidence=text, remedy=remedy)
    for node in evidence.answered:
        for part in node.status.get("degraded", ()):
            if "may not " in part["message"] or "forbidden" in part["message"].lower():
                yield Finding(
                    node=node.node,
                    object=part["path"],
                    evidence=part["message"],
                    remedy="apply the roles of the chart again: helm upgrade, or deploy/manifests",
                )


def certificates(evidence: Evidence) -> Iterator[Finding]:
    """Check that no certificate of the cluster has expired or does so soon."""
    for certificate in cluster_evidence(evidence).certificates:
        days = (certificate.expires - evidence.now) / DAY
        if days < 0:
            text = f"{certificate.name} has expired {_days_or_hours(-days)} ago"
            yield Finding(evidence=text, remedy=certificate.remedy)
        elif days < _warning_days(certificate):
            text = f"{certificate.name} expires in {_days_or_hours(days)}"
            yield Finding(level="warning", evidence=text, remedy=certificate.remedy)


def _days_or_hours(days: float) -> str:
    """Return a time in days, or below two days in begun hours."""
    if days >= HOURS_BELOW_DAYS:
        return counted(round(days), "day")
    return counted(math.ceil(days * 24), "hour")


def _warning_days(certificate: Certificate) -> float:
    """Return the days before the end at which a renewal is late: short-lived ones are renewed often."""
    if certificate.lifetime is None:
        return WARNING_DAYS
    return min(WARNING_DAYS, certificate.lifetime / DAY / SHARE_OF_LIFETIME)


API_SERVER: Final = Check(
    name="api-server", question="the API server answers", needs="cluster", run=reachable
)
CRDS: Final = Check(
    name="crds",
    question="the BGP kinds are served",
    needs="cluster",
    run=definitions,
    reads="kinds",
)
RBAC: Final = Check(
    name="rbac",
    question="you and the agents have their rights",
    needs="any",
    run=rights,
    reads="rights",
)
TLS: Final = Check(
    name="tls",
    question="no certificate expires soon",
    needs="cluster",
    run=certificates,
    reads="certificates",
)
