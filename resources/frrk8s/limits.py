"""The limits that several of FRR-k8s's kinds share, as annotations."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from resources.crds.schema_markers import SchemaPart, doc

MAX_ASN = 4294967295

Asn = Annotated[int, Meta(ge=1, le=MAX_ASN)]
Milliseconds = Annotated[int, Meta(ge=10, le=60000)]
DURATION: SchemaPart = {"format": "duration"}
"""A duration as Go writes it: 1h30m, 1500ms (metav1.Duration)."""
Duration = Annotated[str, doc("A duration such as 90s or 1500ms.", DURATION)]
