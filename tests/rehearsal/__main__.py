"""``make rehearse``: ``cdk deploy`` for real, from an empty account to an empty account.

The account is moto, the instances are containers of the image that the CDK built and pushed, and everything between is
what a user has: the CDK's command line, boto3 and ``sticky smoke``. Without podman and its kin the same is rehearsed
with container processes instead of an image. REHEARSAL_BASE_IMAGE names a base image that can be pulled; without it,
one is made with debootstrap.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import boto3

from emulator.deployed import Deployment, read_deployment
from emulator.loop_thread import in_thread
from emulator.server import serving as emulator_serving
from tests.rehearsal import images, tools
from tests.rehearsal.account import inventory, leftovers
from tests.rehearsal.moto_account import ACCOUNT
from tests.rehearsal.servers import free_port, serving

ROOT = Path(__file__).resolve().parents[2]
REGION = "us-east-1"
STACK = "StickySglang"
INSTANCES = 2
TTL_MINUTES = 7
"""What the second deployment changes."""


BEGAN = time.monotonic()


class Failed(Exception):
    """A step went wrong; the message says which, and has its output."""


class Rehearsal:
    """One run, in a folder of its own.

    Args:
        directory: Empty, and removed by the caller.
        environment: Variables of every command.
        settings: CDK context of every deployment.
        image: Whether instances are the image, or processes.
    """

    def __init__(self, directory: Path, environment: dict[str, str], settings: dict[str, str], *, image: bool) -> None:
        self._directory = directory
        self._environment = environment
        self._settings = settings
        self._image = image
        self.session = boto3.Session(
            aws_access_key_id="rehearsal", aws_secret_access_key="rehearsal", region_name=REGION
        )

    def say(self, line: str) -> None:
        """Tell a person how far it is."""
        print(f"rehearsal: {time.monotonic() - BEGAN:4.0f} s  {line}", flush=True)

    def cdk(self, *arguments: str, **changed: str) -> str:
        """Run the CDK's command line with the settings of this rehearsal; gives what it printed."""
        context = [part for key, value in (self._settings | changed).items() for part in ("-c", f"{key}={value}")]
        return self.run("cdk", *arguments, "--no-notices", "--output", str(self._directory / "cdk.out"), *context)

    def run(self, *command: str, **variables: str) -> str:
        """Run a command to its end; gives what it printed.

        Raises:
            Failed: its status was not 0.
        """
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self._environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Failed(f"{shlex.join(command[:3])} ended with {done.returncode}:\n{done.stdout[-6000:]}")
        return done.stdout

    def deploy(self, **changed: str) -> dict[str, str]:
        """``cdk deploy``; gives the stack's outputs."""
        outputs = self._directory / "outputs.json"
        self.cdk("deploy", "--require-approval", "never", "--outputs-file", str(outputs), **changed)
        return dict(json.loads(outputs.read_text())[STACK])

    @contextmanager
    def fleet(self, outputs: dict[str, str]) -> Iterator[Deployment]:
        """The instances that the control plane asks for, behind an emulator, while the context lasts."""
        client = self.session.client("sagemaker")
        deployment = read_deployment(outputs["EndpointName"], client)
        config = deployment.emulator_config(image=self._image, startup_seconds=120)
        with in_thread(lambda: emulator_serving(config, self.say)) as emulator:
            self._environment["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"] = emulator.url
            yield deployment

    def smoke(self, outputs: dict[str, str]) -> str:
        """The command that the stack's output gives, as it stands there."""
        return self.run(*shlex.split(outputs["SmokeCommand"]))


def rehearse(run: Rehearsal) -> None:
    """The story, step by step.

    Raises:
        Failed: at the first step that goes wrong.
    """
    run.say("cdk bootstrap, in an empty account")
    run.cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}")
    _expect(leftovers(inventory(run.session)), [], "after bootstrapping")
    run.say("cdk deploy")
    outputs = run.deploy()
    made = inventory(run.session)
    _expect([kind for kind, names in made.items() if not names], [], "kinds of resources that were not made")
    run.say("the instances that the control plane asks for, and sticky smoke")
    with run.fleet(outputs) as first:
        _expect((first.instances, first.routing_strategy), (INSTANCES, "LEAST_OUTSTANDING_REQUESTS"), "fleet")
        print(run.smoke(outputs), end="")
    run.say(f"cdk diff and cdk deploy, with session_ttl_minutes={TTL_MINUTES}")
    changes = {"session_ttl_minutes": str(TTL_MINUTES)}
    difference = run.cdk("diff", "--method", "template", **changes)
    _expect("SES_TTL_MIN" in difference, True, f"cdk diff shows the change:\n{difference}")
    outputs = run.deploy(**changes)
    with run.fleet(outputs) as second:
        _expect(second.environment["SES_TTL_MIN"], f"{TTL_MINUTES}.0", "the session's life")
        _expect(second.endpoint_config_name != first.endpoint_config_name, True, "the configuration was replaced")
        _expect((second.image, second.endpoint_name), (first.image, first.endpoint_name), "image and endpoint")
        _expect(f"expires in {TTL_MINUTES} min" in run.smoke(outputs), True, "a session lives as long as was set")
    run.say("cdk destroy")
    run.cdk("destroy", "--force")
    _expect(leftovers(inventory(run.session)), [], "left after cdk destroy")
    run.say("nothing but the bootstrap stack is left")


def _expect(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise Failed(f"{what}: expected {expected!r}, found {found!r}")


def main() -> int:
    """Set the account up, rehearse, and take everything down; gives the exit status."""
    base_image = os.environ.get("REHEARSAL_BASE_IMAGE")
    absent = tools.missing(base_image)
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as temporary, ExitStack() as stack:
        directory = Path(temporary)
        url = f"http://localhost:{free_port()}"
        # boto3 in this process, and in every command, finds the account by this variable.
        os.environ["AWS_ENDPOINT_URL"] = url
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(Path(sys.prefix, "bin")), os.environ["PATH"], "/usr/sbin", "/sbin"]),
            "AWS_ACCESS_KEY_ID": "rehearsal",
            "AWS_SECRET_ACCESS_KEY": "rehearsal",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "client")]),
        }
        settings = {"engine": "echo", "min_instances": str(INSTANCES), "max_instances": "3", "cuda_version": "13.0"}
        account = [sys.executable, "-m", "tests.rehearsal.moto_account", url.rpartition(":")[2]]
        stack.enter_context(serving(account, url, log=directory / "account.log", environment=environment))
        if absent:
            print(f"rehearsal: without {', '.join(absent)} instances are processes, not images; to have images:")
            print(f"rehearsal:   {tools.how_to_install(absent)}", flush=True)
            settings["image_uri"] = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/sticky:rehearsal"
        else:
            made = stack.enter_context(images.workshop(directory, ACCOUNT, REGION))
            os.environ.update(made)
            environment |= made
            settings["base_image"] = base_image or images.import_base(made)
        try:
            rehearse(Rehearsal(directory, environment, settings, image=not absent))
        except Failed as failure:
            print(f"rehearsal: FAILED: {failure}", file=sys.stderr)
            return 1
    print("rehearsal: OK" + (" (without images)" if absent else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
