"""The routing information bases (RFC 4271 section 3.2), the decision process, and the policies between.

* `path`, `local_routes`: attribute sets as shared paths, received or originated
* `inbound`, `inbound_fast_path`: received UPDATEs into the Adj-RIB-In; `usable_next_hop` and
  `route_leaks` decide about eligibility
* `adj_in`: the Adj-RIB-In, mostly held within the Loc-RIB
* `decision`, `loc_rib`, `loc_rib_fast_path`: route selection and its table, also that of a route set
* `export`, `update_group`, `update_encoder`, `adj_out_add_path`: routes and attributes for a group
  of peers
* `pack`, `pack_fields`, `pack_fast_path`: update packing
* `policy`: import and export policies

Knows paths and prefixes, no sessions and no sockets.
"""
