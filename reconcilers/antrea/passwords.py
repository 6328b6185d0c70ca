"""TCP MD5 passwords of peers: keys ``<address>-<asn>`` of the Secret antrea-bgp-passwords. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from reconcilers.model import ObjectRef, Problem, SecretRef
from resources.addresses import canonical_address
from resources.core import Secret
from resources.meta import ObjectKey
from resources.secret_value import SecretValue
from speaker.api.secret import InvalidSecret
from speaker.api.secret import Secret as Password

SECRET: Final = "antrea-bgp-passwords"  # noqa: S105  the name of an object


class PeerPassword(NamedTuple):
    """The reference to a peer's password, or None, and its problems."""

    reference: SecretRef | None = None
    problem: Problem | None = None
    down_reason: str | None = None
    """Why the peer stays down."""


class Passwords:
    """The passwords of one Secret, by canonical address and AS number."""

    def __init__(self, secret_key: ObjectKey, secret: Secret | None, *, unread: bool) -> None:
        """``secret_key`` is the key of the Secret; without it ``unread`` is True if it may exist."""
        self._secret_key = secret_key
        self._unread = unread and secret is None
        self._secret = secret
        self._keys: dict[tuple[str, int], list[str]] = {}
        for key in sorted(secret.data) if secret is not None else ():
            peer = _peer_of(key)
            if peer is not None:
                self._keys.setdefault(peer, []).append(key)

    def find(self, address: str, asn: int, spelling: str) -> PeerPassword:
        """Return the password of a BGPPolicy's peer; ``spelling``: its address as the policy has it.

        Of several keys the one with the policy's spelling is used, as in Antrea; otherwise the first,
        with a problem. An empty value is no password; a value that TCP MD5 cannot use keeps
        the peer down. So does a Secret that could not be read: a peer may have a password in it.
        """
        if self._unread:
            namespace, name = self._secret_key
            reason = f"Secret {namespace}/{name} could not be read"
            text = f"{reason}: peers stay down, as they may have a password in it"
            of_secret = Problem((ObjectRef("Secret", namespace, name),), "", text)
            reference = SecretRef(namespace, name, f"{spelling}-{asn}", verbatim=True)
            return PeerPassword(reference, of_secret, reason)
        secret, keys = self._secret, self._keys.get((address, asn), [])
        if secret is None or not keys:
            return PeerPassword()
        exact = f"{spelling}-{asn}"
        key = exact if exact in keys else keys[0]
        value = secret.data[key]
        if value.known and not value.reveal():
            return PeerPassword()
        namespace, name = secret.key
        ref, field = ObjectRef("Secret", namespace, name), f"data[{key}]"
        problem = None
        unusable = _unusable(value)
        if unusable is not None:
            message = f"peer {address} stays down: {unusable}"
            problem = Problem((ref,), field, message)
        elif key != exact and len(keys) > 1:
            others = ", ".join(keys[1:])
            message = (
                f"{key} is used for peer {address}, and not {others}: all are keys of this peer"
            )
            problem = Problem((ref,), field, message)
        return PeerPassword(SecretRef(namespace, name, key, verbatim=True), problem)


def _peer_of(key: str) -> tuple[str, int] | None:
    """Return canonical address and AS number of a key; None for a key of another form."""
    text, _, asn = key.rpartition("-")
    if not asn.isdecimal() or not asn.isascii() or asn != str(int(asn[:11])):
        return None
    try:
        return canonical_address(text), int(asn)
    except ValueError:
        return None


def _unusable(value: SecretValue) -> str | None:
    if not value.known:
        return None
    try:
        Password(value.reveal())
    except InvalidSecret as error:
        return str(error)
    return None


def secret_key(namespace: str) -> tuple[str, str]:
    """Return namespace and name of Antrea's Secret with the passwords of peers."""
    return (namespace, SECRET)
