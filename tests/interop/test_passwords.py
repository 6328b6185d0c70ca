"""TCP MD5 (RFC 2385) that is added, changed and removed while the agent and its other session go on.

Once the agent connects, and once the router does: then the key is on the agent's listening socket.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import PORT, Lab, running_lab
from tests.support.wait import eventually, settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

GUARDED, OTHER = "ebgp-ipv4", "ebgp-ipv6"
WORDS = ("the-first-password", "the-second-password")


def _give_router(lab: Lab, password: str | None) -> None:
    router = lab.routers[GUARDED]
    (peer,) = router.settings.peers
    peer = dataclasses.replace(peer, password=password)
    router.settings = dataclasses.replace(router.settings, peers=(peer,))
    router.restart()


def _give_agent(lab: Lab, plain: str, password: str | None) -> None:
    """Let the guarded peer, and no other, have a password; `plain` is the manifest without."""
    if password is None:
        lab.agent.write("bgp.yaml", plain)
        lab.agent.remove("secret.json")
        return
    lab.agent.write_objects(
        "secret.json",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bgp", "namespace": "kube-system"},
            "stringData": {"password": password},
        },
    )
    documents = plain.split("---\n")
    shared = next(text for text in documents if "kind: CiliumBGPPeerConfig" in text)
    own = shared.replace("name: all", "name: guarded").replace(
        "spec:", "spec:\n  authSecretRef: bgp"
    )
    head, _, rest = plain.partition(f"name: {GUARDED}")
    changed = rest.replace("name: all", "name: guarded", 1)
    lab.agent.write("bgp.yaml", f"{head}name: {GUARDED}{changed}---\n{own}")


@pytest.mark.parametrize("connects", ["agent", "router"])
@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_a_password_is_added_changed_and_removed_without_a_restart(
    kind: str, connects: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    passive = connects == "agent"
    with running_lab(kind, tmp_path, GUARDED, OTHER, passive=passive) as lab:
        plain = (lab.agent.manifests / "bgp.yaml").read_text()
        if connects == "router":
            # No router listens where the agent connects, so that the routers have to connect.
            plain = plain.replace("localASN: 65001", f"localASN: 65001\n      localPort: {PORT}")
            plain = plain.replace("peerPort: 1790", "peerPort: 1799")
            lab.agent.write("bgp.yaml", plain)

        def refused() -> None:
            assert lab.agent.peers()[GUARDED]["state"] != "Established"
            (theirs,) = lab.routers[GUARDED].peers().values()
            assert not theirs.established

        settles(lab.assert_established, stays=1.0, context=lab.logs)
        process, before = lab.agent.daemon.pid, lab.session_tokens()[OTHER]
        for password in (*WORDS, None):
            _give_agent(lab, plain, password)
            # One side alone is not enough, whichever was there before.
            settles(refused, stays=1.5, context=lab.logs)
            _give_router(lab, password)
            eventually(lab.assert_established, context=lab.logs)
            authentication = lab.agent.peers()[GUARDED].get("authentication")
            assert authentication == (None if password is None else "TCP MD5")
        lab.keeps_promises()
        assert lab.session_tokens()[OTHER] == before
        assert lab.agent.daemon.pid == process
        assert lab.agent.daemon.running
        text = lab.agent.daemon.log.read_text()
        assert not [word for word in WORDS if word in text]
