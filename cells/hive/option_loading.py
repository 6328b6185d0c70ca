"""Read the options of all cells from flags, environment and file, in that order of precedence.

Nothing is guessed and nothing is ignored: an undeclared key or a value of the wrong type is a
`SettingError` that names the key and its source. Only `read_file` reads a file; the environment and
the flags come in as values.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import msgspec

from cells.hive.cell import Cell, check_names
from cells.hive.errors import SettingError
from cells.hive.unknown_name import suggestion
from cells.safe_text import plain_reason
from resources.option_declarations import InvalidOption
from resources.option_spelling import ENV_PREFIX, Setting, describe, list_items

CONFIG_ENV = "WAGGLE_CONFIG"
ENABLE, DISABLE = "--enable-cell", "--disable-cell"
ENABLE_ENV, DISABLE_ENV = "WAGGLE_ENABLE_CELL", "WAGGLE_DISABLE_CELL"
PURE_ENV = "WAGGLE_PURE"
"""Chooses the form of the speaker's prefix tables, which are imported before any option is read."""

_SERVICE_LINK = r"^WAGGLE_\w*?(SERVICE_HOST|SERVICE_PORT\w*|PORT(_\d+_(TCP|UDP|SCTP)\w*)?)$"
"""Variables that Kubernetes sets in every container for a Service named waggle..."""


class Settings(msgspec.Struct, frozen=True):
    """The loaded options of every cell, and which cells are on."""

    options: dict[str, msgspec.Struct]
    enabled: dict[str, bool]
    reasons: dict[str, str]
    """Why a cell is off: the switch, the missing option, or the cell beside it."""
    origins: dict[str, tuple[str, str]] = {}
    """The source and the key of each option that is given otherwise than by its flag, by this flag."""

    def located(self, error: SettingError) -> SettingError:
        """Return the error of an option with the variable or key that is given in place of its flag."""
        source, key = self.origins.get(error.key, ("", error.key))
        return SettingError(source, key, error.message)


def add_flags(parser: argparse.ArgumentParser, cells: Iterable[Cell]) -> None:
    """Give the parser one group of flags per cell, and the two that switch cells."""
    switches = parser.add_argument_group("cells")
    for flag, state in ((ENABLE, "on"), (DISABLE, "off")):
        switches.add_argument(
            flag,
            metavar="NAME[,NAME...]",
            action="append",
            help=f"switch cells {state}; may be repeated",
        )
    for cell in cells:
        items = list(describe(cell.name, cell.options))
        if not items:
            continue
        group = parser.add_argument_group(f"cell {cell.name}", cell.description)
        for item in items:
            _add_flag(group, item)


def read_file(path: Path) -> dict[str, Any]:
    """Return the mapping that a YAML configuration file holds; raises `SettingError`."""
    import yaml

    from resources.given_file import read_given

    try:
        content = yaml.safe_load(read_given(path))
    except OSError as error:
        raise SettingError("", str(path), error.strerror or str(error)) from error
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise SettingError("", str(path), f"is not YAML{where}") from error
    except RecursionError:
        raise SettingError("", str(path), "is nested too deeply") from None
    except ValueError as error:
        # A date that does not exist, a number of 5,000 digits.
        raise SettingError("", str(path), f"has a value that cannot be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingError("", str(path), "is not a mapping of settings")
    return content


def load(
    cells: Sequence[Cell],
    *,
    flags: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    file: Mapping[str, Any] | None = None,
    file_name: str = "",
    foreign: Iterable[Cell] = (),
) -> Settings:
    """Merge the three sources over the declared defaults.

    ``flags`` is what `argparse` made of `add_flags` (``vars(namespace)``, unset flags None);
    ``file`` is what `read_file` returned, ``file_name`` its name for messages. Raises `SettingError`,
    and `CompositionError` for two cells of one name. Variables of ``foreign`` cells (another program
    in the same environment) are ignored; any other unknown one is an error.
    """
    flags, env = flags or {}, env or {}
    check_names(cells)
    settings = {cell.name: list(describe(cell.name, cell.options)) for cell in cells}
    sections = _sections(cells, settings, file or {}, file_name)
    others = [item for cell in foreign for item in describe(cell.name, cell.options)]
    _check_env([*(item for given in settings.values() for item in given), *others], env)
    options: dict[str, msgspec.Struct] = {}
    origins: dict[str, tuple[str, str]] = {}
    for cell in cells:
        values: dict[str, Any] = {}
        for item in settings[cell.name]:
            read = _find(item, flags, env, sections[cell.name], file_name)
            if read is not None:
                values[item.field] = read[0]
                origins[item.flag] = _origin(item, flags, env, file_name)
        try:
            options[cell.name] = cell.options(**values)
        except InvalidOption as error:
            raise SettingError(*origins.get(error.flag, ("", error.flag)), error.message) from None
    enabled, reasons = _switches(cells, options, flags, env, sections, file_name)
    return Settings(options, enabled, reasons, origins)


def _spelt(item: Setting) -> str:
    """Spell a default as a flag would have it."""
    if item.is_bool:
        return str(item.default).lower()
    return ",".join(map(str, item.default)) if item.is_list else str(item.default)


def _add_flag(group: argparse._ArgumentGroup, item: Setting) -> None:
    is_unset = item.default in (None, (), "", msgspec.NODEFAULT)
    default = "" if is_unset else f"; default {_spelt(item)}"
    text = f"{item.help} [{item.env}{default}]".replace("%", "%%")
    if item.is_bool:
        group.add_argument(
            item.flag, dest=item.flag, metavar=item.metavar, nargs="?", const="true", help=text
        )
    elif item.is_list:
        group.add_argument(
            item.flag, dest=item.flag, metavar=item.metavar, action="append", help=text
        )
    else:
        group.add_argument(item.flag, dest=item.flag, metavar=item.metavar, help=text)


def _sections(
    cells: Sequence[Cell],
    settings: Mapping[str, list[Setting]],
    file: Mapping[str, Any],
    name: str,
) -> dict[str, dict[str, Any]]:
    """Check the shape of the file; return the mapping of each cell."""
    for key in file:
        if key != "cells":
            raise SettingError(name, str(key), "unknown key" + suggestion(str(key), ["cells"]))
    given = file.get("cells") or {}
    if not isinstance(given, dict):
        raise SettingError(name, "cells", "is not a mapping of cells")
    names = [cell.name for cell in cells]
    sections: dict[str, dict[str, Any]] = {name: {} for name in names}
    for cell, section in given.items():
        if cell not in settings:
            raise SettingError(name, f"cells.{cell}", "unknown cell" + suggestion(str(cell), names))
        if section is None:
            continue
        if not isinstance(section, dict):
            raise SettingError(name, f"cells.{cell}", "is not a mapping of options")
        keys = ["enabled", *(item.key for item in settings[cell])]
        for key in section:
            if key not in keys:
                wrong = "unknown key" + suggestion(str(key), keys)
                raise SettingError(name, f"cells.{cell}.{key}", wrong)
        sections[cell] = section
    return sections


def _check_env(settings: Sequence[Setting], env: Mapping[str, str]) -> None:
    known = [item.env for item in settings] + [CONFIG_ENV, ENABLE_ENV, DISABLE_ENV, PURE_ENV]
    for name in env:
        if name.startswith(ENV_PREFIX) and name not in known and not re.match(_SERVICE_LINK, name):
            raise SettingError("", name, "unknown variable" + suggestion(name, known))


def _find(
    item: Setting,
    flags: Mapping[str, Any],
    env: Mapping[str, str],
    section: Mapping[str, Any],
    file_name: str,
) -> tuple[object] | None:
    """Return the value of the first source that has one, converted, in a tuple of one."""
    source, key = _origin(item, flags, env, file_name)
    if flags.get(item.flag) is not None:
        given = flags[item.flag]
        return (_from_text(item, list_items(*given) if item.is_list else given, source, key),)
    if item.env in env:
        text = env[item.env]
        value = list_items(text) if item.is_list else text
        return (_from_text(item, value, source, key),)
    if item.key in section:
        try:
            return (msgspec.convert(section[item.key], item.type),)
        except msgspec.ValidationError as error:
            shown = f": {section[item.key]!r}" if item.choices and item.is_number else ""
            raise SettingError(source, key, f"{_reason(item, error)}{shown}") from None
    return None


def _origin(
    item: Setting, flags: Mapping[str, Any], env: Mapping[str, str], file_name: str
) -> tuple[str, str]:
    """Return the source of a given value and its key there, for messages."""
    if flags.get(item.flag) is not None:
        return "", item.flag
    if item.env in env:
        return "", item.env
    return file_name, f"cells.{item.cell}.{item.key}"


def _from_text(item: Setting, value: object, source: str, key: str) -> object:
    try:
        converted: object = msgspec.convert(value, item.type, strict=False)
    except msgspec.ValidationError as error:
        shown = ",".join(value) if isinstance(value, list) else value
        raise SettingError(source, key, f"{_reason(item, error)}: {shown!r}") from None
    return converted


def _reason(item: Setting, error: msgspec.ValidationError) -> str:
    if item.choices and item.is_number and ("enum" in str(error) or "str" in str(error)):
        return f"is neither a number nor {', '.join(item.choices)}"
    if item.choices and "enum" in str(error):
        return f"is none of {', '.join(item.choices)}"
    return plain_reason(str(error))


def _switches(
    cells: Sequence[Cell],
    options: Mapping[str, msgspec.Struct],
    flags: Mapping[str, Any],
    env: Mapping[str, str],
    sections: Mapping[str, Mapping[str, Any]],
    file_name: str,
) -> tuple[dict[str, bool], dict[str, str]]:
    names = [cell.name for cell in cells]
    by_flag = _named(
        list_items(*(flags.get("enable_cell") or ())),
        list_items(*(flags.get("disable_cell") or ())),
        names,
        (ENABLE, DISABLE),
    )
    by_env = _named(
        list_items(env.get(ENABLE_ENV, "")),
        list_items(env.get(DISABLE_ENV, "")),
        names,
        (ENABLE_ENV, DISABLE_ENV),
    )
    enabled: dict[str, bool] = {}
    reasons: dict[str, str] = {}
    off: set[str] = set()
    chosen: set[str] = set()
    for cell in sorted(cells, key=lambda c: (c.on_beside is not None) + (c.off_beside is not None)):
        setting = next(
            (s for s in describe(cell.name, cell.options) if s.field == cell.on_with), None
        )
        default = setting is None or getattr(options[cell.name], setting.field) is not None
        by_file = sections[cell.name].get("enabled")
        if by_file is not None and not isinstance(by_file, bool):
            key = f"cells.{cell.name}.enabled"
            raise SettingError(file_name, key, "expected true or false")
        beside = (cell.on_beside is None or enabled.get(cell.on_beside, False)) and (
            cell.off_beside is None or not enabled.get(cell.off_beside, False)
        )
        switched = by_flag.get(cell.name, by_env.get(cell.name, by_file))
        if switched and not default and setting is not None:
            wrong = f"the cell is switched on but {setting.flag} is not set"
            raise SettingError("", f"cell {cell.name}", wrong)
        if switched is False:
            off.add(cell.name)
        elif switched:
            chosen.add(cell.name)
        by_default = default and beside and cell.on_by_default
        enabled[cell.name] = by_default if switched is None else switched
        if not enabled[cell.name]:
            reasons[cell.name] = (
                "switched off"
                if switched is False
                else f"{setting.flag} is not set"
                if setting is not None
                else f"off by default; {ENABLE} {cell.name}"
                if not cell.on_by_default
                else f"{cell.on_beside} is off"
                if cell.on_beside is not None and not enabled.get(cell.on_beside, False)
                else f"{cell.off_beside} is on"
            )
    for cell in cells:
        _switch_on_needed(cell, cells, enabled, reasons, off)
    on = {name: options[name] for name, is_on in enabled.items() if is_on}
    for cell in cells:
        if cell.off_while is not None and cell.name not in off | chosen:
            reason = cell.off_while(options[cell.name], on)
            enabled[cell.name] = not reason
            reasons.pop(cell.name, None)
            if reason:
                reasons[cell.name] = reason
    return enabled, reasons


def _switch_on_needed(
    cell: Cell,
    cells: Sequence[Cell],
    enabled: dict[str, bool],
    reasons: dict[str, str],
    off: AbstractSet[str],
) -> None:
    """Switch on what a cell needs, and what that needs. Raises `SettingError` if it is off by name."""
    needed = next((other for other in cells if other.name == cell.needs), None)
    if cell.needs is None or not enabled[cell.name]:
        return
    if needed is None:
        raise SettingError("", f"cell {cell.name}", f"needs cell {cell.needs}, which is not there")
    if needed.name in off:
        wrong = f"needs cell {needed.name}, which is switched off; switch both on, or both off"
        raise SettingError("", f"cell {cell.name}", wrong)
    enabled[needed.name] = True
    reasons.pop(needed.name, None)
    _switch_on_needed(needed, cells, enabled, reasons, off)


def _named(
    on: Iterable[str], off: Iterable[str], names: Sequence[str], keys: tuple[str, str]
) -> dict[str, bool]:
    switches: dict[str, bool] = {}
    for key, state, given in ((keys[0], True, on), (keys[1], False, off)):
        for name in given:
            if name not in names:
                raise SettingError("", key, f"unknown cell {name}" + suggestion(name, names))
            if switches.get(name, state) is not state:
                raise SettingError("", key, f"cell {name} is both enabled and disabled")
            switches[name] = state
    return switches
