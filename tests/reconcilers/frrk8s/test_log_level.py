"""FRRK8sConfiguration: the log level of the object in effect."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.log_level import log_level
from reconcilers.frrk8s.options import Frrk8sOptions
from resources.errors import InvalidObject
from resources.frrk8s.kinds import FRRK8S_CONFIGURATION
from resources.kind import Kinds
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.metallb.build import MetalLBNode


def settings(
    level: Any = "debug",  # noqa: ANN401
    name: str = "config",
    namespace: str = "frr-k8s-system",
) -> dict[str, Any]:
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRK8sConfiguration",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {} if level is None else {"logLevel": level},
    }


def level_of(*objects: dict[str, Any]) -> str | None:
    database = Database()
    tables = Tables(database, Kinds(Frrk8sDialect.kinds))
    dialect = Frrk8sDialect(tables, Frrk8sOptions())
    table = tables.of(FRRK8S_CONFIGURATION)
    with database.write(table) as txn:
        for value in objects:
            table.upsert(txn, FRRK8S_CONFIGURATION.decode(value))
    return log_level(dialect, database.snapshot())


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("all", "debug"),
        ("debug", "debug"),
        ("info", "info"),
        ("warn", "warning"),
        ("error", "error"),
        ("none", "none"),
        (None, None),
    ],
)
def test_levels(text: str | None, level: str | None) -> None:
    assert level_of(settings(text)) == level


def test_only_the_object_config_of_the_namespace_counts_and_others_are_named() -> None:
    others = (settings(name="other"), settings(namespace="default"))
    assert level_of(*others) is None
    assert level_of(*others, settings("error")) == "error"
    node = MetalLBNode()
    node.put(*others, settings())
    assert node.problems() == [("unsupported", ["config"]), ("unsupported", ["other"])]
    (problem, _) = node.render()["problems"]
    assert problem["objects"] == ["FRRK8sConfiguration/default/config"]
    assert problem["message"] == "only the object config in namespace frr-k8s-system is used"


@pytest.mark.parametrize("text", ["verbose", "", "DEBUG", 1])
def test_an_unknown_level_is_an_error_of_the_field(text: object) -> None:
    with pytest.raises(InvalidObject) as caught:
        FRRK8S_CONFIGURATION.decode(settings(text))
    assert [error.path for error in caught.value.errors] == ["spec.logLevel"]
