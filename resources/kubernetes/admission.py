"""AdmissionReview (admission.k8s.io/v1): the request of an API server, and the answer to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from resources.errors import INVALID_JSON

API_VERSION: Final = "admission.k8s.io/v1"
WARNING_CHARACTERS: Final = 256
"""An API server cuts off longer warnings."""


class UnreadableReviewError(Exception):
    """A body that is no AdmissionReview of this version, with the reason."""


class GroupVersionKind(msgspec.Struct, frozen=True):
    """The kind of the object, in the version for which the webhook is registered."""

    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def api_version(self) -> str:
        """The ``group/version`` of the object in an AdmissionReview."""
        return f"{self.group}/{self.version}" if self.group else self.version


class AdmissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a request that are used."""

    uid: str
    kind: GroupVersionKind
    operation: str
    object: Any = None
    old_object: Any = None


class AdmissionReview(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a request."""

    api_version: str
    kind: str
    request: AdmissionRequest


_decoder: Final = msgspec.json.Decoder(AdmissionReview)


def read_review(body: bytes) -> AdmissionRequest:
    """Decode an AdmissionReview, the body of a request. Raises `UnreadableReviewError`."""
    try:
        review = _decoder.decode(body)
    except INVALID_JSON as error:
        raise UnreadableReviewError(f"the body is no AdmissionReview: {error}") from None
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        given = f"{review.kind} {review.api_version}"[:128]
        raise UnreadableReviewError(f"the body is {given}, not AdmissionReview {API_VERSION}")
    return review.request


def write_review(uid: str, *, allowed: bool, message: str, warnings: Iterable[str]) -> bytes:
    """Encode the answer to an AdmissionReview; the message of a denial has status code 403."""
    response: dict[str, Any] = {"uid": uid, "allowed": allowed}
    if not allowed:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": message}
    shortened = [_shortened(text) for text in warnings]
    if shortened:
        response["warnings"] = shortened
    return msgspec.json.encode(
        {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    )


def _shortened(text: str) -> str:
    return text if len(text) <= WARNING_CHARACTERS else text[: WARNING_CHARACTERS - 1] + "…"
