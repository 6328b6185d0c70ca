"""Options from flags, environment and file: precedence, types, and errors that name the key."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from cells.hive import (
    Cell,
    Options,
    SettingError,
    Settings,
    add_flags,
    describe,
    load,
    read_file,
    setting,
)


class WebOptions(Options, frozen=True):
    address: Annotated[str | None, setting("where to listen", flag="--web-address")] = None
    max_clients: Annotated[int, setting("how many at once")] = 10
    verbose: Annotated[bool, setting("log more")] = False
    style: Annotated[Literal["text", "json"], setting("how lines look")] = "text"
    tags: Annotated[tuple[str, ...], setting("labels")] = ()
    shelves: Annotated[tuple[str, ...], setting("where to look")] = ("left", "right")
    pause_seconds: Annotated[float, setting("rest")] = 0.5
    kept: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=500)] | Literal["all"],
        setting("what is kept", metavar="N|all"),
    ] = 100


WEB = Cell(name="web", description="Serves.", options=WebOptions, on_with="address")
STORE = Cell(name="store", description="Keeps.")
CELLS = (STORE, WEB)


def options(**sources: Any) -> WebOptions:  # noqa: ANN401 - the keywords of load()
    """Load and return what the web cell gets."""
    found = load(CELLS, **sources).options["web"]
    assert isinstance(found, WebOptions)
    return found


def flags(*arguments: str) -> dict[str, Any]:
    """Parse a command line as the programs do."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser, CELLS)
    return vars(parser.parse_args(arguments))


def test_one_declaration_gives_flag_variable_and_key() -> None:
    names = [(s.flag, s.env, s.key) for s in describe("web", WebOptions)]
    assert names[:2] == [
        ("--web-address", "WAGGLE_WEB_ADDRESS", "address"),
        ("--web-max-clients", "WAGGLE_WEB_MAX_CLIENTS", "maxClients"),
    ]


def test_help_spells_defaults_as_they_would_be_given() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, CELLS)
    text = " ".join(parser.format_help().split())
    for default in (
        "[WAGGLE_WEB_VERBOSE; default false]",
        "[WAGGLE_WEB_SHELVES; default left,right]",
    ):
        assert default in text


def test_flag_over_environment_over_file_over_default() -> None:
    file = {"cells": {"web": {"maxClients": 3}}}
    env = {"WAGGLE_WEB_MAX_CLIENTS": "4", "HOME": "/"}
    assert options().max_clients == 10
    assert options(file=file).max_clients == 3
    assert options(file=file, env=env).max_clients == 4
    assert options(file=file, env=env, flags=flags("--web-max-clients", "5")).max_clients == 5


def test_every_type_from_every_source() -> None:
    expected = WebOptions(
        address="::1", max_clients=2, verbose=True, style="json", tags=("a", "b"), pause_seconds=2.0
    )
    arguments = (
        "--web-address ::1 --web-max-clients 2 --web-verbose --web-style json "
        "--web-tags a --web-tags b --web-pause-seconds 2"
    )
    assert options(flags=flags(*arguments.split())) == expected
    env = {
        "WAGGLE_WEB_ADDRESS": "::1",
        "WAGGLE_WEB_MAX_CLIENTS": "2",
        "WAGGLE_WEB_VERBOSE": "true",
        "WAGGLE_WEB_STYLE": "json",
        "WAGGLE_WEB_TAGS": "a,b",
        "WAGGLE_WEB_PAUSE_SECONDS": "2",
    }
    assert options(env=env) == expected
    section = {
        "address": "::1",
        "maxClients": 2,
        "verbose": True,
        "style": "json",
        "tags": ["a", "b"],
        "pauseSeconds": 2,
    }
    assert options(file={"cells": {"web": section}}) == expected


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (
            {"file": {"cells": {"web": {"maxClient": 1}}}},
            "waggle.yaml: cells.web.maxClient: unknown key (did you mean maxClients?)",
        ),
        (
            {"file": {"cells": {"wbe": {}}}},
            "waggle.yaml: cells.wbe: unknown cell (did you mean web?)",
        ),
        ({"file": {"cell": {}}}, "waggle.yaml: cell: unknown key (did you mean cells?)"),
        ({"file": {"cells": ["web"]}}, "waggle.yaml: cells: is not a mapping of cells"),
        (
            {"file": {"cells": {"web": {"maxClients": "3"}}}},
            "waggle.yaml: cells.web.maxClients: expected a whole number, not a text",
        ),
        (
            {"file": {"cells": {"web": {"enabled": "no"}}}},
            "waggle.yaml: cells.web.enabled: expected true or false",
        ),
        (
            {"env": {"WAGGLE_WEB_MAX_CLIENTS": "many"}},
            "WAGGLE_WEB_MAX_CLIENTS: expected a whole number, not a text: 'many'",
        ),
        (
            {"env": {"WAGGLE_WEB_ADRESS": "::1"}},
            "WAGGLE_WEB_ADRESS: unknown variable (did you mean WAGGLE_WEB_ADDRESS?)",
        ),
        (
            {"flags": {"--web-style": "xml"}},
            "--web-style: is none of json, text: 'xml'",
        ),
        (
            {"flags": {"disable_cell": ["stor"]}},
            "--disable-cell: unknown cell stor (did you mean store?)",
        ),
        (
            {"flags": {"disable_cell": ["store"], "enable_cell": ["store"]}},
            "--disable-cell: cell store is both enabled and disabled",
        ),
        (
            {"flags": {"enable_cell": ["web"]}},
            "cell web: the cell is switched on but --web-address is not set",
        ),
    ],
)
def test_an_invalid_setting_is_named_with_its_source(sources: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        load(CELLS, file_name="waggle.yaml", **sources)
    assert str(caught.value) == message


def test_a_number_or_a_word_is_given_as_such_in_a_file() -> None:
    assert options(file={"cells": {"web": {"kept": 7}}}).kept == 7
    assert options(file={"cells": {"web": {"kept": "all"}}}).kept == "all"
    assert options(flags=flags("--web-kept", "0")).kept == 0
    assert options(env={"WAGGLE_WEB_KEPT": "all"}).kept == "all"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("many", "is neither a number nor all: 'many'"),
        ("1.5", "is neither a number nor all: '1.5'"),
        ("501", "expected a whole number of at most 500: '501'"),
    ],
)
def test_what_is_neither_the_word_nor_a_number_in_range_is_an_error(
    given: str, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        options(flags=flags("--web-kept", given))


def test_variables_that_kubernetes_sets_for_services_are_no_error() -> None:
    env = {
        "WAGGLE_SERVICE_HOST": "10.0.0.1",
        "WAGGLE_AGENT_SERVICE_PORT_METRICS": "9100",
        "WAGGLE_PORT": "tcp://10.0.0.1:80",
        "WAGGLE_AGENT_PORT_80_TCP_ADDR": "10.0.0.1",
    }
    assert options(env=env) == WebOptions()


def switched(**sources: Any) -> Settings:  # noqa: ANN401 - the keywords of load()
    return load(CELLS, **sources)


def test_cells_are_switched_by_flag_over_environment_over_file() -> None:
    off = {"cells": {"store": {"enabled": False}}}
    assert switched().enabled == {"store": True, "web": False}
    assert switched(file=off).enabled["store"] is False
    env = {"WAGGLE_ENABLE_CELL": "store"}
    assert switched(file=off, env=env).enabled["store"] is True
    down = flags("--disable-cell", "store")
    assert switched(file=off, env=env, flags=down).enabled["store"] is False
    assert switched(flags=down).reasons["store"] == "switched off"


@pytest.mark.parametrize(
    "given",
    [
        {"flags": flags("--disable-cell", "store,web")},
        {"flags": flags("--disable-cell", "store", "--disable-cell", "web")},
        {"flags": flags("--disable-cell", "store, web,")},
        {"env": {"WAGGLE_DISABLE_CELL": "store, web"}},
    ],
)
def test_several_cells_are_switched_by_one_list(given: dict[str, Any]) -> None:
    assert set(switched(**given).reasons.values()) == {"switched off"}


def test_an_unknown_cell_of_a_list_is_named() -> None:
    with pytest.raises(SettingError, match="unknown cell shop"):
        switched(flags=flags("--enable-cell", "store,shop"))


def test_a_list_is_given_by_commas_or_repeated() -> None:
    for spelt in ("--web-tags a,b", "--web-tags a --web-tags b", "--web-tags a,b,"):
        assert options(flags=flags(*spelt.split())).tags == ("a", "b")


def test_a_cell_may_be_on_only_with_its_option() -> None:
    assert switched().reasons == {"web": "--web-address is not set"}
    address = {"cells": {"web": {"address": "::1"}}}
    assert switched(file=address).enabled["web"] is True
    assert switched(file=address, flags=flags("--disable-cell", "web")).enabled["web"] is False


def test_a_cell_decides_by_its_options_and_the_other_cells_whether_it_is_on_by_default() -> None:
    def off_while(options: WebOptions, on: Mapping[str, Options]) -> str:
        return "" if options.verbose or "store" in on else "nothing is stored"

    lamp = Cell(name="lamp", description="Shines.", options=WebOptions, off_while=off_while)

    def lit(*arguments: str) -> tuple[bool, str | None]:
        cells = (lamp, STORE)
        parser = argparse.ArgumentParser(allow_abbrev=False)
        add_flags(parser, cells)
        loaded = load(cells, flags=vars(parser.parse_args(arguments)))
        return loaded.enabled["lamp"], loaded.reasons.get("lamp")

    assert lit() == (True, None)
    off = ("--disable-cell", "store")
    assert lit(*off) == (False, "nothing is stored")
    assert lit(*off, "--lamp-verbose") == (True, None)
    assert lit(*off, "--enable-cell", "lamp") == (True, None)
    assert lit("--disable-cell", "lamp") == (False, "switched off")


def test_the_file_is_a_mapping_in_yaml(tmp_path: Path) -> None:
    path = tmp_path / "waggle.yaml"
    path.write_text("cells: {web: {tags: [a]}}\n")
    assert read_file(path) == {"cells": {"web": {"tags": ["a"]}}}
    path.write_text("")
    assert read_file(path) == {}
    path.write_text("- a\n")
    with pytest.raises(SettingError, match="is not a mapping of settings"):
        read_file(path)
    path.write_text("a: {\n")
    with pytest.raises(SettingError, match=r"waggle\.yaml: .*line 2") as caught:
        read_file(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(SettingError, match="No such file"):
        read_file(tmp_path / "absent.yaml")


BASE = Cell(name="base", description="Carries.", on_by_default=False)
MIDDLE = Cell(name="middle", description="Feeds base.", on_by_default=False, needs="base")
TOP = Cell(name="top", description="Feeds middle.", on_by_default=False, needs="middle")
FEEDERS = (TOP, BASE, MIDDLE)


@pytest.mark.parametrize(
    "sources",
    [
        {"flags": {"enable_cell": ["top"]}},
        {"env": {"WAGGLE_ENABLE_CELL": "top"}},
        {"file": {"cells": {"top": {"enabled": True}}}},
    ],
)
def test_a_cell_switches_on_what_it_needs(sources: dict[str, Any]) -> None:
    assert load(FEEDERS, **sources).enabled == {"top": True, "base": True, "middle": True}
    assert not any(load(FEEDERS).enabled.values())


@pytest.mark.parametrize(
    "sources",
    [
        {"flags": {"enable_cell": ["top"], "disable_cell": ["base"]}},
        {"flags": {"enable_cell": ["top"]}, "env": {"WAGGLE_DISABLE_CELL": "base"}},
        {"flags": {"enable_cell": ["top"]}, "file": {"cells": {"base": {"enabled": False}}}},
    ],
)
def test_a_cell_whose_need_is_off_by_name_is_refused(sources: dict[str, Any]) -> None:
    with pytest.raises(SettingError) as caught:
        load(FEEDERS, **sources)
    text = "cell middle: needs cell base, which is switched off; switch both on, or both off"
    assert str(caught.value) == text
