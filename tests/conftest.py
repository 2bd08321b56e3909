import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--endpoint-name", help="run tests/contract against this endpoint, wherever boto3 reaches it")
