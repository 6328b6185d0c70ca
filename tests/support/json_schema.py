"""`jsonschema` without its grammar of IRIs: to read that takes longer than all schemas of the tests.

No test checks formats, which the grammar is for.
"""

from __future__ import annotations

import sys
from unittest import mock

with mock.patch.dict(sys.modules, {"rfc3987_syntax": None}):
    import jsonschema as _jsonschema

validate = _jsonschema.validate
Validator = _jsonschema.Draft202012Validator
