from __future__ import annotations

from pathlib import Path

import pytest

from container.cuda import with_compatibility

NVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Tue Feb 13 2024\nGCC version: gcc 11.4.0\n"


@pytest.fixture
def compat(tmp_path: Path) -> Path:
    """An image that brings driver 580.65.06."""
    folder = tmp_path / "compat"
    folder.mkdir()
    (folder / "libcuda.so.580.65.06").touch()
    (folder / "libcuda.so.1").symlink_to("libcuda.so.580.65.06")
    return folder


@pytest.mark.parametrize(
    ("host", "used"), [("550.163.01", True), ("580.65.06", False), ("580.126.09", False), ("595.10", False)]
)
def test_the_images_driver_is_used_on_older_hosts_only(compat: Path, tmp_path: Path, host: str, used: bool) -> None:
    driver = tmp_path / "version"
    driver.write_text(NVRM.format(host))
    variables = with_compatibility({"LD_LIBRARY_PATH": "/usr/lib"}, compat=compat, driver=driver)
    assert variables["LD_LIBRARY_PATH"] == (f"{compat}:/usr/lib" if used else "/usr/lib")


def test_without_a_gpu_or_such_an_image_nothing_changes(compat: Path, tmp_path: Path) -> None:
    assert with_compatibility({"A": "b"}, compat=compat, driver=tmp_path / "none") == {"A": "b"}
    driver = tmp_path / "version"
    driver.write_text(NVRM.format("550.163.01"))
    assert with_compatibility({"A": "b"}, compat=tmp_path / "none", driver=driver) == {"A": "b"}
