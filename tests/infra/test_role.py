"""What the execution role may do: exactly this."""

import pytest
from aws_cdk.assertions import Match, Template

IN_ACCOUNT = "{AWS::Region}:{AWS::AccountId}"
LOGS = f"arn:{{AWS::Partition}}:logs:{IN_ACCOUNT}:log-group:/aws/sagemaker/Endpoints/"
REPOSITORY = (
    f"arn:{{AWS::Partition}}:ecr:{IN_ACCOUNT}:repository/"
    "{cdk-hnb659fds-container-assets-${AWS::AccountId}-${AWS::Region}}"
)


def as_text(value) -> str:
    """An ARN as CloudFormation would join it, with pseudo parameters by name."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return separator.join(as_text(part) for part in parts)
    return "{" + (value.get("Ref") or value.get("Fn::Sub") or ".".join(value["Fn::GetAtt"])) + "}"


def listed(value) -> list:
    return value if isinstance(value, list) else [value]


def allowed(template: Template) -> set[tuple[str, str]]:
    """Every pair of resource and action."""
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    return {
        (as_text(resource), action)
        for each in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in listed(each["Action"])
        for resource in listed(each["Resource"])
    }


def always(endpoint_name: str) -> set[tuple[str, str]]:
    log_groups = (LOGS + endpoint_name, LOGS + endpoint_name + ":log-stream:*")
    writes = ("CreateLogGroup", "CreateLogStream", "DescribeLogStreams", "PutLogEvents")
    return {
        (REPOSITORY, "ecr:BatchCheckLayerAvailability"),
        (REPOSITORY, "ecr:GetDownloadUrlForLayer"),
        (REPOSITORY, "ecr:BatchGetImage"),
        ("*", "ecr:GetAuthorizationToken"),
        ("*", "cloudwatch:PutMetricData"),
    } | {(group, f"logs:{action}") for group in log_groups for action in writes}


def test_by_default(template):
    assert allowed(template) == always("stickysglang")


def test_a_model_in_s3_opens_its_prefix_and_no_more(s3_template):
    bucket = "arn:{AWS::Partition}:s3:::models"
    prefix = {(f"{bucket}/qwen/7b/*", "s3:GetObject"), (bucket, "s3:ListBucket")}
    assert allowed(s3_template) == always("chat") | prefix
    condition = Match.object_like(
        {"Action": "s3:ListBucket", "Condition": {"StringLike": {"s3:prefix": ["qwen/7b/*"]}}}
    )
    s3_template.has_resource_properties(
        "AWS::IAM::Policy", {"PolicyDocument": {"Statement": Match.array_with([condition])}}
    )


def test_with_everything(everything_template):
    key = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"
    ec2 = f"arn:{{AWS::Partition}}:ec2:{IN_ACCOUNT}:"
    interface = ec2 + "network-interface/*"
    places = (
        interface,
        ec2 + "subnet/subnet-00000001",
        ec2 + "subnet/subnet-00000002",
        ec2 + "security-group/sg-00000001",
    )
    described = ("NetworkInterfaces", "Vpcs", "DhcpOptions", "Subnets", "SecurityGroups")
    changed = ("CreateNetworkInterfacePermission", "DeleteNetworkInterface", "DeleteNetworkInterfacePermission")
    assert allowed(everything_template) - always("default") == {
        ("arn:aws:secretsmanager:us-east-1:111122223333:secret:hub-AbCdEf", "secretsmanager:GetSecretValue"),
        ("arn:{AWS::Partition}:s3:::captured/chat/*", "s3:PutObject"),
        (key, "kms:Decrypt"),
        (key, "kms:GenerateDataKey"),
        *((place, "ec2:CreateNetworkInterface") for place in places),
        *((interface, f"ec2:{each}") for each in changed),
        *(("*", f"ec2:Describe{each}") for each in described),
    }


@pytest.mark.parametrize("name", ["template", "s3_template", "everything_template"])
def test_the_role_is_sagemakers_and_has_no_managed_policy(request, name):
    request.getfixturevalue(name).has_resource_properties(
        "AWS::IAM::Role",
        {
            "AssumeRolePolicyDocument": {
                "Statement": [Match.object_like({"Principal": {"Service": "sagemaker.amazonaws.com"}})]
            },
            "ManagedPolicyArns": Match.absent(),
        },
    )


def test_metrics_are_held_to_sagemakers_namespaces(template):
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    (metrics,) = (each for each in statements if each["Action"] == "cloudwatch:PutMetricData")
    assert metrics["Condition"] == {
        "StringEquals": {"cloudwatch:namespace": ["AWS/SageMaker", "/aws/sagemaker/Endpoints"]}
    }
