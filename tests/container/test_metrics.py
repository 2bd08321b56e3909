from __future__ import annotations

import json
import re
from collections.abc import Callable

from container.engine import Usage
from container.metrics import EMF_VALUES, Metrics

from .conftest import Container


def turn(metrics: Metrics, *, first_token_seconds: float = 0.25, rerendered: bool = False) -> None:
    usage = Usage(prompt_tokens=30, completion_tokens=5, cached_tokens=20)
    metrics.turn(usage, first_token_seconds=first_token_seconds, queue_seconds=0.0, rerendered=rerendered)


def test_an_emf_line_holds_what_happened_since_the_last_one() -> None:
    metrics = Metrics(lambda: 3)
    metrics.session("opened")
    turn(metrics)
    turn(metrics, rerendered=True)
    line = json.loads(metrics.emf("StickySGLang/test"))
    (head,) = line["_aws"]["CloudWatchMetrics"]
    assert head["Namespace"] == "StickySGLang/test"
    assert {each["Name"] for each in head["Metrics"]} == line.keys() - {"_aws"}
    assert (line["OpenSessions"], line["SessionsOpened"], line["Turns"], line["Rerenders"]) == (3, 1, 2, 1)
    assert (line["PromptTokens"], line["CachedTokens"], line["CompletionTokens"]) == (60, 40, 10)
    assert line["TimeToFirstToken"] == [0.25, 0.25]
    assert json.loads(metrics.emf("StickySGLang/test")).keys() == {"_aws", "OpenSessions"}


def test_an_emf_line_keeps_to_cloudwatchs_limit() -> None:
    metrics = Metrics(lambda: 0)
    for _ in range(EMF_VALUES + 1):
        turn(metrics)
    assert len(json.loads(metrics.emf("x"))["TimeToFirstToken"]) == EMF_VALUES


def test_a_histogram_counts_a_value_in_every_bucket_that_it_fits() -> None:
    metrics = Metrics(lambda: 0)
    for seconds in (0.01, 0.3, 100.0):
        turn(metrics, first_token_seconds=seconds)
    name = "sticky_time_to_first_token_seconds"
    lines = dict(line.rsplit(" ", 1) for line in metrics.prometheus().decode().splitlines() if line.startswith(name))
    counts = {bound: lines[f'{name}_bucket{{le="{bound}"}}'] for bound in ("0.01", "0.25", "0.5", "60.0", "+Inf")}
    assert counts == {"0.01": "1.0", "0.25": "1.0", "0.5": "2.0", "60.0": "2.0", "+Inf": "3.0"}
    assert float(lines[f"{name}_sum"]) == 100.31


def value(container: Container, name: str) -> float:
    text = container.request("GET", "/metrics").body.decode()
    (found,) = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.M)
    return float(found)


def test_prometheus_counts_sessions_turns_tokens_and_errors(start: Callable[..., Container]) -> None:
    container = start()
    session = container.open()
    assert value(container, "sticky_open_sessions") == 1
    usage = container.invoke({"inputs": "hello"}, session).json["generation"]["meta_info"]
    assert value(container, "sticky_turns_total") == 1
    assert value(container, 'sticky_tokens_total{kind="prompt"}') == usage["prompt_tokens"]
    assert value(container, "sticky_time_to_first_token_seconds_count") == 1
    container.invoke({"inputs": ""}, session)
    assert value(container, 'sticky_errors_total{code="invalid_request"}') == 1
    container.invoke({"requestType": "CLOSE"}, session)
    assert value(container, "sticky_open_sessions") == 0
    assert value(container, 'sticky_sessions_total{event="closed"}') == 1


def test_logs_are_json_with_ids_and_never_have_prompt_text(start: Callable[..., Container]) -> None:
    container = start(STICKY_METRICS_NAMESPACE="StickySGLang/test")
    secret = "xylophone-7731"
    session = container.open(messages=[{"role": "system", "content": secret}])
    container.invoke({"inputs": secret}, session)
    container.invoke({"inputs": secret, "stream": True}, session)
    container.invoke({"inputs": secret, "parameters": {secret: 1}}, session)
    container.invoke({"messages": [{"role": "user", "content": secret}]})
    container.invoke(f'{{"inputs": "{secret}"'.encode(), session)
    container.invoke({"requestType": "CLOSE"}, session)
    container.invoke({"requestType": "CLOSE"}, session)
    container.process.terminate()
    container.process.wait(20)
    text = container.log.read_text()
    assert secret not in text
    lines = [json.loads(line) for line in text.splitlines()]
    refused = [line for line in lines if line["message"].startswith("refused")]
    assert len(refused) == 3
    assert refused[-1]["session_id"] == session
    assert re.fullmatch("[0-9a-f]{8}-[0-9]+", refused[-1]["request_id"])
