"""The state files of earlier releases are read: an upgrade during an outage must not lose routes.

``state_of_releases/VERSION`` has the files that an agent of that release left, of manifests with the
objects of examples/, and a snapshot with objects of every kind.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cells.apply import peer_limits, session_addresses
from cells.state import claims, dialect_states
from reconcilers.compile_manifests import kinds_of
from reconcilers.frrk8s.last_good import restored
from reconcilers.metallb import stored_state
from reconcilers.model import LearnedLimit, SessionAddress
from resources import snapshot_codec
from resources.core import Service
from resources.manifests import last_valid
from resources.snapshot_codec import decode
from speaker.nlri import IPV4_UNICAST
from waggle.dialects import DIALECTS

DIRECTORY = Path(__file__).parent / "state_of_releases"
RELEASES = sorted(DIRECTORY.iterdir())
KINDS = kinds_of(DIALECTS.load())

of_each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)


def test_there_is_a_release() -> None:
    assert RELEASES


@of_each_release
def test_a_snapshot_is_read_whole(release: Path) -> None:
    found = decode((release / "snapshot").read_bytes(), KINDS)
    assert found.unread == ()
    assert (found.node, len(found.rows)) == ("node-1", 20)
    assert all(found.rows.values())
    services = found.rows["Service"]
    assert all(isinstance(row, Service) and row.spec.type for row in services)


@of_each_release
def test_the_last_valid_manifests_are_read_whole(release: Path) -> None:
    found = last_valid.decode((release / "manifests").read_bytes(), KINDS)
    assert found.unread == ()
    kinds = {kind for objects in found.files.values() for kind, _ in objects}
    assert {"Service", "FRRConfiguration", "BGPPeer", "CiliumBGPClusterConfig"} <= kinds


@of_each_release
def test_claims_are_read(release: Path) -> None:
    assert claims.decode((release / "claims.json").read_bytes())


@of_each_release
def test_the_last_good_state_of_a_dialect_is_read(release: Path) -> None:
    octets = (release / "frrk8s.state").read_bytes()
    state = restored(dialect_states.decode(octets, "node-1", "frrk8s"))
    assert state.routers
    octets = (release / "metallb.state").read_bytes()
    assert stored_state.decoded(dialect_states.decode(octets, "node-1", "metallb"))


def test_the_files_of_a_release_keep_their_names_and_formats() -> None:
    """A later release reads them by both; another format is another name and a conversion."""
    limit = LearnedLimit(instance="i", peer="p", family=IPV4_UNICAST, limit=7)
    octets = b'{"format":"waggle-learned-limits/1","limits":[' + msgspec.json.encode(limit) + b"]}"
    assert peer_limits.FORMAT.decode(octets) == (limit,)
    assert peer_limits.FORMAT.encode((limit,)) == octets
    address = SessionAddress(instance="i", peer="p", address="192.0.2.1")
    octets = b'{"format":"waggle-session-addresses/1","sessions":[%s]}'
    octets %= msgspec.json.encode(address)
    assert session_addresses.decode(octets) == (address,)
    assert session_addresses.FORMAT.encode((address,)) == octets
    names = (claims.FILE, peer_limits.FILE, session_addresses.FILE)
    assert names == ("claims.json", "learned-limits.json", "session-addresses.json")
    assert claims.encode({}).startswith(b'{"format":"waggle-claims/1"')
    assert last_valid.FORMAT == "waggle-manifests/1"
    assert snapshot_codec.FORMAT == "waggle-snapshot/1"
    assert dialect_states.FORMAT == "waggle-dialect-state/1"
