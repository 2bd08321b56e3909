import botocore.session
import pytest

from infra.cuda import AMI_VERSIONS, DEFAULT_IMAGE_CUDA, ami_version_for, cuda_of_tag, fits


@pytest.mark.parametrize(
    ("image", "cuda"),
    [
        ("lmsysorg/sglang:v0.5.23", None),
        ("lmsysorg/sglang:v0.5.2-cu126", "12.6"),
        ("lmsysorg/sglang:v0.5.2-cu129-amd64", "12.9"),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/sglang:0.5.17-gpu-py312-cu130-ubuntu24.04-sagemaker", "13.0"),
        ("cu130/sglang:v1", None),
        ("localhost:5000/sglang", None),
    ],
)
def test_the_tag_says_the_cuda(image, cuda):
    assert cuda_of_tag(image) == cuda


def test_every_host_image_is_one_of_sagemakers():
    known = (
        botocore.session.get_session().get_service_model("sagemaker").shape_for("ProductionVariantInferenceAmiVersion")
    )
    assert set(AMI_VERSIONS) == {each for each in known.enum if "-gpu-" in each}


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [("13.0", "4-1"), ("13.1", "4-1"), ("12.9", "3-1"), ("12.4", "3-1"), ("12.2", "2-1"), ("11.8", "2-1")],
)
def test_the_host_image_for_a_cuda(cuda, driver):
    assert ami_version_for(cuda).endswith(f"gpu-{driver}")


def test_no_host_image_fits_two_generations():
    assert not fits(ami_version_for(DEFAULT_IMAGE_CUDA), "12.9")
    assert ami_version_for("10.0") is None
