"""Boots the VM; see the package."""

from __future__ import annotations

import contextlib
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
TIME_FACTOR: Final = 12
"""How much longer things take on the emulated processor."""
TIMEOUT_SECONDS: Final = 3000.0
"""For the whole of a run."""
MEMORY: Final = "3G"
BOOT_MODULES: Final = ("virtio_pci", "fuse", "virtiofs", "overlay")
KERNEL_OPTIONS: Final = (
    "console=ttyS0 quiet loglevel=3 panic=-1 oops=panic mitigations=off no_timer_check"
)
"""On a busy machine the emulated timer comes too late for the check of the kernel, which panics."""
NOT_BOOTED: Final = 99
"""The exit status where the VM has none of the command's."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def main(command: Sequence[str]) -> int:
    """Run a command in a VM; returns its exit status."""
    script = HERE.parent / "install-vm"
    found = subprocess.run([script], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        return found.returncode
    kernel = Path(found.stdout.strip())
    with tempfile.TemporaryDirectory(prefix="waggle-vm-") as made:
        return _run(kernel, Path(made), command)


def _run(kernel: Path, directory: Path, command: Sequence[str]) -> int:
    version = next((kernel / "boot").glob("vmlinuz-*")).name.removeprefix("vmlinuz-")
    modules = next(path for path in kernel.glob(f"**/lib/modules/{version}"))
    if not (modules / "modules.dep").exists():
        _call("depmod", "-b", modules.parents[2], version)
    initrd = _initrd(modules.parents[2], version, directory)
    out = directory / "out"
    out.mkdir()
    (out / "stage").write_text(_stage(modules, version, command))
    with _shared(directory, machine=Path("/"), out=out) as sockets:
        devices = [
            text
            for tag, path in sockets.items()
            for text in (
                *("-chardev", f"socket,id={tag},path={path}"),
                *("-device", f"vhost-user-fs-pci,chardev={tag},tag={tag}"),
            )
        ]
        qemu = [
            "qemu-system-x86_64",
            *("-machine", "q35,memory-backend=memory"),
            *("-object", f"memory-backend-memfd,id=memory,size={MEMORY},share=on"),
            # Where a hypervisor is offered inside another hypervisor kernels may hang: never used.
            *(
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "max",
                "-smp",
                str(min(2, os.cpu_count() or 1)),
            ),
            *("-m", MEMORY, "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"),
            *devices,
            *("-kernel", kernel / "boot" / f"vmlinuz-{version}", "-initrd", initrd),
            *("-append", KERNEL_OPTIONS),
        ]
        with subprocess.Popen(list(map(str, qemu)), stdin=subprocess.DEVNULL) as process:
            try:
                process.wait(TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"the VM was ended after {TIMEOUT_SECONDS:g} s\n")
            finally:
                process.kill()
    try:
        return int((out / "status").read_text())
    except (FileNotFoundError, ValueError):
        return NOT_BOOTED


def _initrd(base: Path, version: str, directory: Path) -> Path:
    """Return an initial RAM disk with busybox, the modules for the files, and `init`."""
    root = directory / "initrd"
    for name in ("bin", "modules", "proc", "sys", "dev", "ro", "rw", "new"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", root / "bin/busybox")
    shutil.copy(HERE / "init", root / "init")
    (root / "init").chmod(0o755)
    names: dict[str, None] = {}
    for module in BOOT_MODULES:
        options = ("-d", base, "-S", version, "-C", "/nowhere", "--show-depends")
        listed = _call("modprobe", *options, module)
        for line in listed.splitlines():
            if line.startswith("insmod "):
                names[_unpacked(Path(line.split()[1]), root / "modules")] = None
    (root / "modules.list").write_text("".join(f"{name}\n" for name in names))
    initrd = directory / "initrd.cpio"
    with initrd.open("wb") as file:
        packed = (path.relative_to(root) for path in sorted(root.rglob("*")))
        subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"],
            cwd=root,
            input="".join(f"{path}\n" for path in packed).encode(),
            stdout=file,
            check=True,
        )
    return initrd


def _unpacked(module: Path, target: Path) -> str:
    """Copy a module of the kernel without its compression; returns its name."""
    octets = module.read_bytes()
    if module.suffix == ".xz":
        octets = lzma.decompress(octets)
    elif module.suffix == ".zst":
        octets = subprocess.run(["zstd", "-dc", module], capture_output=True, check=True).stdout
    name = module.name.removesuffix(".xz").removesuffix(".zst")
    (target / name).write_bytes(octets)
    return name


def _stage(modules: Path, version: str, command: Sequence[str]) -> str:
    """Return the script that runs the command in the VM, and switches it off."""
    return f"""
export PATH={PATH} HOME=/root LANG=C.UTF-8 TEST_TIME_FACTOR={TIME_FACTOR} PYTHONDONTWRITEBYTECODE=1
mkdir -p /lib/modules
ln -sfn {shlex.quote(str(modules))} /lib/modules/{version}
ln -sfn /proc/self/fd /dev/fd
ip link set lo up
cd {shlex.quote(str(Path.cwd()))}
{shlex.join(command)} </dev/null 2>&1
echo $? >/vm/status
sync
exec busybox poweroff -f
"""


@contextlib.contextmanager
def _shared(directory: Path, **folders: Path) -> Iterator[dict[str, Path]]:
    """Share folders with the VM: a socket for each. The VM mounts all but ``out`` read-only."""
    program = next(
        path
        for path in ("/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd")
        if Path(path).exists()
    )
    sockets = {tag: directory / f"{tag}.socket" for tag in folders}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for tag, folder in folders.items():
            options = (
                ["--shared-dir", folder, "--cache", "always", "--sandbox", "chroot"]
                if "libexec" in program
                else ["-o", f"source={folder}", "-o", "cache=always", "-o", "sandbox=chroot"]
            )
            with (directory / f"{tag}.log").open("wb") as log:
                arguments = [program, f"--socket-path={sockets[tag]}", *map(str, options)]
                started.append(subprocess.Popen(arguments, stdout=log, stderr=log))
        deadline = time.monotonic() + 60
        while not all(path.exists() for path in sockets.values()):
            if time.monotonic() > deadline:
                texts = [(directory / f"{tag}.log").read_text() for tag in folders]
                raise RuntimeError(f"virtiofsd does not start: {''.join(texts)}")
            time.sleep(0.05)
        yield sockets
    finally:
        for process in started:
            process.terminate()
            process.wait()


def _call(*command: object) -> str:
    path = f"{os.environ.get('PATH', '')}:{PATH}"
    return subprocess.run(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    ).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
