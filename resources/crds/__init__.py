"""CustomResourceDefinitions, generated from the row types, so that schema and code cannot drift.

`annotations` is what a row type says of itself beyond its Python types, `patterns` the texts that an
API server can check, `schema` makes OpenAPI of a row type and `generate` a definition of a kind.
Nothing here talks to a cluster: `waggle crds` prints, people apply.
"""
