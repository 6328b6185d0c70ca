"""Every key of the router's file reaches the speaker; a key that is absent has its default."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconcilers.kernel.options import FibOptions
from speaker.api import (
    BfdProfile,
    Confederation,
    DynamicPeerConfig,
    GracefulRestart,
    InstanceConfig,
    Match,
    MaximumPrefixes,
    PeerConfig,
    Policy,
    PrefixRule,
    Secret,
    Set,
    Term,
)
from speaker.bfd.session_values import Key
from speaker.iana import Role
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from waggle.__main__ import main
from waggle.router_config import Config, ConfigError, load
from waggle.router_config.file import INSTANCE

WHOLE = """
asn: 65000
routerID: 192.0.2.1
listen: [{address: 192.0.2.1, port: 1179}, {address: "::"}]
vrf: red
confederation: {identifier: 64999, members: [65000, 65009]}
selectionDeferralTime: 60
apiSocket: /run/router.sock
bfdSocket: /run/waggle-bfd/bfd.sock
bfdProfiles:
  quick:
    receiveInterval: 100
    transmitInterval: 50
    detectMultiplier: 5
    echoMode: true
    echoInterval: 20
    passiveMode: true
    minimumTTL: 250
    multihop: true
    strict: true
originate: [10.0.0.0/24]
prefixLists:
  private: [10.0.0.0/8, {prefix: 192.168.0.0/16, ge: 24, le: 28}]
policies:
  inbound:
    default: accept
    terms:
    - name: first
      match:
        prefixList: private
        families: [ipv4-unicast]
        communities: ["65000:1"]
        allCommunities: ["65000:2", "65000:3"]
        asPath: "65001 *"
        asPathMin: 1
        asPathMax: 5
        origin: [igp, egp, incomplete]
        source: received
        neighbors: [tor-1]
      set:
        localPreference: 200
        med: 10
        addMed: 5
        removeMed: false
        communities: ["65000:4"]
        addCommunities: ["65000:5"]
        removeCommunities: ["65000:6"]
        prepend: [65000, 65000]
        nextHop: 192.0.2.9
      action: next
    - match: {source: local, prefixes: [10.1.0.0/16]}
      action: reject
  outbound: {}
neighbors:
- name: tor-1
  address: 10.0.0.1
  asn: 65001
  localASN: 64512
  port: 1179
  passive: true
  families: [ipv6-unicast]
  import: inbound
  export: outbound
  addPath: both
  holdTime: 30
  keepaliveTime: 7
  connectRetryTime: 5
  delayOpenTime: 2
  role: peer
  roleStrict: true
  enforceFirstAS: false
  maximumPrefixes:
  - {limit: 100, family: ipv4-unicast, warningPercent: 50, warningOnly: true, restartAfter: 60}
  - {limit: 200}
  ebgpMultihop: 3
  interface: eth0
  localAddress: 10.0.0.2
  nextHopIPv4: 192.0.2.8
  nextHopIPv6: 2001:db8::8
  password: secret
  gracefulRestart:
    restartTime: 10
    staleTime: 20
    longLivedTime: 30
    notification: false
    forwardingPreserved: false
  bfd: {profile: quick, transmitInterval: 70, strict: false}
- prefix: 10.9.0.0/16
  limit: 5
  ttlSecurity: 1
"""


def config(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "router.yaml"
    path.write_text(text)
    return load(path)


def test_every_key_of_the_router(tmp_path: Path) -> None:
    loaded = config(tmp_path, WHOLE)
    assert loaded.instance() == InstanceConfig(
        name=INSTANCE,
        local_asn=65000,
        router_id="192.0.2.1",
        vrf="red",
        listen=(("192.0.2.1", 1179), ("::", 179)),
        confederation=Confederation(64999, (65000, 65009)),
        selection_deferral_time=60,
    )
    assert (loaded.api_socket, loaded.originate) == ("/run/router.sock", ("10.0.0.0/24",))


INBOUND = Policy(
    name="inbound",
    terms=(
        Term(
            name="first",
            match=Match(
                prefixes=(PrefixRule("10.0.0.0/8"), PrefixRule("192.168.0.0/16", 24, 28)),
                families=(IPV4_UNICAST,),
                communities=("65000:1",),
                all_communities=("65000:2", "65000:3"),
                as_path="65001 *",
                as_path_min=1,
                as_path_max=5,
                origin=(0, 1, 2),
                received=True,
                peers=("tor-1",),
            ),
            set=Set(
                local_preference=200,
                med=10,
                add_med=5,
                remove_med=False,
                communities=("65000:4",),
                add_communities=("65000:5",),
                remove_communities=("65000:6",),
                prepend=(65000, 65000),
                next_hop="192.0.2.9",
            ),
            action="next",
        ),
        Term(
            name="policies.inbound.terms[1]",
            match=Match(received=False, prefixes=(PrefixRule("10.1.0.0/16"),)),
            action="reject",
        ),
    ),
    default="accept",
)


def test_every_key_of_a_neighbor(tmp_path: Path) -> None:
    fixed, dynamic = config(tmp_path, WHOLE).peers()
    assert fixed == PeerConfig(
        name="tor-1",
        address="10.0.0.1",
        peer_asn=65001,
        local_asn=64512,
        port=1179,
        passive=True,
        families=(IPV6_UNICAST,),
        import_=INBOUND,
        export="all",
        export_policy=Policy(name="outbound", terms=(), default="reject"),
        add_path="both",
        hold_time=30,
        keepalive_time=7,
        connect_retry_time=5,
        delay_open_time=2,
        role=Role.PEER,
        role_strict=True,
        enforce_first_as=False,
        maximum_prefixes=(
            MaximumPrefixes(100, IPV4_UNICAST, 50, True, 60),
            MaximumPrefixes(200, None, 75, False, None),
        ),
        ebgp_multihop=3,
        ttl_security=0,
        interface="eth0",
        local_address="10.0.0.2",
        next_hop_ipv4="192.0.2.8",
        next_hop_ipv6="2001:db8::8",
        password=Secret("secret"),
        graceful_restart=GracefulRestart(
            restart_time=10,
            stale_time=20,
            long_lived_time=30,
            notification=False,
            forwarding_preserved=False,
        ),
        bfd=BfdProfile(
            receive_interval=100,
            transmit_interval=70,
            detect_multiplier=5,
            echo_interval=20,
            echo_mode=True,
            passive=True,
            minimum_ttl=250,
            multihop=True,
            strict=False,
            name="quick",
        ),
    )
    assert isinstance(dynamic, DynamicPeerConfig)
    assert (dynamic.prefix, dynamic.name, dynamic.limit) == ("10.9.0.0/16", "10.9.0.0/16", 5)
    assert dynamic.ttl_security == 1


def test_the_defaults_of_the_router_and_of_a_neighbor(tmp_path: Path) -> None:
    text = "asn: 65000\nrouterID: 192.0.2.1\nneighbors: [{address: 10.0.0.1, gracefulRestart: {}}]"
    loaded = config(tmp_path, text)
    assert loaded.instance() == InstanceConfig(
        name=INSTANCE,
        local_asn=65000,
        router_id="192.0.2.1",
        vrf=None,
        listen=(),
        confederation=None,
        selection_deferral_time=120,
    )
    assert (loaded.api_socket, loaded.originate) == (None, ())
    (peer,) = loaded.peers()
    assert peer == PeerConfig(
        name="10.0.0.1",
        address="10.0.0.1",
        peer_asn=0,
        local_asn=None,
        port=179,
        passive=False,
        families=(IPV4_UNICAST, IPV6_UNICAST),
        import_="none",
        export="none",
        export_policy=None,
        add_path="none",
        hold_time=90,
        keepalive_time=30,
        connect_retry_time=120,
        delay_open_time=0,
        role=None,
        role_strict=False,
        enforce_first_as=None,
        maximum_prefixes=(),
        ebgp_multihop=1,
        ttl_security=0,
        interface=None,
        local_address=None,
        next_hop_ipv4=None,
        next_hop_ipv6=None,
        password=None,
        graceful_restart=GracefulRestart(
            restart_time=120,
            stale_time=360,
            long_lived_time=0,
            notification=True,
            forwarding_preserved=True,
        ),
    )


@pytest.mark.parametrize(
    ("given", "profile"),
    [
        ("{}", BfdProfile()),
        ("slow", BfdProfile(receive_interval=1000, transmit_interval=1000, name="slow")),
        ("{multihop: false, passiveMode: true}", BfdProfile(multihop=False, passive=True)),
    ],
)
def test_bfd_of_a_neighbor_is_a_profile_or_settings(
    given: str, profile: BfdProfile, tmp_path: Path
) -> None:
    text = f"""
asn: 65000
routerID: 192.0.2.1
bfdProfiles: {{slow: {{receiveInterval: 1000, transmitInterval: 1000}}}}
neighbors: [{{address: 10.0.0.1, bfd: {given}}}]
"""
    (peer,) = config(tmp_path, text).peers()
    assert peer.bfd == profile


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (None, "No such file or directory"),
        (b"", "a secret has 1 to 20 octets, in one line"),
        (b"\n", "a secret has 1 to 20 octets, in one line"),
        (b"a secret that is too long", "a secret has 1 to 20 octets, in one line"),
    ],
)
def test_a_key_of_bfd_that_cannot_be_read_is_an_error_without_the_secret(
    content: bytes | None, rule: str, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    bfd = f"{{key: {{file: {file}}}}}"
    text = "asn: 65000\nrouterID: 192.0.2.1\nneighbors: [{address: 10.0.0.1, bfd: %s}]"
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, text % bfd)
    (sentence,) = caught.value.sentences
    assert sentence.endswith(f"neighbors[0].bfd.key.file: {file}: {rule}")


def test_a_key_of_bfd_is_no_named_pipe(tmp_path: Path) -> None:
    """It is read with each reload, and its writer may never come."""
    file = tmp_path / "key"
    os.mkfifo(file)
    bfd = f"{{key: {{file: {file}}}}}"
    text = "asn: 65000\nrouterID: 192.0.2.1\nneighbors: [{address: 10.0.0.1, bfd: %s}]"
    with pytest.raises(ConfigError, match=f"bfd.key.file: {file}: it is a named pipe"):
        config(tmp_path, text % bfd)


def test_peers_are_made_once(tmp_path: Path) -> None:
    """A policy may have a hundred thousand prefixes."""
    found = config(
        tmp_path,
        "asn: 65000\nrouterID: 192.0.2.1\nneighbors: [{address: 10.0.0.1, asn: 65001}]",
    )
    assert found.peers()
    assert found.peers() is found.peers()


@pytest.mark.parametrize("place", ["neighbors[0].bfd.key", "bfdProfiles.quick.key"])
@pytest.mark.parametrize(("key", "value"), [("type", "md5"), ("password", "hidden")])
def test_md5_and_passwords_of_bfd_are_refused_with_the_reason(
    place: str, key: str, value: str, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("secret\n")
    bfd = f"{{key: {{file: {tmp_path}/key, {key}: {value}}}}}"
    profile = f"bfdProfiles: {{quick: {bfd}}}\nneighbors: [{{address: 10.0.0.1, bfd: quick}}]"
    neighbor = f"neighbors: [{{address: 10.0.0.1, bfd: {bfd}}}]"
    ends = profile if "quick" in place else neighbor
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, f"asn: 65000\nrouterID: 192.0.2.1\n{ends}\n")
    (sentence,) = caught.value.sentences
    assert sentence.endswith(
        f'{place}: unknown key "{key}": the type of authentication is SHA1: keyed MD5 is not offered, '
        "which RFC 5880 has for old systems alone, nor a password, which is readable on the wire"
    )


def test_a_mistyped_key_of_a_key_of_bfd_is_no_question_of_its_type(tmp_path: Path) -> None:
    text = "asn: 65000\nrouterID: 192.0.2.1\nneighbors: [{address: 10.0.0.1, bfd: {key: {fil: x}}}]"
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, text)
    assert any('unknown key "fil"' in sentence for sentence in caught.value.sentences)
    assert "MD5" not in str(caught.value)


def test_a_key_of_bfd_is_the_neighbors_or_its_profiles(tmp_path: Path) -> None:
    for name in ("own", "shared"):
        (tmp_path / name).write_text(f"secret {name}\n")
    text = f"""
asn: 65000
routerID: 192.0.2.1
bfdProfiles: {{quick: {{key: {{file: {tmp_path}/shared}}}}}}
neighbors:
- {{address: 10.0.0.1, bfd: quick}}
- address: 10.0.0.2
  bfd: {{profile: quick, key: {{file: {tmp_path}/own, id: 2, meticulous: false}}}}
- {{address: 10.0.0.3, bfd: {{}}}}
"""
    found = config(tmp_path, text)
    assert found.bfd_keys() == {
        "10.0.0.1": Key(1, b"secret shared", meticulous=True),
        "10.0.0.2": Key(2, b"secret own", meticulous=False),
    }
    # The speaker's configuration, which is recorded, has none.
    assert "secret" not in repr((found, found.peers()))


@pytest.mark.parametrize("address", ["2001:DB8::A", "2001:db8:0::a"])
def test_a_neighbor_has_one_name_however_its_address_is_written(
    address: str, tmp_path: Path
) -> None:
    """As a neighbor that connects from a prefix has: an entry takes its session over."""
    text = "asn: 65000\nrouterID: 192.0.2.1\nneighbors: [{address: '%s'}]\n"
    (peer,) = config(tmp_path, text % address).peers()
    assert isinstance(peer, PeerConfig)
    assert (peer.name, peer.address) == ("2001:db8::a", "2001:db8::a")


@pytest.mark.parametrize(("hold", "keepalive"), [(0, 0), (3, 1), (90, 30), (100, 33)])
def test_the_keepalive_time_is_a_third_of_the_hold_time(
    hold: int, keepalive: int, tmp_path: Path
) -> None:
    text = "asn: 65000\nrouterID: 192.0.2.1\nneighbors: [{address: 10.0.0.1, holdTime: %d}]"
    (peer,) = config(tmp_path, text % hold).peers()
    assert peer.keepalive_time == keepalive


def test_the_defaults_of_a_range_and_of_a_term(tmp_path: Path) -> None:
    text = """
asn: 65000
routerID: 192.0.2.1
policies: {p: {terms: [{}]}}
neighbors: [{prefix: 10.0.0.0/8, import: p, export: local}]
"""
    (peer,) = config(tmp_path, text).peers()
    assert isinstance(peer, DynamicPeerConfig)
    assert (peer.limit, peer.export, peer.export_policy) == (1000, "local", None)
    term = Term(name="policies.p.terms[0]", match=Match(), set=Set(), action="accept")
    assert peer.import_ == Policy(name="p", terms=(term,), default="reject")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "listen: [{address: '::'}, {address: '::'}]",
            "listen[1]: :: port 179 is listed twice",
        ),
        (
            "bfdProfiles: {slow: {}}\nneighbors: [{address: 10.0.0.1, bfd: slwo}]",
            "neighbors[0]: bfd: there is no profile 'slwo'; did you mean slow?",
        ),
        (
            "bfdProfiles: {slow: {strict: 7}}",
            "bfdProfiles.slow.strict: ",
        ),
        (
            "neighbors: [{prefix: 10.0.0.0/8, bfd: {}}]",
            "neighbors[0]: bfd: not for the neighbors of a prefix",
        ),
        (
            "neighbors: [{address: 10.0.0.1, bfd: {receiveInterval: 9}}]",
            "neighbors[0].bfd.receiveInterval: ",
        ),
        (
            "policies: {all: {}}",
            "policies.all: all is a reserved word",
        ),
        (
            "policies: {p: {terms: [{match: {prefixList: none, prefixes: []}}]}}",
            "policies.p.terms[0].match: prefixes and prefixList exclude each other",
        ),
        (
            "policies: {p: {terms: [{match: {prefixList: none}}]}}",
            "policies.p.terms[0].match.prefixList: no prefix list 'none'",
        ),
        (
            "policies: {p: {terms: [{match: {families: [ipv5]}}]}}",
            "policies.p.terms[0].match.families: ",
        ),
        (
            "prefixLists: {l: [10.0.0.0/8, 10.0.0.1/8]}",
            "prefixLists.l[1]: ",
        ),
        (
            "neighbors: [{address: 10.0.0.1, name: a}, {address: 10.0.0.2, name: a}]",
            "neighbors[1]: duplicate name a",
        ),
        (
            "neighbors: [{address: 10.0.0.1}, {address: 10.0.0.1, name: a}]",
            "neighbors[1]: address: 10.0.0.1 is that of neighbor 10.0.0.1",
        ),
        (
            "neighbors: [{}]",
            "neighbors[0]: one of address, prefix and interface is required",
        ),
        (
            "neighbors: [{prefix: 10.0.0.0/8, interface: eth0}]",
            "neighbors[0]: prefix excludes address and interface",
        ),
        (
            "neighbors: [{address: 'fe80::1'}]",
            (
                "neighbors[0]: interface: fe80::1 is a link-local address: the key interface, or the "
                "address with %INTERFACE, is required"
            ),
        ),
        (
            "neighbors: [{address: 10.0.0.1, families: [ipv4, ipv4-unicast]}]",
            "neighbors[0]: families: each family once",
        ),
        (
            "neighbors: [{address: 10.0.0.1, import: alll}]",
            "neighbors[0]: import: 'alll' is neither all, none nor a policy; did you mean all?",
        ),
        (
            "neighbors: [{address: 10.0.0.1, export: lokal}]",
            (
                "neighbors[0]: export: 'lokal' is neither all, local, none nor a policy; "
                "did you mean local?"
            ),
        ),
        (
            "neighbors: [{address: 10.0.0.1, maximumPrefixes: [{limit: 1, family: ipv5}]}]",
            "neighbors[0]: maximumPrefixes.family: ",
        ),
    ],
)
def test_an_error_names_the_key(text: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, f"asn: 65000\nrouterID: 192.0.2.1\n{text}")
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("false", None),
        ("true", FibOptions(fib=True)),
        ("{}", FibOptions(fib=True)),
        (
            (
                "{table: 100, metric: 5, protocol: 7, multipath: 2, multipathRelax: true, "
                "blackhole: true, defaultRoute: true, keep: false, socket: /run/w}"
            ),
            FibOptions(
                fib=True,
                table=100,
                metric=5,
                protocol=7,
                multipath=2,
                multipath_relax=True,
                blackhole=True,
                default_route=True,
                keep=False,
                socket="/run/w",
            ),
        ),
    ],
)
def test_routes_in_the_kernel_have_the_options_of_an_agent(
    kernel: str, expected: FibOptions | None, tmp_path: Path
) -> None:
    text = f"asn: 65000\nrouterID: 192.0.2.1\nkernel: {kernel}\n"
    assert config(tmp_path, text).fib() == expected


@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        ("{table: 255}", "kernel.table: 255 is the kernel's table of local addresses"),
        ("{protocol: 4}", "kernel.protocol: "),
        ("{multipath: 257}", "kernel.multipath: "),
        ("{tabel: 1}", 'kernel: unknown key "tabel"; did you mean table?'),
        ("yes please", "kernel: "),
    ],
)
def test_a_wrong_key_of_kernel_is_named(kernel: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        config(tmp_path, f"asn: 65000\nrouterID: 192.0.2.1\nkernel: {kernel}\n")
    (sentence,) = raised.value.sentences
    assert error in sentence


def test_the_file_to_check_is_also_that_of_the_flag(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["router", "check", "examples/router.yaml"]) == 0
    printed = capsys.readouterr()
    assert main(["router", "-c", "examples/router.yaml", "check"]) == 0
    assert capsys.readouterr() == printed
    assert main(["router", "check"]) == 2
    assert (
        capsys.readouterr().err
        == "waggle router check: FILE is missing; see waggle router check --help\n"
    )


def test_a_prefix_list_is_one_object_for_its_policies_and_for_the_next_file(tmp_path: Path) -> None:
    """They are compared by identity: a list may have many thousand entries."""
    text = """
asn: 65000
routerID: 192.0.2.1
prefixLists:
  lan: [10.0.0.0/8]
  wan: [172.16.0.0/12]
policies:
  a: {terms: [{match: {prefixList: lan}}, {match: {prefixList: wan}}]}
  b: {terms: [{match: {prefixList: lan}}]}
neighbors: [{address: 10.0.0.1, asn: 65001, import: a}, {address: 10.0.0.2, asn: 65002, import: b}]
"""

    def lists(found: Config) -> list[list[object]]:
        policies = [peer.import_ for peer in found.peers()]
        assert all(isinstance(policy, Policy) for policy in policies)
        return [[term.match.prefixes for term in policy.terms] for policy in policies]  # type: ignore[union-attr]

    path = tmp_path / "router.yaml"
    path.write_text(text)
    before = load(path)
    (lan, wan), (same,) = lists(before)
    assert same is lan
    path.write_text(text.replace("172.16.0.0/12", "192.168.0.0/16"))
    (lan_again, other), _ = lists(load(path, before))
    assert lan_again is lan
    assert other != wan
