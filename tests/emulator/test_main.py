"""`python -m emulator` as a user runs it: what it prints, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from emulator.__main__ import main
from emulator.fleet import ROOT
from emulator.server import bound_socket

from .conftest import boto3_client
from .processes import children, wait_for_end

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for processes")


@contextmanager
def started(
    folder: Path, *arguments: str, environment: Mapping[str, str] = os.environ
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "emulator", "--engine", "echo", *arguments]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**environment, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def exports(process: subprocess.Popen[str]) -> dict[str, str]:
    """The variables to copy; printed when the endpoint is up."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(6)]
    assert lines[0].startswith("# Endpoint 'mine' on instance-1, instance-2.")
    return dict(line.removeprefix("export ").strip().split("=", 1) for line in lines[1:])


@pytest.mark.parametrize("each", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything(tmp_path: Path, each: signal.Signals) -> None:
    with started(tmp_path, "--endpoint-name", "mine") as process:
        variables = exports(process)
        containers = children(process.pid)
        assert len(containers) == 2
        process.send_signal(each)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.splitlines()[-1]) == (0, "emulator: stopping")
    assert variables.keys() == {
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    }
    assert all(wait_for_end(pid, seconds=0) for pid in containers)
    assert list(tmp_path.iterdir()) == []
    url = urlsplit(variables["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"])
    with socket.socket() as probe:
        assert probe.connect_ex((url.hostname, url.port)) != 0


def test_a_reading_on_the_command_line(tmp_path: Path) -> None:
    with started(tmp_path, "--endpoint-name", "mine", "--unknown-session", "reject") as process:
        client = boto3_client(exports(process)["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"])
        with pytest.raises(client.exceptions.ValidationError):
            client.invoke_endpoint(EndpointName="mine", SessionId="gone", Body=b"{}")
        client.close()


def test_a_signal_while_containers_start(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "emulator: starting 2 echo containers\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert (process.returncode, output, list(tmp_path.iterdir())) == (0, "", [])


def test_containers_die_with_an_emulator_that_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, "--endpoint-name", "mine") as process:
        exports(process)
        containers = children(process.pid)
        process.kill()
        assert all(wait_for_end(pid) for pid in containers)


def test_a_container_that_fails_is_told(tmp_path: Path) -> None:
    with started(tmp_path, environment={**os.environ, "SES_TTL_MIN": "soon"}) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "ended with status 2 before it was ready" in errors
    assert "'SES_TTL_MIN' should be a number, got 'soon'" in errors


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with bound_socket(0) as taken:
        taken.listen()
        assert main(["--engine", "echo", "--port", str(taken.getsockname()[1])]) == 1
    assert "in use" in capsys.readouterr().err


def test_a_wrong_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--instances", "0", "--endpoint-name", "a_b"]) == 2
    errors = capsys.readouterr().err
    assert "'instances' should be from 1 to 16, got 0; 'endpoint_name' should be" in errors


def test_a_wrong_reading(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--unknown-session", "guess"])
    assert "forward" in capsys.readouterr().err
