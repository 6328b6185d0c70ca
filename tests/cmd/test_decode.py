"""`waggle decode`: hex, captures and JSON lines in; one JSON object a message out."""

from __future__ import annotations

import inspect
import io
import json
import re
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from speaker.capability.capabilities import AddPath, Capability, FourOctetAs, Multiprotocol
from speaker.message import Open
from speaker.nlri import IPV4_UNICAST
from waggle.__main__ import main
from waggle.commands.decode.program import context_of

KEEPALIVE = "ff" * 16 + "001304"
UPDATE = (
    "ff" * 16
    + "002f02"
    + "0000"
    + "0014"
    + "40010100"
    + "40020602010000fde9"
    + "400304c0000201"
    + "180a0000"
)
BAD_ORIGIN = UPDATE.replace("40010100", "40010103")


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_hex_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", KEEPALIVE, UPDATE]) == 0
    keepalive, update = _lines(capsys)
    assert keepalive == {"kind": "keepalive"}
    assert update["announce"] == ["10.0.0.0/24"]
    assert (update["origin"], update["asPath"], update["nextHop"]) == ("igp", "65001", "192.0.2.1")


def test_an_open_with_as_trans_is_rejected_as_by_a_session(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """RFC 6793 section 9: no speaker has AS 23456."""
    opened = Open(asn=23456, hold_time=90, router_id=1, capabilities=(FourOctetAs(23456),))
    assert main(["decode", opened.encode().hex()]) == 0
    (answer,) = _lines(capsys)
    assert answer["outcome"] == "session-reset"
    assert "AS_TRANS" in json.dumps(answer["error"])


def test_several_messages_in_one_run_of_hex(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(KEEPALIVE + KEEPALIVE + "\n"))
    assert main(["decode"]) == 0
    assert [line["kind"] for line in _lines(capsys)] == ["keepalive", "keepalive"]


def test_a_malformed_attribute_has_the_error_handling_of_rfc_7606(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["decode", BAD_ORIGIN]) == 0
    (answer,) = _lines(capsys)
    assert answer["outcome"] == "treat-as-withdraw"
    assert answer["attribute"] == 1
    assert (answer["announce"], answer["withdraw"]) == ([], ["10.0.0.0/24"])


def test_a_bad_header_has_the_error_of_rfc_4271_section_6_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["decode", "00" + KEEPALIVE[2:]]) == 0
    (answer,) = _lines(capsys)
    error = answer["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["subcode"]) == (1, 1)
    assert answer["kind"] is None


def test_a_message_of_a_wrong_length_has_its_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """RFC 4271 section 6.1: the length is the data."""
    assert main(["decode", "ff" * 16 + "001404" + "00"]) == 0
    (answer,) = _lines(capsys)
    assert answer["kind"] == "keepalive"
    assert answer["outcome"] == "session-reset"
    assert isinstance(error := answer["error"], dict)
    assert (error["code"], error["subcode"], error["data"]) == (1, 2, "0014")


def test_json_lines_have_a_session_context(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    two_octet = UPDATE.replace("40020602010000fde9", "4002040201fde9").replace("002f", "002d")
    two_octet = two_octet.replace("0014" + "4001", "0012" + "4001")
    file = tmp_path / "vectors.jsonl"
    file.write_text(
        json.dumps({"id": "a", "hex": two_octet, "context": {"as4": False}}) + "\n{broken\n"
    )
    assert main(["decode", "--jsonl", str(file)]) == 0
    first, second = _lines(capsys)
    assert (first["id"], first["asPath"]) == ("a", "65001")
    assert second["line"] == 2
    assert "invalid" in second


OPEN = "ff" * 16 + "002201" + "04fde9005a0a000001" + "05" + "0203090103"
"""AS 65001, 10.0.0.1, and the role of a customer."""


@pytest.mark.parametrize(
    ("context", "error"),
    [
        ({"peerASN": 65001, "localASN": 65000, "localRouterID": "10.0.0.1"}, None),
        ({"peerASN": 65009}, (2, 2)),
        ({"ebgp": False, "localRouterID": "10.0.0.1"}, (2, 3)),
        ({"localRole": "provider"}, None),
        ({"localRole": 0}, None),
        ({"localRole": "peer"}, (2, 11)),
        ({"localRole": "peer", "ebgp": False}, None),
    ],
)
def test_an_open_is_checked_against_the_local_as_and_identifier_of_its_line(
    context: dict[str, object],
    error: tuple[int, int] | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = json.dumps({"id": 1, "hex": OPEN, "context": context})
    monkeypatch.setattr("sys.stdin", io.StringIO(line))
    assert main(["decode", "--jsonl"]) == 0
    (answer,) = _lines(capsys)
    assert answer["kind"] == "open"
    found = answer.get("error")
    assert (found and (found["code"], found["subcode"])) == error  # type: ignore[index]
    assert ("outcome" in answer) == (error is not None)


def test_an_invalid_line_keeps_its_id(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [{"id": "a", "hex": "?"}, {"id": "b", "hex": "ff", "context": {"families": ["x"]}}]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(map(json.dumps, lines))))
    assert main(["decode", "--jsonl"]) == 0
    answers = _lines(capsys)
    assert [answer["id"] for answer in answers] == ["a", "b"]
    assert all("invalid" in answer for answer in answers)


def test_a_capture_is_reassembled_from_segments(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    octets = bytes.fromhex(KEEPALIVE + UPDATE)
    packets = []
    for start, end in ((0, 30), (30, len(octets))):
        tcp = struct.pack("!HHIIBBHHH", 40000, 179, 1000 + start, 0, 0x50, 0x18, 512, 0, 0)
        data = tcp + octets[start:end]
        ip = struct.pack(
            "!BBHHHBBH4s4s", 0x45, 0, 20 + len(data), 0, 0, 64, 6, 0, b"\x0a\0\0\1", b"\x0a\0\0\2"
        )
        packets.append(ip + data)
    file = tmp_path / "bgp.pcap"
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for packet in reversed(packets):
        capture += struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet
    file.write_bytes(capture)
    assert main(["decode", "--pcap", str(file)]) == 0
    assert [line["kind"] for line in _lines(capsys)] == ["keepalive", "update"]


A, B = b"\x0a\0\0\1", b"\x0a\0\0\2"


def packet(source: bytes, target: bytes, ports: tuple[int, int], octets: bytes) -> bytes:
    tcp = struct.pack("!HHIIBBHHH", *ports, 1000, 0, 0x50, 0x18, 512, 0, 0) + octets
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + source + target + tcp


def pcap(packets: Iterable[bytes], order: str = "<") -> bytes:
    capture = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for octets in packets:
        capture += struct.pack(f"{order}IIII", 0, 0, len(octets), len(octets)) + octets
    return capture


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def pcapng(packets: Iterable[bytes], order: str = "<") -> bytes:
    """A section with an Ethernet interface and one of raw IP, and blocks that are skipped."""
    capture = block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    capture += block(order, 1, struct.pack(f"{order}HHI", 1, 0, 0))
    capture += block(order, 1, struct.pack(f"{order}HHI", 101, 0, 0) + b"\0\x02\0\x03any\0")
    for octets in packets:
        capture += block(order, 5, bytes(12))  # interface statistics
        head = struct.pack(f"{order}IIIII", 1, 0, 0, len(octets), len(octets))
        capture += block(order, 6, head + octets)
    return capture


def session(
    client: tuple[Capability, ...], server: tuple[Capability, ...], *, asns: tuple[int, int]
) -> list[bytes]:
    """The packets of a connection: the OPENs, and an UPDATE of the client."""
    as4 = all(FourOctetAs in map(type, found) for found in (client, server))
    add_path = all(AddPath in map(type, found) for found in (client, server))
    path = b"\x02\x01" + asns[0].to_bytes(4 if as4 else 2, "big")
    attributes = b"\x40\1\1\0" + bytes((0x40, 2, len(path))) + path + b"\x40\3\4\x0a\0\0\1"
    if asns[0] == asns[1]:
        attributes += b"\x40\5\4\0\0\0\x64"
    nlri = (b"\0\0\0\7" if add_path else b"") + b"\x18\xc0\0\2"
    body = b"\0\0" + len(attributes).to_bytes(2, "big") + attributes + nlri
    update = b"\xff" * 16 + (19 + len(body)).to_bytes(2, "big") + b"\2" + body
    first = Open(asn=asns[0], hold_time=90, router_id=1, capabilities=client).encode()
    other = Open(asn=asns[1], hold_time=90, router_id=2, capabilities=server).encode()
    return [packet(B, A, (179, 40000), other), packet(A, B, (40000, 179), first + update)]


@pytest.mark.parametrize("file", [pcap, pcapng])
@pytest.mark.parametrize("order", ["<", ">"])
def test_the_opens_of_a_capture_determine_how_its_updates_are_decoded(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    file: Callable[[Iterable[bytes], str], bytes],
    order: str,
) -> None:
    ipv4 = Multiprotocol(IPV4_UNICAST)
    many = AddPath(((IPV4_UNICAST, 3),))
    cases = (
        session((ipv4,), (ipv4,), asns=(65001, 65002)),  # two-octet AS numbers
        session((ipv4, FourOctetAs(65001)), (ipv4, FourOctetAs(65002)), asns=(65001, 65002)),
        session((ipv4, many), (ipv4, many), asns=(65001, 65002)),
        session((ipv4,), (ipv4,), asns=(65001, 65001)),  # iBGP: LOCAL_PREF
    )
    path = tmp_path / "bgp"
    for number, packets in enumerate(cases):
        path.write_bytes(file(packets, order))
        assert main(["decode", "--pcap", str(path)]) == 0
        update = next(line for line in _lines(capsys) if line["kind"] == "update")
        assert (update["announce"], update["asPath"]) == (["192.0.2.0/24"], "65001"), number
        assert "error" not in update
        assert update.get("localPreference") == (100 if number == 3 else None)


@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D], ids=["microseconds", "nanoseconds"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_capture_has_microseconds_or_nanoseconds_in_either_byte_order(
    order: str, magic: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ipv4 = (Multiprotocol(IPV4_UNICAST),)
    octets = pcap(session(ipv4, ipv4, asns=(65001, 65002)), order)
    path = tmp_path / "bgp"
    path.write_bytes(struct.pack(f"{order}I", magic) + octets[4:])
    assert main(["decode", "--pcap", str(path)]) == 0
    assert [line["kind"] for line in _lines(capsys)] == ["open", "open", "update"]


def test_a_cut_capture_ends_where_it_is_cut_and_another_file_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ipv4 = (Multiprotocol(IPV4_UNICAST),)
    whole = pcapng(session(ipv4, ipv4, asns=(65001, 65002)))
    path = tmp_path / "bgp"
    for size in range(12, len(whole), 7):
        path.write_bytes(whole[:size])
        assert main(["decode", "--pcap", str(path)]) in (0, 2)
    capsys.readouterr()
    path.write_bytes(b"no capture at all, but text")
    assert main(["decode", "--pcap", str(path)]) == 2
    assert f"waggle decode: {path}: neither a pcap nor a pcapng file" in capsys.readouterr().err


def test_an_invalid_hex_text_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "xyz"]) == 2
    assert "waggle decode" in capsys.readouterr().err


def test_add_path_families_are_named_by_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with_id = UPDATE.replace("002f02", "003302").replace("180a0000", "00000007180a0000")
    assert main(["decode", "--add-path", "ipv4-unicast", with_id]) == 0
    (answer,) = _lines(capsys)
    assert answer["announce"] == ["10.0.0.0/24"]
    assert main(["decode", with_id]) == 0
    (answer,) = _lines(capsys)
    assert answer.get("announce") != ["10.0.0.0/24"]


@pytest.mark.parametrize("flag", ["--jsonl", "--pcap"])
def test_an_input_that_is_not_there_is_named_with_the_reason(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none"
    assert main(["decode", flag, str(path)]) == 2
    text = f"waggle decode: {path}: No such file or directory; see waggle decode --help\n"
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize("kind", [99, 255])
def test_a_well_known_attribute_that_is_not_known_is_named_by_its_type(
    kind: int, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = bytes((0x40, kind, 2, 7, 8))
    octets = bytearray(bytes.fromhex(UPDATE))
    octets[16:18] = (len(octets) + len(unknown)).to_bytes(2, "big")
    octets[21:23] = (20 + len(unknown)).to_bytes(2, "big")
    octets[43:43] = unknown
    assert main(["decode", octets.hex()]) == 0
    (answer,) = _lines(capsys)
    assert (answer["outcome"], answer["attribute"]) == ("session-reset", kind)
    error = {"code": 3, "subcode": 2, "data": unknown.hex()}
    assert isinstance(answer["error"], dict)
    assert answer["error"].items() >= error.items()


def test_the_page_has_every_member_of_a_context() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    section = page.partition("## Decoding messages\n")[2].partition("\n## ")[0]
    members = re.findall(r'context\.get\("(\w+)"', inspect.getsource(context_of))
    assert len(members) > 9
    assert [name for name in members if f"`{name}`" not in section] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("ff --jsonl none", "HEX and --jsonl: one input at a time"),
        ("--pcap none --jsonl none", "--pcap and --jsonl: one input at a time"),
        (
            "--jsonl none --ibgp --family ipv4-unicast",
            "--ibgp, --family: not with --jsonl, whose lines have a context each",
        ),
    ],
)
def test_arguments_without_effect_are_wrong_usage(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decode", *words.split()]) == 2
    assert capsys.readouterr().err == f"waggle decode: {sentence}; see waggle decode --help\n"
