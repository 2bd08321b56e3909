import json
import os
import subprocess
import sys
from pathlib import Path

from emulator import podman_run

ROOT = Path(__file__).resolve().parents[2]


def test_an_instance_is_started_as_sagemaker_starts_it(tmp_path):
    """With what the Model says and no more, whatever the emulator's own environment holds."""
    stand_in = tmp_path / "podman"
    stand_in.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    stand_in.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "client")]),
        "SAGEMAKER_BIND_TO_PORT": "18080",
        "STICKY_INSTANCE": "instance-1",
    }
    command = podman_run.command("registry/sticky:1", {"STICKY_ENGINE": "echo", "SM_SGLANG_CONTEXT_LENGTH": "4 096"})
    done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [
        *(
            "run",
            "--rm",
            "--pull",
            "always",
            "--label",
            "sagemaker-sticky",
            "--name",
            "sagemaker-sticky-instance-1-18080",
        ),
        *("--hostname", "instance-1", "--publish", "127.0.0.1:18080:8080"),
        *("--env", "SM_SGLANG_CONTEXT_LENGTH=4 096", "--env", "STICKY_ENGINE=echo"),
        *("registry/sticky:1", "serve"),
    ]
