"""The image, built from the Dockerfile and run as SageMaker does, on a base without a GPU and with the echo engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sagemaker_sticky_protocol import SESSION_ID_HEADER

from tests.rehearsal import images, tools

from .conftest import Container, free_port, is_back, wait_until

ROOT = Path(__file__).parents[2]
IMAGE = "localhost/sticky-under-test:latest"

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        bool(tools.missing(None)) and not os.environ.get("CI"),
        reason=f"needs {tools.how_to_install(tools.missing(None))}",
    ),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Variables under which podman has the image, built from this tree."""
    with images.workshop(tmp_path_factory.mktemp("images"), "123456789012", "us-east-1") as workshop:
        base = images.import_base(workshop)
        variables = {**os.environ, **workshop}
        del variables["REGISTRY_AUTH_FILE"]  # nobody logs in here
        command = ["buildah", "build", "--isolation", "chroot", "--network", "host", "--format", "docker", "--quiet"]
        command += ["--build-arg", f"BASE_IMAGE={base}", "-f", "container/Dockerfile", "-t", IMAGE, "."]
        built = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr[-3000:]
        yield variables


@pytest.fixture
def container(environment: dict[str, str], tmp_path: Path) -> Iterator[Container]:
    """`podman run IMAGE serve`, as SageMaker says it to Docker."""
    port = free_port()
    command = ["podman", "run", "--rm", "--network", "host", "--env", "STICKY_ENGINE=echo"]
    command += ["--env", f"SAGEMAKER_BIND_TO_PORT={port}", "--env", "STICKY_ECHO_TOKEN_S=0.05", IMAGE, "serve"]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    running = Container(process, port, log)
    try:
        wait_until(lambda: process.poll() is not None or is_back(running), seconds=60)
        assert process.poll() is None, log.read_text()
        yield running
    finally:
        process.kill()
        process.wait()


def test_a_conversation_and_a_sigterm_in_the_middle_of_a_stream(container: Container) -> None:
    session = container.open()
    for question in ("My dog is called Rex.", "What do dogs eat?", "What is my dog called?"):
        text = container.invoke({"inputs": question}, session).json["generation"]["text"]
    assert text.endswith("At first: My dog is called Rex.")
    assert container.invoke({"requestType": "CLOSE"}, session).status == 200

    session = container.open()
    connection = container.connect()
    body = json.dumps({"inputs": "a" * 200, "stream": True})
    connection.request("POST", "/invocations", body, {SESSION_ID_HEADER: session})
    response = connection.getresponse()
    response.readline()
    with ThreadPoolExecutor() as pool:
        rest = pool.submit(response.read)
        told = time.monotonic()
        container.process.send_signal(signal.SIGTERM)
        assert rest.result(30).endswith(b"data: [DONE]\n\n")
    connection.close()
    assert container.process.wait(30) == 0
    assert time.monotonic() - told < 30  # what SageMaker gives before SIGKILL


def test_the_image_has_what_it_needs_and_no_more(environment: dict[str, str]) -> None:
    listing = subprocess.run(
        ["podman", "run", "--rm", "--network", "host", "--entrypoint", "find", IMAGE, "/opt/sticky", "-type", "f"],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    ours = {Path(each).relative_to("/opt/sticky").as_posix() for each in listing if "__pycache__" not in each}
    modules = {f"container/{each.name}" for each in (ROOT / "container").glob("*.py")}
    assert ours - {"container/Dockerfile"} == modules | {"container/requirements.txt", "sagemaker_sticky_protocol.py"}
