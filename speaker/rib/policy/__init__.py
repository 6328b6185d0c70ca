"""Import and export policies, compiled; applied once per attribute set, not per peer and prefix.

* `prefixes`: prefix lists with length ranges, matched on wire octets
* `communities`, `as_path`: patterns for attributes
* `compiled`: terms in order; the result is cached per path
* `difference`: the prefixes that a changed policy may decide differently, and whether it accepts more

Text is parsed when a policy is compiled; an error there is `InvalidTerm`, which
is a `speaker.api.InvalidConfig`.
"""

from speaker.rib.policy.compiled import (
    CompiledPolicy,
    InvalidTerm,
    compile_export,
    compile_import,
)
from speaker.rib.policy.difference import accepts_more, changed_prefixes
from speaker.rib.policy.prefixes import PrefixList

__all__ = [
    "CompiledPolicy",
    "InvalidTerm",
    "PrefixList",
    "accepts_more",
    "changed_prefixes",
    "compile_export",
    "compile_import",
]
