"""Options of the node, of the sources of objects, and of what an agent keeps for its next start."""

from __future__ import annotations

from typing import Annotated

import msgspec

from resources.option_declarations import Options, setting


class NodeOptions(Options, frozen=True):
    """Options of the node cell."""

    name: Annotated[
        str | None,
        setting(
            "name of this node, as its Node object spells it; the host's by default",
            metavar="NAME",
        ),
    ] = None
    pod_namespace: Annotated[
        str | None,
        setting("namespace of the agent's Pod, which owns objects that the agent writes there"),
    ] = None
    pod_name: Annotated[str | None, setting("name of that Pod")] = None
    pod_uid: Annotated[str | None, setting("UID of that Pod")] = None
    cluster_addresses: Annotated[
        str | None,
        setting(
            "namespace of the ConfigMap waggle-cluster-addresses: the operator publishes there the "
            "addresses of all Nodes, Pods and peers, which no Service may use. By default none is "
            "read, and addresses of other nodes are not known",
            flag="--cluster-addresses-namespace",
        ),
    ] = None


class ResourcesOptions(Options, frozen=True):
    """Options of the resources cell."""

    secrets_namespace: Annotated[
        str,
        setting(
            "namespace of the Secrets with peers' passwords; empty: no Secret is read",
            flag="--secrets-namespace",
        ),
    ] = "kube-system"
    mass_withdraw_hold: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting(
            "seconds for which the loss of many objects at once (an empty list or directory, a file "
            "that was cut) has to be confirmed before they are taken as deleted; 0: not at all",
            flag="--mass-withdraw-hold",
        ),
    ] = 60.0


class ManifestsOptions(Options, frozen=True):
    """Options of the manifests cell."""

    directory: Annotated[
        tuple[str, ...] | None,
        setting(
            "directory tree of YAML and JSON manifests, watched for changes; repeatable",
            flag="--manifests",
            metavar="DIR",
        ),
    ] = None


class KubernetesOptions(Options, frozen=True):
    """Options of the kubernetes cell."""

    kubeconfig: Annotated[
        str | None,
        setting(
            "kubeconfig file of the cluster to read, or in-cluster for the Pod's service account",
            flag="--kubeconfig",
            metavar="FILE",
        ),
    ] = None
    context: Annotated[
        str | None,
        setting("context of the kubeconfig; its current context by default", flag="--context"),
    ] = None


class SnapshotOptions(Options, frozen=True):
    """Options of the snapshot cell."""

    file: Annotated[
        str | None,
        setting(
            "keep the last known objects in this file, and start from it without an API server",
            flag="--snapshot-file",
            metavar="PATH",
        ),
    ] = None
    after_seconds: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting("how long a start waits for the API server before the file is used"),
    ] = 10.0
    max_age_hours: Annotated[
        float,
        msgspec.Meta(gt=0.0),
        setting("an older file is not used"),
    ] = 168.0


class ClaimsOptions(Options, frozen=True):
    """Options of the claims cell."""

    directory: Annotated[
        str | None,
        setting(
            "directory on the node for what a restart has to remember: which dialect has a peer that "
            "two of them configure, and the last valid manifests",
            flag="--state-directory",
            metavar="DIR",
        ),
    ] = None


class HistoryOptions(Options, frozen=True):
    """Options of the history cell."""

    entries: Annotated[
        int,
        msgspec.Meta(ge=0, le=100_000),
        setting(
            "keep this many of the last changes for `waggle history`; about 1 KB each; 0: none",
            flag="--history-entries",
            metavar="N",
        ),
    ] = 2000
    on_disk: Annotated[
        bool,
        setting("keep them over a restart, in the state directory", flag="--history-on-disk"),
    ] = False
