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


def test_libraries_of_unused_parts_are_not_imported() -> None:
    code = (
        "import sys; from resources.kubernetes import client_library as c; c.load();"
        "print(*(name for name in sys.modules"
        " if name.split('.')[0] in ('dateutil', 'multiprocessing', 'urllib3')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_what_is_seldom_used_is_imported_with_its_first_use() -> None:
    """The library makes the header of a user with a password by urllib3."""
    code = (
        "import sys; from resources.kubernetes import client_library as c; found = c.load();"
        "configuration = found.configuration(username='a', password='b');"
        "assert 'urllib3' not in sys.modules;"
        "assert configuration.get_basic_auth_token() == 'Basic YTpi';"
        "assert sys.modules['urllib3'].PoolManager;"
        "module = sys.modules[found.api_client.__module__];"
        "assert module.parse('2026-01-01').year == 2026;"
        "assert module.ThreadPool(1).apply(len, ([],)) == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_library_that_another_program_has_imported_whole_is_used() -> None:
    code = (
        "import kubernetes_asyncio; from resources.kubernetes import client_library as c;"
        "assert c.load().api_client is kubernetes_asyncio.client.ApiClient"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_that_need_it_at_once_get_the_same_library() -> None:
    """Connections are opened in threads, and a package is half entered for a while: here 50 ms."""
    code = (
        "from concurrent.futures import ThreadPoolExecutor;"
        "import time; from resources import bare_packages as b;"
        "from resources.kubernetes import client_library as c;"
        "module = b.ModuleType;"
        "b.ModuleType = lambda name: (time.sleep(0.05), module(name))[1];"
        "pool = ThreadPoolExecutor(2);"
        "first = pool.submit(c.load); time.sleep(0.07); second = pool.submit(c.load);"
        "assert first.result() == second.result() == c.load()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
