"""CustomResourceDefinitions, generated from the row types, so that schema and code cannot drift.

`schema_markers` are the annotations of row types beyond their Python types, `patterns` the regular
expressions that an API server validates, `schema` generates OpenAPI from a row type and `generate` a
definition from a kind. `waggle crds` prints them.
"""
