"""Of kubernetes_asyncio only what is used is imported: no generated models, no APIs."""

from __future__ import annotations

import subprocess
import sys


def test_neither_models_nor_apis_are_imported() -> None:
    code = (
        "import sys; from resources.kubernetes import client_library as c; found = c.load();"
        "assert found.configuration.__name__ == 'Configuration';"
        "assert found.config.load_kube_config and found.config.load_incluster_config;"
        "assert c.load() == found;"
        "print(*(name for name in sys.modules if name.startswith('kubernetes_asyncio')))"
    )
    names = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "kubernetes_asyncio.config.kube_config" in names
    assert len(names) < 25
    assert not [name for name in names if name.startswith("kubernetes_asyncio.client.api.")]
    assert not [name for name in names if name.startswith("kubernetes_asyncio.client.models.")]


def test_the_library_that_another_program_has_imported_whole_is_used() -> None:
    code = (
        "import kubernetes_asyncio; from resources.kubernetes import client_library as c;"
        "assert c.load().api_client is kubernetes_asyncio.client.ApiClient"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_the_client_imports_for_other_users_is_imported_where_it_is_called() -> None:
    code = (
        "import sys; from resources.kubernetes import client_library as c; found = c.load();"
        "later = ('dateutil', 'multiprocessing.pool', 'urllib3');"
        "print([name for name in later if name in sys.modules]);"
        "settings = found.configuration(username='a', password='b');"
        "print(settings.get_basic_auth_token())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "Basic YTpi"]
