"""The file of ``waggle router``: what it means, and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from speaker.api import DynamicPeerConfig, GracefulRestart, PeerConfig, PrefixRule
from speaker.iana import Role
from speaker.nlri import IPV6_UNICAST
from tests.cmd.router_process import MINIMAL, command, write
from tests.support import plain_yaml
from waggle.router_config import ConfigError, load


def test_the_example_is_valid() -> None:
    config = load(Path(__file__).parents[2] / "examples/router.yaml")
    (peer,) = config.peers()
    assert isinstance(peer, PeerConfig)
    assert (peer.peer_asn, peer.passive, peer.import_, peer.export) == (65001, True, "all", "none")


def test_rfc8212_without_a_policy_no_route_is_imported_or_exported(tmp_path: Path) -> None:
    config = load(write(tmp_path, MINIMAL + "neighbors: [{address: 10.0.0.1, asn: 1}]"))
    (peer,) = config.peers()
    assert (peer.import_, peer.export) == ("none", "none")


def test_one_link_local_address_on_two_interfaces_is_two_neighbours(tmp_path: Path) -> None:
    text = "neighbors: [{address: 'fe80::1%eth0'}, {address: 'fe80::1%eth1'}]"
    assert len(load(write(tmp_path, MINIMAL + text)).peers()) == 2


def test_a_router_may_listen_on_all_addresses(tmp_path: Path) -> None:
    text = "listen: [{address: '::'}, {address: 0.0.0.0}, {address: 'fe80::1%eth0'}]"
    assert len(load(write(tmp_path, MINIMAL + text)).instance().listen) == 3


def test_a_prefix_makes_a_dynamic_neighbour(tmp_path: Path) -> None:
    config = load(write(tmp_path, MINIMAL + "neighbors: [{prefix: 10.0.0.0/8, holdTime: 9}]"))
    (peer,) = config.peers()
    assert isinstance(peer, DynamicPeerConfig)
    assert (peer.prefix, peer.hold_time, peer.keepalive_time) == ("10.0.0.0/8", 9, 3)


def test_a_neighbours_as_may_be_a_class(tmp_path: Path) -> None:
    for text in ("internal", "external"):
        config = load(write(tmp_path, MINIMAL + f"neighbors: [{{address: 10.0.0.1, asn: {text}}}]"))
        (peer,) = config.peers()
        assert peer.peer_asn == text


@pytest.mark.parametrize(
    ("setting", "role", "enforced"),
    [
        ("", None, True),
        ("role: rs-client", Role.ROUTE_SERVER_CLIENT, False),
        ("role: rs-server", Role.ROUTE_SERVER, True),
        ("enforceFirstAS: false", None, False),
        ("role: rs-client, enforceFirstAS: true", Role.ROUTE_SERVER_CLIENT, True),
    ],
)
def test_rfc7947_a_client_of_a_route_server_takes_any_first_as(
    setting: str, role: Role | None, enforced: bool, tmp_path: Path
) -> None:
    text = f"neighbors: [{{address: 10.0.0.1, asn: 65001, {setting}}}]"
    (peer,) = load(write(tmp_path, MINIMAL + text)).peers()
    assert peer.role == role
    assert peer.first_as_enforced == enforced


def test_a_neighbour_names_its_policies(tmp_path: Path) -> None:
    text = """
prefixLists: {ours: [192.0.2.0/24, {prefix: 10.0.0.0/8, ge: 16, le: 24}]}
policies:
  out:
    terms:
      - {match: {prefixList: ours, source: local}, set: {med: 5}}
neighbors: [{address: 10.0.0.1, export: out}]
"""
    (peer,) = load(write(tmp_path, MINIMAL + text)).peers()
    assert peer.export == "all"
    assert peer.export_policy is not None
    (term,) = peer.export_policy.terms
    assert term.match.prefixes == (PrefixRule("192.0.2.0/24"), PrefixRule("10.0.0.0/8", 16, 24))
    assert (term.match.received, term.set.med, term.name) == (False, 5, "policies.out.terms[0]")


def test_collectors_inherit_the_settings_of_bmp(tmp_path: Path) -> None:
    text = """
bmp:
  collectors:
    - {address: 192.0.2.50}
    - {address: 192.0.2.51, port: 5000, name: spare, monitor: [adj-rib-out], retryTime: 5,
       localAddress: 192.0.2.1, longestRetryTime: 60, queueLimit: 1000000}
  monitor: [pre-policy, loc-rib]
  statisticsInterval: 10
  systemName: r1
"""
    one, other = load(write(tmp_path, MINIMAL + text)).collectors()
    assert (one.name, one.port) == ("192.0.2.50 port 11019", 11019)
    assert (one.monitor, other.monitor) == (("pre-policy", "loc-rib"), ("adj-rib-out",))
    assert (other.name, other.port, other.retry_time) == ("spare", 5000, 5)
    assert (one.local_address, other.local_address) == (None, "192.0.2.1")
    assert (other.longest_retry_time, other.queue_limit) == (60, 1_000_000)
    assert one.statistics_interval == other.statistics_interval == 10
    assert one.system_name == "r1"
    assert one.system_description == "waggle router AS 65000 (192.0.2.1)"


@pytest.mark.parametrize(
    ("bmp", "error"),
    [
        ("{collectors: [{port: 1}]}", 'bmp.collectors[0]: the key "address" is missing'),
        ("{collectors: [{address: x}]}", "bmp.collectors[0]: collector 'x port 11019': address"),
        (
            "{collectors: [{address: '::1'}, {address: '::1'}]}",
            "bmp.collectors[1]: duplicate name ::1 port 11019",
        ),
        ("{monitor: [all]}", "bmp.monitor[0]: 'all' is not a known value"),
        ("{statistics: 5}", 'bmp: unknown key "statistics"'),
    ],
)
def test_invalid_monitoring_is_rejected(tmp_path: Path, bmp: str, error: str) -> None:
    path = write(tmp_path, f"{MINIMAL}bmp: {bmp}\n")
    with pytest.raises(ConfigError, match=re.escape(f"{path}: {error}")):
        load(path)


def test_graceful_restart_has_times(tmp_path: Path) -> None:
    neighbor = "{address: 10.0.0.1, gracefulRestart: {restartTime: 9, longLivedTime: 70}}"
    (peer,) = load(write(tmp_path, f"{MINIMAL}neighbors: [{neighbor}]")).peers()
    assert peer.graceful_restart == GracefulRestart(restart_time=9, long_lived_time=70)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (MINIMAL + "lisen: []", 'unknown key "lisen"'),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, holdtime: 3}]",
         'neighbors[0]: unknown key "holdtime"'),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, import: some}]", "neighbors[0]: import: 'some'"),
        (MINIMAL + "policies: {p: {terms: [{match: {prefixList: x}}]}}",
         "policies.p.terms[0].match.prefixList: no prefix list 'x'"),
        (MINIMAL + "policies: {p: {terms: [{match: {comunities: []}}]}}",
         'policies.p.terms[0].match: unknown key "comunities"'),
        (MINIMAL + "policies: {p: {terms: [{set: {addCommunities: [x]}}]}}",
         "policies.p.terms[0].set.addCommunities: 'x' is not a community"),
        (MINIMAL + "policies: {all: {}}", "policies.all: all is a reserved word"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, prefix: 10.0.0.0/8}]", "prefix excludes address"),
        (MINIMAL + "neighbors: [{address: router1}]", "neighbors[0]: peer 'router1': address"),
        (MINIMAL + "neighbors: [{address: 0.0.0.0}]", "neighbors[0]: peer '0.0.0.0': address"),
        (MINIMAL + "neighbors: [{address: 'fe80::1'}]",
         "neighbors[0]: interface: fe80::1 is a link-local address"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, nextHopIPv4: 'fe80::1'}]",
         "neighbors[0]: peer '10.0.0.1': nextHopIPv4: fe80::1 is not an IPv4 address"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, enforceFirstAS: 1}]",
         "neighbors[0].enforceFirstAS: expected"),
        (MINIMAL + "originate: [10.0.0.0/33]",
         "originate[0]: '10.0.0.0/33' is not a prefix such as 10.0.0.0/24"),
        (MINIMAL + "neighbors: [{address: 224.0.0.5}]", "neighbors[0]: peer '224.0.0.5': address"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, asn: 23456}]",
         "neighbors[0]: peer '10.0.0.1': asn: 23456 is AS_TRANS"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, nextHopIPv4: 0.0.0.0}]",
         "neighbors[0]: peer '10.0.0.1': nextHopIPv4: 0.0.0.0 is not the address of a host"),
        (MINIMAL.replace("asn: 65000", "asn: 23456"), "asn: 23456 is AS_T"),
        (MINIMAL + "policies: {p: {terms: [{set: {prepend: [0]}}]}}",
         "policies.p.terms[0].set.prepend: 0: an AS number is 1 to 4294967295"),
        (MINIMAL + "policies: {p: {terms: [{set: {nextHop: 224.0.0.1}}]}}",
         "policies.p.terms[0].set.nextHop: 224.0.0.1 is not the address of a host"),
        (MINIMAL + "policies: {p: {terms: [{}, {name: n, match: {asPath: x}}]}}",
         "policies.p.terms[1].match.asPath: AS path"),
        (MINIMAL + "policies: {p: {terms: [{match: {families: [ipv9]}}]}}",
         "policies.p.terms[0].match.families: "),
        (MINIMAL + "policies: {p: {}, q: {default: maybe}}", "policies.q.default: 'maybe' is not"),
        (MINIMAL + "policies: {p: {terms: [{match: {prefixes: [10.0.0.0/8, x]}}]}}",
         "policies.p.terms[0].match.prefixes: 'x' is not a prefix"),
        (MINIMAL + "prefixLists: {a: [], b: [10.0.0.0/8, {prefix: 10.0.0.0/8, ge: 4}]}",
         "prefixLists.b[1]: 10.0.0.0/8: lengths 4 to 32 are not within it"),
        (MINIMAL + "prefixLists: {a: [{prefix: 10.0.0.0/8, lt: 4}]}",
         'prefixLists.a[0]: unknown key "lt"'),
        (MINIMAL + "originate: [224.0.0.0/4]", "originate[0]: 224.0.0.0/4: a multicast or reserved"),
        (MINIMAL + "originate: [10.0.0.0/8, 'ff00::/8']", "originate[1]: ff00::/8: a multicast"),
        (MINIMAL + "originate: [127.0.0.0/8]", "originate[0]: 127.0.0.0/8: addresses of one host"),
        (MINIMAL + "originate: ['fe80::/64']", "originate[0]: fe80::/64: addresses of one host"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, holdTime: 2}]", "holdTime: 0, or at least 3"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, families: [ipv9]}]",
         "neighbors[0]: families: 'ipv9'"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, families: [ipv4-unicast, ipv4-unicast]}]",
         "neighbors[0]: families: each family once"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, maximumPrefixes: [{limit: 1, family: x}]}]",
         "neighbors[0]: maximumPrefixes.family: 'x'"),
        (MINIMAL + "neighbors: [{address: 'fe80::1', interface: a/b}]",
         "interface: 'a/b' cannot be an interface's name"),
        (MINIMAL + "neighbors: [{interface: an-interface-too}]", "cannot be an interface's name"),
        (MINIMAL + "neighbors: [{address: 'fd00::1', name: a}, {address: 'FD00:0::1', name: b}]",
         "neighbors[1]: address: fd00::1 is that of neighbor a"),
        (MINIMAL + "neighbors: [{address: 'fe80::1%eth0'}, {address: 'fe80::1', interface: eth0}]",
         "neighbors[1]: address: fe80::1 is that of neighbor fe80::1%eth0"),
        (MINIMAL + "neighbors: [{prefix: 10.0.0.0/8, name: a}, {prefix: 10.0.0.0/8, name: b}]",
         "neighbors[1]: prefix: 10.0.0.0/8 is that of neighbor a"),
        (MINIMAL + "neighbors: [{interface: eth0, name: a}, {interface: eth0, name: b}]",
         "neighbors[1]: interface: eth0 is that of neighbor a"),
        (MINIMAL + "listen: [{address: 224.0.0.1}]", "listen: 224.0.0.1 is not the address"),
        (MINIMAL + "listen: [{address: 127.0.0.1}, {address: 127.0.0.1, port: 179}]",
         "listen[1]: 127.0.0.1 port 179 is listed twice"),
        (MINIMAL + "originate: [224.0.0.0/3]", "originate[0]: 224.0.0.0/3: a multicast or reserved"),
        (MINIMAL + "originate: []\noriginate: [10.0.0.0/8]",
         "line 4: duplicate key 'originate'"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, asn: 1, asn: 2}]",
         "duplicate key 'asn'"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1}, {address: 10.0.0.1}]",
         "neighbors[1]: duplicate name 10.0.0.1"),
        (MINIMAL + "neighbors: [{address: 10.0.0.1, gracefulRestart: {restartTime: 4096}}]",
         "gracefulRestart.restartTime: 4096"),
        (MINIMAL + "originate: [10.0.0.1/24]", "originate[0]: 10.0.0.1/24 has host bits set"),
        (MINIMAL + "listen: [{address: 127.0.0.1, port: 70000}]", "listen[0].port"),
        ("asn: 65000", 'the key "routerID" is missing'),
        ("asn: x\nrouterID: 192.0.2.1", "asn"),
        ("asn: 65000\nrouterID: 0.0.0.0", "routerID: an IPv4 address"),
        ("asn: [", "line"),
        ("", "expected a mapping, not nothing"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_one_sentence_with_the_key(
    tmp_path: Path, text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, text)
    assert command("-c", str(path)) == 2
    message = capsys.readouterr().err
    assert sentence in message
    assert message.startswith(f"waggle router: {path}: ")
    assert message.endswith("; waggle docs router describes the file\n")
    assert not re.search(r"`|Expected|int\b|str\b", message.removeprefix(f"waggle router: {path}"))
    assert message.count("\n") == 1


ROLES_LINE = (
    "neighbors[0].role: 'provder' is not a known value: customer, peer, provider, rs-client, "
    "rs-server; did you mean provider?"
)


FAULTY = """
asn: 65000
routerID: 192.0.2.1
lisen: []
listen: [{address: 2:31:40}]
neighbors:
  - address: 10.0.0.1
    holdTime: 2
    ttlSecurity: 3
    ebgp_multihop: 4
    ebgpMultihop: 5
    families: [ipv9]
    import: edg
    role: provder
    nextHopIPv4: x
  - address: 5
    asn: internl
policies:
  edge: {default: acept, terms: [{match: {families: [ipv9]}}, {set: {prepend: [0]}}]}
originate: [10.0.0.0/33, 10.0.0.1/24]
"""


def test_all_problems_of_a_file_are_reported_at_once_each_in_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, FAULTY)
    assert command("check", str(path)) == 2
    lines = (
        capsys.readouterr()
        .err.removesuffix("; waggle docs router describes the file\n")
        .splitlines()
    )
    assert [line.removeprefix(f"waggle router check: {path}: ") for line in lines] == [
        "policies.edge.default: 'acept' is not a known value: accept, reject; did you mean accept?",
        'unknown key "lisen"; did you mean listen?',
        'neighbors[0]: unknown key "ebgp_multihop"; did you mean ebgpMultihop?',
        ROLES_LINE,
        "neighbors[1].address: expected a text or nothing, not a whole number",
        "neighbors[1].asn: 'internl' is not a known value: external, internal; did you mean internal?",
        # As it is written: YAML 1.1 has the number 9100 for it.
        "listen: '2:31:40' is not an IP address",
        "policies.edge.terms[0].match.families: 'ipv9' is not an address family such as ipv4-unicast",
        "policies.edge.terms[1].set.prepend: 0: an AS number is 1 to 4294967295 (RFC 7607)",
        "neighbors[0]: families: 'ipv9' is not an address family such as ipv4-unicast",
        "neighbors[0]: import: 'edg' is neither all, none nor a policy; did you mean edge?",
        "neighbors[0]: peer '10.0.0.1': holdTime: 0, or at least 3 seconds (RFC 4271)",
        "neighbors[0]: peer '10.0.0.1': ttlSecurity: not together with ebgpMultihop",
        "neighbors[0]: peer '10.0.0.1': nextHopIPv4: 'x' is not an IP address",
        "originate[0]: '10.0.0.0/33' is not a prefix such as 10.0.0.0/24",
        "originate[1]: 10.0.0.1/24 has host bits set; the prefix is 10.0.0.0/24",
    ]


def test_what_neighbors_have_in_common_is_reported_with_their_other_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    neighbors = (
        "{address: 10.0.0.1, holdTime: 1}, {address: 10.0.0.1, name: b}, "
        "{address: 10.0.0.3, name: b}"
    )
    path = write(tmp_path, f"asn: 1\nrouterID: 192.0.2.9\nneighbors: [{neighbors}]\n")
    assert command("check", str(path)) == 2
    text = capsys.readouterr().err
    assert "neighbors[0]: peer '10.0.0.1': holdTime: 0, or at least 3 seconds" in text
    assert "neighbors[1]: address: 10.0.0.1 is that of neighbor 10.0.0.1" in text
    assert "neighbors[2]: duplicate name b" in text


def test_a_missing_key_hides_no_other_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "originate: [10.0.0.0/33]\nneighbors: [{holdTime: 1}]\n")
    assert command("check", str(path)) == 2
    text = capsys.readouterr().err
    for part in (
        '"asn" is missing',
        '"routerID" is missing',
        "originate[0]",
        "one of address, prefix",
    ):
        assert part in text
    assert text.count("\n") == 4


def test_a_family_has_a_short_name(tmp_path: Path) -> None:
    text = "neighbors: [{address: 10.0.0.1, families: [ipv6]}]"
    (peer,) = load(write(tmp_path, MINIMAL + text)).peers()
    assert peer.families == (IPV6_UNICAST,)


def test_colons_and_dates_are_text_as_they_are_written(tmp_path: Path) -> None:
    text = "policies: {p: {terms: [{match: {communities: [65000:10]}}]}}"
    policies = load(write(tmp_path, MINIMAL + text)).policies
    assert policies["p"].terms[0].match.communities == ["65000:10"]


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (("check", "{path}"), "waggle router check"),
        (("announce", "10.0.0.0/8", "-c", "{path}"), "waggle router announce"),
        (("peers", "-c", "{path}"), "waggle router peers"),
        (("-c", "{path}"), "waggle router"),
    ],
)
def test_an_error_of_the_file_begins_with_the_command(
    tmp_path: Path, words: tuple[str, ...], program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "asn: [")
    assert command(*(word.format(path=path) for word in words)) == 2
    assert capsys.readouterr().err.startswith(f"{program}: {path}: line")


def test_a_password_is_never_in_an_error(tmp_path: Path) -> None:
    path = write(
        tmp_path, MINIMAL + "neighbors: [{address: 10.0.0.1, password: geheim, asn: 4294967296}]"
    )
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert "geheim" not in str(caught.value)
    config = load(write(tmp_path, MINIMAL + "neighbors: [{address: 10.0.0.1, password: geheim}]"))
    assert "geheim" not in repr(config)
    assert "geheim" not in repr(config.peers())


def test_without_a_file_or_a_socket_the_error_names_the_flag(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command() == 2
    assert "-c FILE" in capsys.readouterr().err
    assert command("announce", "10.0.0.0/24", "-c", str(write(tmp_path, MINIMAL))) == 2
    assert "apiSocket" in capsys.readouterr().err
    assert command("announce", "10.0.0.0/24", "--socket", str(tmp_path / "none")) == 1
    assert "no router runs here" in capsys.readouterr().err


def test_check_reads_a_file_and_starts_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write(tmp_path, MINIMAL + "neighbors: [{address: 10.0.0.1}]\noriginate: [10.1.0.0/16]")
    assert command("check", str(path)) == 0
    assert capsys.readouterr().out == (
        f"{path}: valid: AS 65000 (192.0.2.1), 1 neighbor, 1 prefix to originate\n"
    )
    assert command("check", str(path), "-o", "table") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["FILE", "ASN", "ROUTER-ID", "NEIGHBORS", "PREFIXES"],
        [str(path), "65000", "192.0.2.1", "1", "1"],
    ]
    assert command("check", str(write(tmp_path, MINIMAL + "neighbors: [{address: '::'}]"))) == 2
    assert "neighbors[0]" in capsys.readouterr().err


def test_check_answers_with_data(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    neighbor = "{address: 10.0.0.1, export: all, families: [ipv6-unicast]}"
    path = write(tmp_path, f"{MINIMAL}neighbors: [{neighbor}]\noriginate: [10.1.0.0/16]")
    assert command("check", str(path), "-o", "json") == 0
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert answer["kind"] == "RouterConfigurationList"
    (item,) = answer["items"]
    assert (item["asn"], item["routerID"]) == (65000, "192.0.2.1")
    assert (item["neighbors"], item["prefixes"], answer["errors"]) == (1, 1, [])
    (note,) = answer["notes"]
    assert note.startswith(f"{path}: neighbors[0]: IPv6 routes over an IPv4 session")
    assert printed.err == ""

    wrong = write(tmp_path, MINIMAL + "holdTime: x\nneighbors: [{address: '::'}]")
    assert command("check", str(wrong), "-o", "yaml") == 2
    answer = plain_yaml.load(capsys.readouterr().out)
    assert answer["items"] == []
    assert {error["code"] for error in answer["errors"]} == {"InvalidConfiguration"}
    assert all(str(wrong) in error["message"] for error in answer["errors"])


@pytest.mark.parametrize(
    ("neighbor", "originate", "warned"),
    [
        ("address: 10.0.0.1, export: all, families: [ipv6-unicast]", "[]", True),
        ("prefix: 10.0.0.0/8, export: local", "['2001:db8::/32']", True),
        ("address: 10.0.0.1, export: all", "[]", False),
        ("address: 10.0.0.1, export: none, families: [ipv6]", "['2001:db8::/32']", False),
        ("address: 10.0.0.1, export: all, nextHopIPv6: '2001:db8::1'", "['2001:db8::/32']", False),
        ("address: '2001:db8::2', export: all, families: [ipv6]", "['2001:db8::/32']", False),
    ],
)
def test_check_warns_of_ipv6_routes_over_ipv4_without_a_next_hop(
    neighbor: str,
    originate: str,
    *,
    warned: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write(tmp_path, f"{MINIMAL}neighbors: [{{{neighbor}}}]\noriginate: {originate}\n")
    assert command("check", str(path)) == 0
    errors = capsys.readouterr().err
    assert (
        "neighbors[0]: IPv6 routes over an IPv4 session without nextHopIPv6" in errors
    ) is warned
