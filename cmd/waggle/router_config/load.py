"""Reads the router's file; each error is one sentence with the file and the key."""

from __future__ import annotations

from pathlib import Path

import msgspec

from resources.given_file import open_given
from resources.manifests.yamlfile import YamlError, parse_yaml
from waggle.router_config.file import Config
from waggle.router_config.file_values import ConfigError
from waggle.router_config.problems import problems

MAX_FILE = 64 * 1024 * 1024
"""Octets."""


def load(path: Path, former: Config | None = None) -> Config:
    """Load and validate a file; ``former`` is the last one. Raises `ConfigError`."""
    try:
        with open_given(path) as file:
            text = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    if len(text) > MAX_FILE:
        raise ConfigError(f"{path}: larger than {MAX_FILE} octets")
    try:
        documents = list(parse_yaml(text))
    except YamlError as error:
        raise ConfigError(f"{path}: line {error.line}: {error.message}") from None
    if len(documents) > 1:
        raise ConfigError(f"{path}: line {documents[1].line}: a second document; the file has one")
    data = documents[0].value if documents else None
    sentences = [f"{path}: {problem}" for problem in problems(data)]
    if sentences:
        raise ConfigError(*sentences)
    config = msgspec.convert(data, Config)
    if former is not None:
        config.share_rules(former)
    return config
