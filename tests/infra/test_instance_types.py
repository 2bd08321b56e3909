"""The table against its sources: EC2's description of the types (moto ships it) and SageMaker's list of names."""

import gzip
import json
from pathlib import Path

import botocore.session
import moto.ec2
import pytest

from infra.instance_types import INSTANCE_TYPES

LEFT_OUT = ("ml.p2.", "ml.p3.", "ml.p6e-")


@pytest.fixture(scope="module")
def described() -> dict:
    file = Path(moto.ec2.__file__).parent / "resources" / "instance_types.json.gz"
    return json.loads(gzip.decompress(file.read_bytes()))


def test_every_gpu_type_of_sagemaker_is_there_or_left_out_on_purpose():
    model = botocore.session.get_session().get_service_model("sagemaker")
    names = [
        each for each in model.shape_for("ProductionVariantInstanceType").enum if each.startswith(("ml.g", "ml.p"))
    ]
    assert set(INSTANCE_TYPES) == {each for each in names if not each.startswith(LEFT_OUT)}


@pytest.mark.parametrize("name", INSTANCE_TYPES)
def test_the_table_says_what_ec2_says(described, name):
    kind, ec2 = INSTANCE_TYPES[name], described[name.removeprefix("ml.")]
    (gpu,) = ec2["GpuInfo"]["Gpus"]
    assert (kind.gpu, kind.gpus, kind.gpu_memory_mib) == (gpu["Name"], gpu["Count"], gpu["MemoryInfo"]["SizeInMiB"])
    assert kind.local_nvme == (ec2["InstanceStorageInfo"]["NvmeSupport"] == "required")
    assert ec2["ProcessorInfo"]["SupportedArchitectures"] == ["x86_64"]
