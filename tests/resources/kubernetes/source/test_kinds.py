"""F06 and F13: kinds that may not be read, are not there yet or not any more, or of another version."""

from __future__ import annotations

from pathlib import Path

from resources.kubernetes import Phase, Selection
from resources.source import Replace
from tests.resources.kubernetes.objects import advertisement, service
from tests.resources.kubernetes.source.reading import SECRETS, reader, run
from tests.support.apiserver import ApiServer, status
from tests.support.kinds import KINDS
from tests.support.wait import until


def test_f06_a_forbidden_kind_is_named_and_the_others_work(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            refusal = 'secrets is forbidden: User "x" cannot list resource "secrets"'
            server.always("list", "secrets", status(403, "Forbidden", refusal))
            wanted = {"Secret": Selection(namespaces=(SECRETS,))}
            async with reader(server, tmp_path, selections=wanted) as observed:
                await until(lambda: observed.names() == {"web"})
                await until(lambda: observed.phase("Secret/kube-system") is Phase.FORBIDDEN)
                message = observed.statuses["Secret/kube-system"].message
                assert message == f"may not list secrets in namespace kube-system: {refusal}"
                assert not observed.events["Secret"]
                # The start does not wait for ever for a role that is not granted.
                await until(lambda: observed.events["Secret"] == [Replace(())])
                server.always("list", "secrets", None)
                server.put({"kind": "Secret", "metadata": {"name": "k", "namespace": SECRETS}})
                await until(lambda: observed.names("Secret") == {"k"})

    run(scenario)


def test_f06_a_kind_that_becomes_forbidden_keeps_its_objects(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names() == {"web"})
                for verb in ("list", "watch"):
                    server.always(verb, "services", status(403, "Forbidden", "no"))
                await server.stop()
                await server.start()
                await until(lambda: observed.phase() is Phase.FORBIDDEN)
                await observed.fails_again()
                assert observed.names() == {"web"}
                assert "the 1 known before are kept" in observed.statuses["Service"].message

    run(scenario)


def test_f06_a_crd_that_is_missing_leaves_its_dialect_idle_until_it_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            server.put(advertisement("pods"))
            server.served["ciliumbgpadvertisements"] = ()
            async with reader(server, tmp_path) as observed:
                await until(lambda: all(observed.events.values()))
                found = observed.statuses["CiliumBGPAdvertisement"]
                assert found.phase is Phase.MISSING
                assert "no ciliumbgpadvertisements.cilium.io" in found.message
                assert observed.names("CiliumBGPAdvertisement") == set()
                server.served["ciliumbgpadvertisements"] = ("v2",)
                await until(lambda: observed.names("CiliumBGPAdvertisement") == {"pods"})
                await until(lambda: observed.phase("CiliumBGPAdvertisement") is Phase.FOLLOWING)

    run(scenario)


def test_f13_a_crd_of_an_older_version_is_read_in_that(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(advertisement("pods"))
            server.served["ciliumbgpadvertisements"] = ("v2alpha1",)
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names("CiliumBGPAdvertisement") == {"pods"})
                # And after an upgrade in the newer one, without anything gone in between.
                server.served["ciliumbgpadvertisements"] = ("v2",)
                await server.stop()
                await server.start()
                server.put(advertisement("late"))
                await until(lambda: observed.names("CiliumBGPAdvertisement") == {"pods", "late"})
                assert observed.replacements("CiliumBGPAdvertisement") == 2

    run(scenario)


def test_f06_a_crd_deleted_between_watches_deletes_no_object(tmp_path: Path) -> None:
    """Its objects go one by one when it is deleted; a 404 alone is no deletion of anything."""

    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(advertisement("pods"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names("CiliumBGPAdvertisement") == {"pods"})
                server.served["ciliumbgpadvertisements"] = ()
                await server.stop()
                await server.start()
                await until(lambda: observed.phase("CiliumBGPAdvertisement") is Phase.FAILING)
                await until(
                    lambda: "any more" in observed.statuses["CiliumBGPAdvertisement"].message
                )
                assert observed.names("CiliumBGPAdvertisement") == {"pods"}

    run(scenario)


def test_f06_kinds_that_are_not_installed_are_looked_for_by_discovery_and_together(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        custom = [kind.plural for kind in KINDS if kind.custom]
        async with ApiServer() as server:
            for plural in custom:
                server.served[plural] = ()
            async with reader(server, tmp_path) as observed:
                await until(lambda: all(observed.events.values()))
                looks = len(server.queries("list", ""))
                await until(lambda: len(server.queries("list", "")) >= looks + 3)
                assert all(observed.phase(k.name) is Phase.MISSING for k in KINDS if k.custom)
                # Not one list of a kind that is not there; a look is for all of them.
                assert not any(server.queries("list", plural) for plural in custom)
                server.served["ciliumbgpadvertisements"] = ("v2",)
                server.put(advertisement("pods"))
                await until(lambda: observed.names("CiliumBGPAdvertisement") == {"pods"})
                assert len(server.queries("list", "ciliumbgpadvertisements")) == 1

    run(scenario)


def test_f06_without_the_right_to_discover_lists_find_the_version(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.always("list", "", status(403, "Forbidden", "no"))
            server.put(advertisement("pods"))
            server.served["ciliumbgpadvertisements"] = ("v2alpha1",)
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names("CiliumBGPAdvertisement") == {"pods"})

    run(scenario)


def test_f06_a_crd_that_is_deleted_while_running_is_a_defect(tmp_path: Path) -> None:
    """Its objects are deleted one by one in the watch, which is believed; that must not go unseen."""

    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(advertisement("pods"))
            async with reader(server, tmp_path) as observed:
                kind = "CiliumBGPAdvertisement"
                await until(lambda: observed.names(kind) == {"pods"})
                server.delete(kind, "pods")
                await until(lambda: observed.names(kind) == set())
                server.served["ciliumbgpadvertisements"] = ()
                await server.stop()
                await server.start()
                await until(lambda: observed.phase(kind) is Phase.REMOVED)
                assert "any more (was its CRD deleted?)" in observed.statuses[kind].message
                server.served["ciliumbgpadvertisements"] = ("v2",)
                await until(lambda: observed.phase(kind) is Phase.FOLLOWING)

    run(scenario)
