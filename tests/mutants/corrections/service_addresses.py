"""Mistakes about the addresses of Services, and about how many there may be."""

from __future__ import annotations

from typing import Final

_RULES: Final = "reconcilers/intent/service_addresses/address_rules.py"
_GRANTS: Final = "reconcilers/intent/service_addresses/grants.py"
_ADDRESSES: Final = "tests/reconcilers/intent/service_addresses"
_LIMITS: Final = "reconcilers/intent/address_limits.py"
_OF_LIMITS: Final = "tests/reconcilers/intent/test_address_limits.py"
_LEARNED: Final = "reconcilers/intent/learned_limits.py"

CHANGES: Final[tuple[tuple[str, ...], ...]] = (
    # Addresses of Services
    *(
        (f"addresses of Services: {what} is refused", _RULES, text, "        if False:", _ADDRESSES)
        for what, text in (
            ("an address of this node", "        if self.own.covers(family, nlri):"),
            ("the address of a peer", "        if self.peers.covers(family, nlri):"),
            ("an address of another node", "        if networks.nodes.covers(family, nlri):"),
            ("an address of the Kubernetes API", "        if networks.api.covers(family, nlri):"),
            (
                "an address in another node's pod network",
                (
                    "        if networks.pods.covers(family, nlri) "
                    "and not networks.own_pods.covers(family, nlri):"
                ),
            ),
            (
                "the address of another node's peer",
                "        if networks.peers.covers(family, nlri):",
            ),
            ("a next hop", "        if self.next_hops.covers(family, nlri):"),
            ("a default gateway", "        if self.gateways.covers(family, nlri):"),
            ("the cluster IP of another Service", "        if owner is not None:"),
            (
                "an address in the range of cluster IPs",
                (
                    "        if address.field == EXTERNAL_IPS "
                    "and self.networks.services.covers(family, nlri):"
                ),
            ),
        )
    ),
    (
        "addresses of Services: --advertise-permit has exceptions",
        _RULES,
        "        if concerned and not self.permit.covers(family, nlri):",
        "        if concerned:",
        _ADDRESSES,
    ),
    (
        "addresses of Services: what a pool permits stays permitted",
        _RULES,
        "        if address.in_pool:",
        "        if False:",
        _ADDRESSES,
    ),
    (
        "addresses of Services: status has a line while no rule restricts them",
        _RULES,
        "    if rules.allow is not None or grants.annotated_only or grants.by_namespace:",
        "    if True:",
        _ADDRESSES,
    ),
    (
        "addresses of Services: an IPv6 address with a martian inside is one",
        "reconcilers/intent/service_addresses/martians.py",
        "    for prefix, place, form in _EMBEDDED:",
        "    for prefix, place, form in _EMBEDDED[:0]:",
        _ADDRESSES,
    ),
    (
        "addresses of Services: an IPv6 address that stands for an address of something else",
        _RULES,
        "        if rejection is None and embedded is not None:",
        "        if False:",
        _ADDRESSES,
    ),
    (
        "addresses of Services: an IPv4 address within an IPv6 address is judged again",
        "reconcilers/intent/dialect_route_sets.py",
        "            judged[embedded.nlri] = None",
        "            pass",
        _ADDRESSES,
    ),
    (
        "addresses of Services: leading zeros are decimal",
        "resources/addresses.py",
        '        return _LEADING_ZEROS.sub("", text)',
        "        return text",
        "tests/resources/test_service_row.py",
    ),
    (
        "addresses of Services: what one namespace is granted is closed to others",
        _GRANTS,
        "            return None if in_pool else self._rejection_of_granted(family, nlri)",
        "            return None",
        _ADDRESSES,
    ),
    (
        "addresses of Services: a namespace uses the prefixes of its annotation alone",
        _GRANTS,
        "        if grant.covered.covers(family, nlri):",
        "        if True:",
        _ADDRESSES,
    ),
    (
        "addresses of Services: --advertise-namespaces=annotated requires the annotation",
        "reconcilers/intent/service_addresses/tracker.py",
        'Grants(annotated_only=options.advertise_namespaces == "annotated")',
        "Grants()",
        _ADDRESSES,
    ),
    *(
        (f"addresses of Services: nothing else has the address: {what}", *change, _ADDRESSES)
        for what, *change in (
            (
                "denied addresses",
                _RULES,
                "        return foreign.union(self.deny, self.grants.granted)",
                "        return foreign.union(self.grants.granted)",
            ),
            (
                "addresses of a granted prefix",
                _RULES,
                "        return foreign.union(self.deny, self.grants.granted)",
                "        return foreign.union(self.deny)",
            ),
            (
                "where none is allowed",
                _RULES,
                "        restricted = self.allow is not None or ",
                "        restricted = bool(self.allow) or ",
            ),
        )
    ),
    # Limits
    (
        "limits: of the addresses of one Service",
        _LIMITS,
        "        if self._of_service and named.position >= self._of_service:",
        "        if False:",
        _OF_LIMITS,
    ),
    (
        "limits: of the addresses of one namespace",
        _LIMITS,
        "        if crowded is None or named.field not in self._counted_fields:",
        "        if True:",
        _OF_LIMITS,
    ),
    (
        "limits: the newest Services lose",
        _LIMITS,
        "            nlri: (created, name, named.position)",
        '            nlri: ("", name, named.position)',
        _OF_LIMITS,
    ),
    (
        "limits: addresses that controllers allocate are not counted",
        _LIMITS,
        "{EXTERNAL_IPS, INGRESS} if options.advertise_namespace_limit_ingress else {EXTERNAL_IPS}",
        "{EXTERNAL_IPS, INGRESS}",
        _OF_LIMITS,
    ),
    (
        "limits: towards a peer what administrators configure is sent",
        "reconcilers/intent/limited_sets.py",
        "        if part.rank is None:\n            return None",
        "        if part.rank is None:\n            continue",
        "tests/reconcilers/intent/test_peer_limits.py",
    ),
    (
        "limits: towards a peer what administrators configure takes room from Services",
        "reconcilers/intent/limited_sets.py",
        "        self.of_services.size = max(0, self.limit - len(self.own))",
        "        self.of_services.size = self.limit",
        "tests/reconcilers/intent/test_peer_limits.py",
    ),
    (
        "limits: there is a warning at 75 percent",
        "cells/apply/peer_limits.py",
        "            if 100 * row.prefixes < WARNING_PERCENT * row.limit:",
        "            if row.prefixes < row.limit:",
        "tests/cells/apply/test_peer_limits.py",
    ),
    (
        "limits: what a peer ends a session for is learned",
        _LEARNED,
        "            if event.peer_limit is not None:",
        "            if False:",
        "tests/reconcilers/intent/test_learned_limits.py",
    ),
    (
        "limits: the NOTIFICATION's data is the limit",
        _LEARNED,
        "        if limits.limit is not None and limits.limit < sent[limits.family]:",
        "        if False:",
        "tests/reconcilers/intent/test_learned_limits.py",
    ),
    (
        "limits: a learned limit stays until the session has been up for an hour",
        _LEARNED,
        "LIFTED_AFTER_SECONDS: Final = 3600.0",
        "LIFTED_AFTER_SECONDS: Final = 0.0",
        "tests/reconcilers/intent/test_learned_limits.py",
    ),
)

LIVE: Final = (
    (
        "limits: a router with a limit gets what it takes",
        _LEARNED,
        "            if event.peer_limit is not None:",
        "            if False:",
        "tests/interop/test_peer_limit.py",
    ),
    (
        "addresses of Services: a router gets none of the cluster's own",
        _RULES,
        "        if concerned and not self.permit.covers(family, nlri):",
        "        if False:",
        "tests/interop/test_service_addresses.py",
    ),
)
