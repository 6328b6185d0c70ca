"""`waggle` without an agent: render, explain, convert, crds, flags and subcommands of a dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dialects.dialect_programs import WAGGLE
from tests.dialects.objects import NODE, beacon, lighthouse, node, service
from tests.support import plain_yaml
from waggle.__main__ import main


def manifests(directory: Path, *objects: dict[str, Any]) -> list[str]:
    """Write objects; return the flags that read them."""
    path = directory / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return ["-f", str(path)]


def shop(directory: Path) -> list[str]:
    """Write a Beacon, a Service that it advertises and a Service that it does not advertise."""
    other = service("other", "198.51.100.2", namespace="default")
    found = manifests(directory, node(), beacon(), service("web", "198.51.100.1"), other)
    return [*found, "--node", NODE]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:  # noqa: ANN401 - JSON
    """Run `waggle`; return the JSON that it prints."""
    assert main([*arguments, "-o", "json"], WAGGLE) == 0
    return json.loads(capsys.readouterr().out)


def test_render_prints_instance_peer_routes_and_conditions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = printed(capsys, "render", *shop(tmp_path), "--beacon-community", "65000")
    (instance,) = document["instances"]
    (peer,) = instance["peers"]
    (route,) = peer["advertise"]
    assert (instance["name"], peer["address"]) == ("beacon", "192.0.2.9")
    assert (route["prefix"], route["communities"]) == ("198.51.100.1/32", ["0:65000"])
    assert [origin["type"] for origin in route["origins"]] == ["LoadBalancerIP"]
    (condition,) = document["conditions"]
    assert (condition["type"], condition["status"]) == ("test.waggle.dev/NoNode", "False")
    assert document["problems"] == []


def test_render_names_the_field_of_an_invalid_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = manifests(tmp_path, node(), beacon(peerAddress="no address"))
    (problem,) = printed(capsys, "render", *wrong, "--node", NODE)["problems"]
    assert (problem["objects"], problem["field"]) == ([f"Beacon/{NODE}"], "spec.peerAddress")


def test_what_one_dialect_feeds_another_is_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = manifests(tmp_path, node(), lighthouse("coast", NODE), service("web", "198.51.100.1"))
    document = printed(capsys, "render", *given, "--node", NODE)
    (instance,) = document["instances"]
    assert [r["prefix"] for r in instance["peers"][0]["advertise"]] == ["198.51.100.1/32"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [("shop/web", "Advertised"), ("198.51.100.1", "Advertised"), ("default/other", "NoRule")],
)
def test_explain_names_the_rule_that_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, reason: str
) -> None:
    (item,) = printed(capsys, "explain", target, *shop(tmp_path))["items"]
    assert (item["reason"], item["rule"]["kind"]) == (reason, "Beacon")


def test_crds_prints_the_definition_of_the_kind(capsys: pytest.CaptureFixture[str]) -> None:
    (definition,) = printed(capsys, "crds", "beacons")["items"]
    version = definition["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    assert definition["metadata"]["name"] == "beacons.test.waggle.dev"
    assert schema["spec"]["properties"]["routerID"] == {"type": "string"}
    assert version["subresources"] == {"status": {}}


def test_convert_has_the_targets_of_all_dialects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = manifests(tmp_path, beacon("n1"), beacon("n2"), beacon("n3", asn=65003))
    assert main(["convert", *given, "--to", "lighthouse"], WAGGLE) == 0
    out, err = capsys.readouterr()
    (made,) = plain_yaml.load_all(out)
    assert (made["kind"], made["spec"]["nodes"]) == ("Lighthouse", ["n1", "n2"])
    assert "Beacon/n3: is left as it is" in err
    assert main(["convert", *given, "--to", "nothing"], WAGGLE) == 2
    assert "no conversion to nothing; the targets are: " in capsys.readouterr().err


def test_help_lists_the_subcommand_and_the_flags_of_a_dialect(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments, text in ((["--help"], "lighthouses"), (["render", "--help"], "--beacon-")):
        with pytest.raises(SystemExit):
            main(arguments, WAGGLE)
        assert text in capsys.readouterr().out


def test_without_the_dialect_nothing_of_it_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", *shop(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["instances"] == []
    with pytest.raises(SystemExit):
        main(["lighthouses"])
    assert "lighthouses" in capsys.readouterr().err
