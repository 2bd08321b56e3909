from __future__ import annotations

import pytest

from emulator.errors import MAX_MESSAGE_LENGTH, ModelErrors, endpoint_not_found

ERRORS = ModelErrors(endpoint="sticky", region="eu-west-1")


@pytest.mark.parametrize(("status", "kind"), [(400, "client"), (429, "client"), (500, "server"), (503, "server")])
def test_a_containers_error(status: int, kind: str) -> None:
    error = ERRORS.from_container(status, '{"error": {}}')
    assert (error.name, error.status) == ("ModelError", 424)
    assert error.body() == {
        "Message": f'Received {kind} error ({status}) from primary with message "{{"error": {{}}}}". See '
        "https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logEventViewer:group="
        "/aws/sagemaker/Endpoints/sticky in account 123456789012 for more information.",
        "OriginalStatusCode": status,
        "OriginalMessage": '{"error": {}}',
        "LogStreamArn": "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/sagemaker/Endpoints/sticky",
    }


def test_messages_are_as_long_as_the_service_model_allows() -> None:
    body = ERRORS.from_container(500, "x" * 5000).body()
    assert (len(body["Message"]), len(body["OriginalMessage"])) == (MAX_MESSAGE_LENGTH, MAX_MESSAGE_LENGTH)


def test_an_unknown_endpoint_in_the_words_of_aws() -> None:
    assert endpoint_not_found("other").message == "Endpoint other of account 123456789012 not found."
