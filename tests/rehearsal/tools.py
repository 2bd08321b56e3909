"""What a rehearsal needs on this machine, and how to get it."""

from __future__ import annotations

import os
import shutil
import sys

PACKAGES = {
    "buildah": "buildah",
    "podman": "podman",
    "runc": "runc",
    "docker-registry": "docker-registry",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
}
"""Debian's package of each tool, by the tool's name."""
INSTALL = "apt-get install --no-install-recommends"
PLUGINS = "containernetworking-plugins"
"""podman's network, which no command shows."""


def missing(base_image: str | None) -> list[str]:
    """Tools without which no image can be built and run; ``base_image`` is one that can be pulled, or None."""
    needed = set(PACKAGES) - ({"debootstrap"} if base_image else set())
    return sorted(name for name in needed if shutil.which(name, path=_path()) is None)


def how_to_install(names: list[str]) -> str:
    """The command that installs these tools."""
    packages = " ".join(PACKAGES[name] for name in names)
    return f"{INSTALL} {packages} {PLUGINS}"


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


if __name__ == "__main__":
    absent = missing(None)
    sys.stdout.write(" ".join([*(PACKAGES[name] for name in absent), PLUGINS]) if absent else "")
