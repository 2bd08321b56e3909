def test_logical_ids_stay(template):
    """A changed id of the endpoint is a new endpoint, and the end of all sessions of the old one."""
    resources = template.to_json()["Resources"]
    assert {name: resource["Type"] for name, resource in resources.items()} == {
        "StickyExecutionRole147D98F6": "AWS::IAM::Role",
        "StickyExecutionRoleDefaultPolicyC553C193": "AWS::IAM::Policy",
        "StickyModel086319BA": "AWS::SageMaker::Model",
        "StickyEndpointConfig8145F742": "AWS::SageMaker::EndpointConfig",
        "StickyEndpointEA47C7C3": "AWS::SageMaker::Endpoint",
        "ScalingTarget6760FBAF": "AWS::ApplicationAutoScaling::ScalableTarget",
        "ScalingTargetConcurrency82F7C689": "AWS::ApplicationAutoScaling::ScalingPolicy",
    }


def test_outputs_say_how_to_try_it(template):
    outputs = template.to_json()["Outputs"]
    name, region = {"Fn::GetAtt": ["StickyEndpointEA47C7C3", "EndpointName"]}, {"Ref": "AWS::Region"}
    assert outputs["EndpointName"]["Value"] == name
    assert outputs["Region"]["Value"] == region
    assert outputs["SmokeCommand"]["Value"] == {
        "Fn::Join": ["", ["sticky smoke --endpoint-name ", name, " --region ", region]]
    }
