"""Mutants of merging FRRConfigurations and MetalLB's objects: of conflicts, isolation and filters."""

from __future__ import annotations

from typing import Final

from tests.mutants.rules import Mutant

_CASES: Final = "tests/cases/test_frrk8s_metallb.py"
_MERGER: Final = "reconcilers/frrk8s/merge/merger.py"
_UNION: Final = "reconcilers/frrk8s/merge/union.py"
_ISOLATED: Final = "reconcilers/frrk8s/isolation/isolated_objects.py"
_ISOLATION: Final = "reconcilers/frrk8s/isolation/order.py"
_CLAIMS: Final = "reconcilers/frrk8s/claims.py"
_TABLE: Final = "reconcilers/frrk8s/claim_table.py"
_ROUTERS: Final = "reconcilers/frrk8s/one_object/routers.py"
_NEIGHBORS: Final = "reconcilers/frrk8s/one_object/neighbors.py"
_PREFIX_RULES: Final = "reconcilers/frrk8s/prefix_rules.py"
_EXPORTS: Final = "reconcilers/frrk8s/exports.py"
_INTENT: Final = "reconcilers/frrk8s/router_rows.py"
_CONFLICTS: Final = "reconcilers/metallb/conflicts"
_IN_EFFECT: Final = "reconcilers/frrk8s/in_effect.py"
_SERVICES: Final = "reconcilers/metallb/services.py"
_TESTS: Final = {
    "frrk8s": (
        "tests/reconcilers/frrk8s/one_object",
        "tests/reconcilers/frrk8s/test_model.py",
        "tests/reconcilers/frrk8s/test_merge.py",
        "tests/reconcilers/frrk8s/test_many_conflicts.py",
        "tests/reconcilers/frrk8s/test_isolation.py",
        "tests/reconcilers/frrk8s/test_options.py",
        _CASES,
    ),
    "metallb": (
        "tests/reconcilers/metallb/conflicts",
        "tests/reconcilers/metallb/test_findings.py",
        "tests/reconcilers/metallb/test_isolation.py",
        "tests/reconcilers/metallb/test_services.py",
        _CASES,
    ),
}
"""The tests of a rule, the quickest first."""

_CHANGES: Final = (
    # Conflicts
    (
        "frrk8s",
        _CLAIMS,
        '"bfdProfile", "BFD profile", optional=True',
        '"bfdProfile", "BFD profile"',
    ),
    (
        "frrk8s",
        _CLAIMS,
        '_Field("sourceaddress", "source address"),',
        '_Field("sourceaddress", "source address", optional=True),',
    ),
    (
        "frrk8s",
        _CLAIMS,
        '_Field("localASN", "local AS number"),',
        '_Field("localASN", "local AS number", optional=True),',
    ),
    ("frrk8s", _CLAIMS, 'IPv4 next hop", optional=True)', 'IPv4 next hop")'),
    ("frrk8s", _CLAIMS, "    if router.router_id is not None:", "    if True:"),
    (
        "frrk8s",
        _CLAIMS,
        "        if differ(of_object):",
        "        if False:",
    ),
    (
        "frrk8s",
        _CLAIMS,
        "            rest.append(of_object[0])",
        "            rest += of_object[:0]",
    ),
    (
        "frrk8s",
        _CLAIMS,
        "    if differ(rest):",
        "    if len(rest) > 2 and differ(rest):",
    ),
    (
        "frrk8s",
        _CLAIMS,
        "SecretValue(password_octets(resolved.reveal()))",
        "SecretValue(resolved.reveal())",
    ),
    (
        "frrk8s",
        _CLAIMS,
        "            continue  # Nothing is known",
        "            pass  # Nothing is known",
    ),
    (
        "frrk8s",
        _TABLE,
        "            if subject in self._disputed or not _agree(own, slot, of_slots):",
        "            if False:",
    ),
    (
        "frrk8s",
        _TABLE,
        "            if subject in self._disputed:\n                self._conflicts = None",
        "            if False:\n                self._conflicts = None",
    ),
    ("frrk8s", _CLAIMS, 'category="conflict", count=more)', 'category="conflict")'),
    ("frrk8s", _TABLE, "    if any(claim.value != value for claim in own[1:]):", "    if False:"),
    (
        "frrk8s",
        _MERGER,
        "        if reported:\n            last.given, last.result",
        "        if False:\n            last.given, last.result",
    ),
    (
        "frrk8s",
        _ROUTERS,
        "        if findings.errors:\n            return Compiled(",
        "        if False:\n            return Compiled(",
    ),
    # What is united
    (
        "frrk8s",
        _UNION,
        "any(settings.graceful_restart for settings in different)",
        "first.settings.graceful_restart",
    ),
    (
        "frrk8s",
        _UNION,
        "accepts_all = len(accepts) < len(different)",
        "accepts_all = not accepts",
    ),
    (
        "frrk8s",
        _UNION,
        'bfd_profile=filled("bfd_profile"),',
        "bfd_profile=first.session.bfd_profile,",
    ),
    ("frrk8s", _UNION, 'exporting = parts if "unicast" in families else ()', "exporting = parts"),
    (
        "frrk8s",
        _UNION,
        "frozenset[str]().union(*(router.imports for _, router in parts)),",
        "first.imports,",
    ),
    (
        "frrk8s",
        _ROUTERS,
        "return self._elsewhere.get(vrf, frozenset())",
        "return frozenset()",
    ),
    (
        "frrk8s",
        _ROUTERS,
        "return vrf in self._routed or vrf in self._elsewhere",
        "return vrf in self._routed",
    ),
    # Isolation
    (
        "frrk8s",
        _ISOLATED,
        "key=lambda item: ages[item[0]]",
        "key=lambda item: item[0]",
    ),
    (
        "frrk8s",
        _ISOLATION,
        "        if _contradicts(self._claims[member.ref], values):",
        "        if False:",
    ),
    ("frrk8s", _ISOLATION, "            if wrong:\n", "            if False:\n"),
    (
        "frrk8s",
        _ISOLATION,
        "        while together := (yield from self._together",
        "        if together := (yield from self._together",
    ),
    (
        "frrk8s",
        _ISOLATION,
        "        if not unresolved:\n",
        "        if True:\n",
    ),
    ("frrk8s", _ISOLATION, "return max(blocking, key", "return min(blocking, key"),
    (
        "frrk8s",
        _ISOLATION,
        "displacing = self._displacing(agreeing)",
        "displacing = set[ObjectRef]()",
    ),
    (
        "frrk8s",
        _ISOLATION,
        "        if with_older:\n",
        "        if False:\n",
    ),
    (
        "metallb",
        f"{_CONFLICTS}/shared_values.py",
        "                if value != claim.value:",
        "                if False:",
    ),
    (
        "metallb",
        f"{_CONFLICTS}/shared_values.py",
        "self._highest[node] < span.first:",
        "self._highest[node] <= span.first:",
    ),
    (
        "metallb",
        f"{_CONFLICTS}/advertisements.py",
        "pools = valid.selected[number] & self._environment",
        "pools = valid.selected[number]",
    ),
    (
        "metallb",
        f"{_CONFLICTS}/advertisements.py",
        "                    if of_version.get(number, 0) & selecting:",
        "                    if False:",
    ),
    (
        "metallb",
        "reconcilers/metallb/relations.py",
        "if self.ages[other] < self.ages[ref]}",
        "if True}",
    ),
    (
        "metallb",
        f"{_CONFLICTS}/valid_objects.py",
        "                if self.selected[number] & pools:",
        "                if True:",
    ),
    (
        "metallb",
        "reconcilers/metallb/relations.py",
        "            if text in names and not is_literal(text):",
        "            if False:",
    ),
    (
        "metallb",
        _IN_EFFECT,
        '(units.cause == "older" and is_foreign)',
        'units.cause == "older"',
    ),
    (
        "metallb",
        _IN_EFFECT,
        "                    of_units += units.problems\n                elif",
        "                    pass\n                elif",
    ),
    # Filters, out and in
    (
        "frrk8s",
        _EXPORTS,
        '        return self._both or (destination[0] == IPV6_UNICAST) == (":" in self._key.end)',
        "        return True",
    ),
    (
        "frrk8s",
        _EXPORTS,
        "                destination not in self._available\n",
        "                False\n",
    ),
    ("frrk8s", _EXPORTS, "                destination not in allowed\n", "                False\n"),
    ("frrk8s", _EXPORTS, "if before is not None and before[0] != value:", "if False:"),
    ("frrk8s", _EXPORTS, '        if given.mode == "all":', "        if False:"),
    (
        "frrk8s",
        _NEIGHBORS,
        '    if allowed.mode == "all":\n        return None',
        "    if False:\n        return None",
    ),
    (
        "frrk8s",
        _PREFIX_RULES,
        "if length is not None and not nlri[0] <= length <= longest:",
        "if length is not None and not nlri[0] <= length <= 128:",
    ),
    (
        "frrk8s",
        _PREFIX_RULES,
        "    if ge is not None and le is not None and ge > le:",
        "    if False:",
    ),
    (
        "frrk8s",
        _INTENT,
        "        if family in families:\n            never.append(",
        "        if True:\n            never.append(",
    ),
    # MetalLB
    (
        "metallb",
        f"{_CONFLICTS}/valid_objects.py",
        "            if not row.spec.service_selectors\n",
        "            if True\n",
    ),
    (
        "metallb",
        f"{_CONFLICTS}/valid_objects.py",
        '        for peer in (*row.spec.peers, "") if row.spec.peers else (None,):',
        "        for peer in row.spec.peers or (None,):",
    ),
    (
        "metallb",
        f"{_CONFLICTS}/valid_objects.py",
        "            others |= of_key.get((length, peer), 0) & ~same",
        "            others |= of_key.get((length, peer), 0)",
    ),
    (
        "metallb",
        f"{_CONFLICTS}/valid_objects.py",
        "    return max(lengths, default=None)",
        "    return min(lengths, default=None)",
    ),
    (
        "metallb",
        "reconcilers/metallb/pool_selection.py",
        "        if not (spec.ip_address_pools or spec.ip_address_pool_selectors):\n",
        "        if not spec.ip_address_pools:\n",
    ),
    (
        "metallb",
        _SERVICES,
        "    pool = next(iter(pools)) if len(pools) == 1 else None",
        "    pool = next(iter(pools), None)",
    ),
    ("metallb", _SERVICES, "            if family in rules.families:", "            if True:"),
    (
        "metallb",
        _SERVICES,
        "                if not local or endpoint.node_name == node:",
        "                if True:",
    ),
)
MERGING: Final = tuple(Mutant(*change, _TESTS[change[0]]) for change in _CHANGES)
