"""Policies compiled and applied: per attribute set where that is possible, never per peer and prefix.

* `prefixes`: lists of prefixes with lengths, on wire octets
* `communities`, `as_path`: patterns for attributes
* `policy`: terms in order, with results remembered per path

Pure. Text is read when a policy is compiled; an error there is `speaker.api.InvalidConfig`.
"""

from speaker.rib.policy.compiled import CompiledPolicy, compile_export, compile_import

__all__ = ["CompiledPolicy", "compile_export", "compile_import"]
