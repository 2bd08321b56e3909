"""Where images are built, kept and pulled from: all in one folder, so that nothing of it stays on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rehearsal.servers import free_port, serving

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / "build" / "rehearsal" / "base.tar"
"""The base image, kept between rehearsals: making it takes a minute."""
BASE_IMAGE = "localhost/rehearsal-base:latest"
ECR_USER = "AWS:$2y$05$xQnv0ZJQi3iAWmVipPOl2eEh2D.FvsHRxWGypcsCw635Fif9Rcr4e"
"""The login that moto's GetAuthorizationToken gives out, which is no secret."""
STORAGE = """[storage]
driver = "overlay"
graphroot = "{directory}/storage"
runroot = "{directory}/run"
"""
CONTAINERS = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
runtime = "runc"
tmp_dir = "{directory}/libpod"
"""
REGISTRIES = """[[registry]]
prefix = "*.amazonaws.com"
location = "{registry}"
insecure = true
"""
REGISTRY = """version: 0.1
storage: {{filesystem: {{rootdirectory: "{directory}/registry"}}}}
http: {{addr: "{registry}"}}
auth: {{htpasswd: {{realm: rehearsal, path: "{directory}/htpasswd"}}}}
"""


@contextmanager
def workshop(directory: Path, account: str, region: str) -> Iterator[dict[str, str]]:
    """A registry that stands for the account's ECR, and tools that keep what they make in ``directory``.

    Gives the variables under which the CDK's command line and podman use them.
    """
    registry = f"127.0.0.1:{free_port()}"
    ecr = f"{account}.dkr.ecr.{region}.amazonaws.com"
    places = {"directory": directory, "registry": registry}
    files = {
        "storage.conf": STORAGE.format(**places),
        "containers.conf": CONTAINERS.format(**places),
        "registries.conf": REGISTRIES.replace("*.amazonaws.com", ecr).format(**places),
        "registry.yml": REGISTRY.format(**places),
        "htpasswd": ECR_USER + "\n",
    }
    for name, text in files.items():
        (directory / name).write_text(text)
    environment = {
        "CDK_DOCKER": str(HERE / "ecr-docker"),
        "REHEARSAL_REGISTRY": registry,
        "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf"),
        "CONTAINERS_CONF": str(directory / "containers.conf"),
        "CONTAINERS_REGISTRIES_CONF": str(directory / "registries.conf"),
        "REGISTRY_AUTH_FILE": str(directory / "auth.json"),
    }
    command = ["docker-registry", "serve", str(directory / "registry.yml")]
    with serving(command, f"http://{registry}", log=directory / "registry.log"):
        try:
            yield environment
        finally:
            _let_go(directory, {**os.environ, **environment})


def import_base(environment: dict[str, str]) -> str:
    """The stand-in for the GPU image: Debian with Python and pip. Gives its name."""
    if not CACHE.exists():
        _make_base(CACHE)
    everything = {**os.environ, **environment}
    subprocess.run(
        ["podman", "import", "--quiet", str(CACHE), BASE_IMAGE], env=everything, check=True, stdout=subprocess.DEVNULL
    )
    return BASE_IMAGE


def _make_base(archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    # A folder of its own: two may be at it at once, and the one that ends last wins.
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        root, partial = Path(directory, "rootfs"), Path(directory, archive.name)
        packages = "--include=python3,python3-pip,ca-certificates"
        command = ["debootstrap", "--variant=minbase", packages, "bookworm", str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        # pip inside a build goes where it goes on this machine: a mirror needs the same index and certificates.
        for file in ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
            if Path(file).exists():
                shutil.copy(file, root / file.removeprefix("/"))
        left_out = ["var/cache", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"]
        excluded = [f"--exclude=./{each}" for each in left_out]
        subprocess.run(["tar", "-C", str(root), *excluded, "-cf", str(partial), "."], check=True)
        partial.rename(archive)


def _let_go(directory: Path, environment: dict[str, str]) -> None:
    """End what a rehearsal that broke off has left running, and whatever else holds the folder."""
    # Not "podman system reset": it takes folders with it that are not ours.
    for command in (
        ["podman", "rm", "--all", "--force", "--time", "0"],
        ["podman", "rmi", "--all", "--force"],
        ["umount", str(directory / "storage" / "overlay")],
    ):
        subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
