"""Reads drafts of BGPPolicy: the forms that Antrea's design discussed and did not build.

A draft has one process in its spec, or several in ``bgpConfigurations``; selectors of Services and
namespaces; timers, passwords and filters of peers. Fields may be misplaced as in its examples: the
spec within the metadata, a flag within a selector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from reconcilers.antrea.convert.bgppolicy import (
    IP_TYPES,
    Description,
    Neighbor,
    Process,
    Services,
    policy_ref,
)
from reconcilers.dialect import Notes

DRAFT_GROUP: Final = "antrea.io"
DEFAULT_ASN: Final = 65000
DEFAULT_NAME: Final = "bgp-policy"
CONFIGURATIONS: Final = "bgpConfigurations"
_SPEC_FIELDS: Final = ("nodeSelector", "localASN", "advertisements", "bgpPeers", "routerID")
_TYPE_FIELDS: Final = {
    "clusterIPs": "ClusterIP",
    "clusterIP": "ClusterIP",
    "externalIPs": "ExternalIP",
    "externalIP": "ExternalIP",
    "loadBalancerIPs": "LoadBalancerIP",
    "loadbalancerIPs": "LoadBalancerIP",
    "loadBalancerIP": "LoadBalancerIP",
    "loadbalancerIP": "LoadBalancerIP",
}
_TYPE_NAMES: Final = {
    bool: "true or false",
    dict: "an object",
    int: "a whole number",
    list: "a list",
}
"""Of JSON's types, for notes."""
_SERVICE_LISTS: Final = ("serviceIPs", "services")
_SELECTORS: Final = ("serviceSelector", "namespaceSelector")
_PROCESS_FIELDS: Final = frozenset(
    {*_SPEC_FIELDS, "bindAddresses", "listenPort", "peers", CONFIGURATIONS}
)
_ADVERTISEMENT_FIELDS: Final = frozenset({*_TYPE_FIELDS, *_SERVICE_LISTS, "podIPs", "egressIPs"})
_PEER_FIELDS: Final = frozenset(
    {
        "address",
        "asn",
        "port",
        "multipleHopTTL",
        "gracefulRestartTime",
        "gracefulRestart",
        "enabled",
        "restartTimeSeconds",
        "holdTime",
        "keepAliveTime",
        "connectRetryTime",
        "authSecretRef",
        "authSecret",
        "filters",
    }
)


def is_draft(value: Any) -> bool:  # noqa: ANN401  JSON
    """Return whether an object is a draft of BGPPolicy: of `DRAFT_GROUP`, or of a draft's form."""
    if not isinstance(value, dict):
        return False
    if CONFIGURATIONS in value and "kind" not in value:
        return True
    if value.get("kind") != "BGPPolicy":
        return False
    version = value.get("apiVersion")
    return version is None or str(version).partition("/")[0] == DRAFT_GROUP


def read_draft(value: Mapping[str, Any], notes: Notes) -> Description:
    """Read a draft of BGPPolicy; a field of no known form is a note."""
    metadata = _object(value.get("metadata"))
    name = str(metadata.get("name") or DEFAULT_NAME)
    spec, path = _object(value.get("spec")), "spec"
    if not spec and any(field in metadata for field in _SPEC_FIELDS):
        spec, path = metadata, "metadata"
        notes.add(
            policy_ref(name), "spec", "is missing: the fields of the spec are taken from metadata"
        )
    if CONFIGURATIONS in value:
        spec, path = {**spec, CONFIGURATIONS: value[CONFIGURATIONS]}, ""
    selector = spec.get("nodeSelector")
    if not isinstance(selector, dict):
        notes.add(
            policy_ref(name), _join(path, "nodeSelector"), "is missing: every node is selected"
        )
        selector = {}
    reader = _Reader(name, notes)
    configurations = spec.get(CONFIGURATIONS)
    if isinstance(configurations, list):
        where = _join(path, CONFIGURATIONS)
        for field in sorted(spec.keys() & _PROCESS_FIELDS - {CONFIGURATIONS, "nodeSelector"}):
            text = f"is not converted: {CONFIGURATIONS} has the processes"
            notes.add(policy_ref(name), _join(path, field), text)
        processes = [
            reader.process(_object(item), f"{where}[{i}]") for i, item in enumerate(configurations)
        ]
    else:
        processes = [reader.process(spec, path)]
    kept = {key: _texts(metadata.get(key)) for key in ("labels", "annotations")}
    described = {key: texts for key, texts in kept.items() if texts}
    return Description(name, selector, tuple(processes), described)


def _texts(given: Any) -> dict[str, str]:  # noqa: ANN401  JSON
    return {key: value for key, value in _object(given).items() if isinstance(value, str)}


class _Reader:
    """Reads the processes of one draft."""

    def __init__(self, name: str, notes: Notes) -> None:
        self._name = name
        self._notes = notes

    def _note(self, path: str, message: str) -> None:
        self._notes.add(policy_ref(self._name), path, message)

    def _note_unknown(self, given: Mapping[str, Any], known: Iterable[str], path: str) -> None:
        for field in sorted(map(str, given.keys() - set(known))):
            self._note(_join(path, field), "is not converted: no draft has this field")

    def process(self, given: Mapping[str, Any], path: str) -> Process:
        """Read one BGP process of a draft of BGPPolicy."""
        # Fields of the metadata are beside the fields of a misplaced spec.
        known = given.keys() if path == "metadata" else _PROCESS_FIELDS
        self._note_unknown(given, known, path)
        asn = self._number(given, "localASN", path)
        if asn is None:
            missing = "is missing: " if given.get("localASN") is None else ""
            text = f"{missing}the draft's default is {DEFAULT_ASN}"
            self._note(_join(path, "localASN"), text)
            asn = DEFAULT_ASN
        if given.get("bindAddresses"):
            text = "is not converted: a node listens on all addresses"
            self._note(_join(path, "bindAddresses"), text)
        where = _join(path, "advertisements")
        wanted = self._of_type(given, "advertisements", path, dict) or {}
        self._note_unknown(wanted, _ADVERTISEMENT_FIELDS, where)
        key = "bgpPeers" if "bgpPeers" in given else "peers"
        peers = self._of_type(given, key, path, list) or ()
        router_id = given.get("routerID")
        return Process(
            path,
            asn,
            self._number(given, "listenPort", path),
            str(router_id) if router_id else None,
            None,
            tuple(self._services(wanted, where)),
            self._of_type(wanted, "podIPs", where, bool) is True,
            self._egress(wanted, where),
            tuple(
                neighbor
                for i, item in enumerate(peers)
                if (neighbor := self._neighbor(_object(item), f"{_join(path, key)}[{i}]"))
            ),
        )

    def _of_type(self, given: Mapping[str, Any], field: str, path: str, *types: type) -> Any:  # noqa: ANN401  JSON
        """Return the value of a field; None, with a note, if it is of another type."""
        value = given.get(field)
        if value is None or type(value) in types:
            return value
        names = " or ".join(_TYPE_NAMES[shape] for shape in types)
        self._note(_join(path, field), f"is not converted: it is not {names}")
        return None

    def _number(self, given: Mapping[str, Any], field: str, path: str) -> int | None:
        number: int | None = self._of_type(given, field, path, int)
        return number

    def _egress(self, wanted: Mapping[str, Any], path: str) -> bool:
        given = self._of_type(wanted, "egressIPs", path, bool, dict)
        if isinstance(given, dict):
            text = "the selector is not converted: all egress IPs of the node are advertised"
            self._note(f"{path}.egressIPs", text)
            return True
        return given is True

    def _services(self, wanted: Mapping[str, Any], path: str) -> Iterator[Services]:
        for field, type_ in _TYPE_FIELDS.items():
            given = self._of_type(wanted, field, path, bool, dict)
            if given is True or isinstance(given, dict):
                yield _selected((type_,), _object(given), f"{path}.{field}")
        for field in _SERVICE_LISTS:
            for i, item in enumerate(self._of_type(wanted, field, path, list) or ()):
                yield self._of_list(_object(item), f"{path}.{field}[{i}]")

    def _of_list(self, item: Mapping[str, Any], path: str) -> Services:
        selector = _object(item.get("serviceSelector"))
        # The draft's examples have these fields one level too deep.
        inner = {k: v for k, v in selector.items() if k in _TYPE_FIELDS or k == "namespaceSelector"}
        if inner:
            self._note(
                f"{path}.serviceSelector", f"{', '.join(inner)}: read as beside the selector"
            )
            item = {**item, **inner}
            rest = {k: v for k, v in selector.items() if k not in inner}
            item["serviceSelector"] = rest
        self._note_unknown(item, (*_TYPE_FIELDS, *_SELECTORS), path)
        types = {type_ for field, type_ in _TYPE_FIELDS.items() if item.get(field) is True}
        return _selected(tuple(t for t in IP_TYPES if t in types), item, path)

    def _neighbor(self, given: Mapping[str, Any], path: str) -> Neighbor | None:
        address, asn = given.get("address"), given.get("asn")
        if not isinstance(address, str) or not isinstance(asn, int):
            self._note(path, "the peer is not converted: it needs an address and an AS number")
            return None
        self._note_unknown(given, _PEER_FIELDS, path)
        filters = given.get("filters")
        if filters:
            names = ", ".join(str(name) for name in filters)
            self._note(
                f"{path}.filters", f"is not converted ({names}): all peers get the same routes"
            )
        restart = self._number(given, "gracefulRestartTime", path)
        nested = self._of_type(given, "gracefulRestart", path, dict)
        if nested:
            restart = self._number(nested, "restartTimeSeconds", f"{path}.gracefulRestart")
            restart = 0 if nested.get("enabled") is False else restart
        # One example has the fields of gracefulRestart beside it.
        if given.get("enabled") is False:
            restart = 0
        elif restart is None:
            restart = self._number(given, "restartTimeSeconds", path)
        secret = _secret(given.get("authSecretRef") or given.get("authSecret"))
        return Neighbor(
            address,
            asn,
            path,
            self._number(given, "port", path),
            self._number(given, "multipleHopTTL", path),
            restart,
            self._number(given, "holdTime", path),
            self._number(given, "keepAliveTime", path),
            self._number(given, "connectRetryTime", path),
            secret,
        )


def _selected(types: tuple[str, ...], given: Mapping[str, Any], path: str) -> Services:
    service, namespace = given.get("serviceSelector"), given.get("namespaceSelector")
    return Services(types, _object(service) or None, _object(namespace) or None, path)


def _secret(value: Any) -> str | None:  # noqa: ANN401  JSON
    """Return a reference to a Secret as text: its name, or its name and a key."""
    if isinstance(value, dict):
        name, key = value.get("name"), value.get("key")
        return f"{name}, key {key}" if name and key else str(name) if name else None
    return str(value) if value else None


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    return value if isinstance(value, dict) else {}


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
