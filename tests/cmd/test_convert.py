"""`waggle convert`: policies in, objects of v2 out; omitted settings are notes on standard error."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from reconcilers.dialect import Conversion
from tests.cmd import terminal
from tests.support import plain_yaml
from tests.support.scenario import ROOT
from waggle.__main__ import main
from waggle.dialects import DIALECTS

POLICY = """
apiVersion: cilium.io/v2alpha1
kind: CiliumBGPPeeringPolicy
metadata:
  name: p
spec:
  virtualRouters:
  - localASN: 65001
    exportPodCIDR: true
    neighbors:
    - peerAddress: 192.0.2.1/32
      peerASN: 65010
"""
LOSSY = (
    POLICY
    + """
      advertisedPathAttributes:
      - selectorType: PodCIDR
        selector: {matchLabels: {rack: a}}
"""
)


def _write(directory: Path, text: str) -> str:
    path = directory / "policy.yaml"
    path.write_text(text)
    return str(path)


def test_the_yaml_is_valid_for_kubectl_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "-f", _write(tmp_path, POLICY)]) == 0
    out, err = capsys.readouterr()
    assert [(item["kind"], item["metadata"]["name"]) for item in plain_yaml.load_all(out)] == [
        ("CiliumBGPPeerConfig", "bgpp-p-65001-192.0.2.1"),
        ("CiliumBGPAdvertisement", "bgpp-p-65001"),
        ("CiliumBGPClusterConfig", "bgpp-p"),
    ]
    assert err == ""


def test_json_is_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-f", _write(tmp_path, POLICY), "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["apiVersion"], answer["kind"], len(answer["items"])) == ("v1", "List", 3)


def test_a_converted_policy_renders_equally(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: {podCIDRs: [10.1.0.0/24]}\n"
    node += "status: {addresses: [{type: InternalIP, address: 192.0.2.7}]}\n"
    (tmp_path / "node.yaml").write_text(node)
    _write(tmp_path, POLICY)
    instances = []
    for _ in range(2):
        assert main(["render", "-f", str(tmp_path), "--node", "n"]) == 0
        instances.append(json.loads(capsys.readouterr().out)["instances"])
        assert main(["convert", "-f", str(tmp_path)]) in (0, 1)
        out = capsys.readouterr().out
        if out:
            (tmp_path / "policy.yaml").write_text(out)
    assert instances[0] == instances[1] != []


def test_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(POLICY.encode())))
    assert main(["convert", "-f", "-"]) == 0
    assert "bgpp-p-65001" in capsys.readouterr().out


def test_notes_are_printed_and_fail_with_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path, LOSSY)
    assert main(["convert", "-f", path]) == 0
    out, err = capsys.readouterr()
    assert out
    assert err.startswith("waggle convert: note: CiliumBGPPeeringPolicy/p: spec.virtualRouters[0]")
    assert main(["convert", "-f", path, "--strict"]) == 1


def test_an_invalid_policy_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-f", _write(tmp_path, POLICY.replace("1/32", "0/24"))]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "spec.virtualRouters[0].neighbors[0].peerAddress" in err
    assert "policy.yaml:11" in err


def test_no_policy_and_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-f", str(tmp_path), "-o", "json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["items"] == []
    assert "no CiliumBGPPeeringPolicy, " in err
    assert " or draft of FRRConfiguration to convert in" in err
    assert main(["convert", "-f", str(tmp_path / "none")]) == 2


def test_the_migration_scenario_has_the_converted_objects(
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = ROOT / "cilium" / "v1-to-v2"
    arguments = [str(directory / name) for name in ("policy.yaml", "cluster.yaml")]
    assert main(["convert", "-f", *arguments]) == 0
    assert capsys.readouterr().out == (directory / "converted.yaml").read_text()


def test_a_problem_of_a_converted_draft_is_named_with_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = Path(__file__).parent / "design_documents" / "cfp-28175-cluster-config.yaml"
    text = draft.read_text().replace("rack: rack1", "rack: not a label")
    assert main(["convert", "-f", _write(tmp_path, text)]) == 1
    err = capsys.readouterr().err
    assert "CiliumBGPClusterConfig/01-cilium-bgp-config: spec.nodeSelector" in err


def test_objects_that_another_target_converts_are_no_dead_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["convert", "-f", str(terminal.ROOT / "examples" / "antrea")]) == 1
    assert capsys.readouterr().err.endswith("examples/antrea; --to cilium converts BGPPolicy\n")
    assert (
        main(["convert", "-f", str(terminal.ROOT / "examples" / "quickstart"), "--to", "cilium"])
        == 1
    )
    assert capsys.readouterr().err.endswith("/examples/quickstart\n")


def test_the_page_has_every_conversion() -> None:
    page = (terminal.ROOT / "docs" / "cli.md").read_text()
    section = page.partition("## Converting objects\n")[2].partition("\n## ")[0]
    known = [c for dialect in DIALECTS.load() for c in dialect.each(Conversion)]
    assert len(known) >= 4
    for conversion in known:
        for word in (conversion.target, conversion.drafts, *(k.name for k in conversion.kinds)):
            assert word in section
