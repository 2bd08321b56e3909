from __future__ import annotations

import os
import sys

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--endpoint-name", help="run tests/contract against this endpoint, wherever boto3 reaches it")


class ExitAsReported:
    """Ends the process with the status of the tests as soon as all is reported.

    These tests load many native libraries into one process, and one of them has crashed while the interpreter took
    itself down, with every test passed and told: what that says of the product is nothing.
    """

    status = 0

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.status = int(exitstatus)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.status)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ExitAsReported())
