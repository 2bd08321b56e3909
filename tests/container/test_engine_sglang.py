"""The container on real SGLang: both versions that it must run on."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from sagemaker_sticky_protocol import SESSION_ID_HEADER

from sglang_cpu.make_tiny import make_tiny

from .conftest import Container, running_container, wait_until
from .sglang_cpu import VERSIONS, settings

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(600)]

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Paris", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module", params=VERSIONS)
def sglang(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """SmolLM2, as chat models with tools and thinking are served."""
    parsers = {"SM_SGLANG_TOOL_CALL_PARSER": "qwen25", "SM_SGLANG_REASONING_PARSER": "deepseek-v3"}
    environment = settings(request.param, **parsers)
    with running_container(tmp_path_factory.mktemp("sglang") / "log", environment) as container:
        yield container


@pytest.fixture
def grammars(request: pytest.FixtureRequest, sglang: Container) -> None:
    """What a JSON schema and a required tool call need of the engine."""
    if request.node.callspec.params["sglang"] == "0.5.17":
        pytest.skip("SGLang 0.5.17 wants pinned memory for grammars, which torch has beside a GPU only")


@pytest.fixture
def client(sglang: Container) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"http://127.0.0.1:{sglang.port}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_every_earlier_token_is_cached_and_the_conversation_remembered(sglang: Container) -> None:
    system = "You remember what the user told you and answer in one short sentence."
    session = sglang.open(messages=[{"role": "system", "content": system}])
    earlier = 0
    for question in ("My dog is called Rex.", "What do dogs like to eat?", "What is my dog called?"):
        answer = sglang.invoke({"inputs": question, "parameters": {"temperature": 0}}, session).json
        usage = answer["generation"]["meta_info"]
        assert usage["cached_tokens"] >= earlier - 1
        earlier = usage["prompt_tokens"] + usage["completion_tokens"]
        assert answer["session"]["context_tokens"] == earlier
    assert "Rex" in answer["generation"]["text"]


def test_bad_sampling_values_are_the_callers_and_harm_nothing(sglang: Container) -> None:
    session = sglang.open()
    bad = sglang.invoke({"inputs": "x", "parameters": {"max_new_tokens": 2, "min_new_tokens": 3}}, session)
    assert bad.status == 400, bad.body
    assert sglang.invoke({"inputs": "x", "parameters": {"max_new_tokens": 2}}, session).json["session"]["turn"] == 1


def test_a_caller_who_leaves_aborts_the_generation(sglang: Container) -> None:
    session = sglang.open()
    connection = sglang.connect()
    body = {"inputs": "Count to 1000.", "stream": True, "parameters": {"max_new_tokens": 2000, "ignore_eos": True}}
    connection.request("POST", "/invocations", json.dumps(body), {SESSION_ID_HEADER: session})
    response: http.client.HTTPResponse = connection.getresponse()
    assert response.readline().startswith(b"data: ")
    response.close()
    connection.close()
    # 2,000 tokens take minutes here: this turn waits for the abort only.
    after = sglang.invoke({"inputs": "Hi", "parameters": {"max_new_tokens": 2}}, session).json
    assert after["session"]["turn"] == 1


def test_openai_chat_models_and_completions(client: openai.OpenAI) -> None:
    model = client.models.list().data[0].id
    chat = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "What is the capital of France?"}], temperature=0, seed=1
    )
    assert "Paris" in (chat.choices[0].message.content or "")
    assert chat.model == model
    assert chat.usage is not None
    again = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "What is the capital of France?"}], temperature=0, seed=1
    )
    assert again.choices[0].message.content == chat.choices[0].message.content
    assert again.usage is not None
    assert again.usage.prompt_tokens_details is not None
    assert again.usage.prompt_tokens_details.cached_tokens == chat.usage.prompt_tokens - 1
    completion = client.completions.create(model=model, prompt="The capital of France is", max_tokens=3, temperature=0)
    assert "Paris" in completion.choices[0].text


def test_openai_streaming_with_usage(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "Paris" in "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


def test_openai_choices_logprobs_and_stop(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "Count: one two three four five"}],
        n=2,
        max_tokens=8,
        logprobs=True,
        top_logprobs=2,
        stop=["three"],
    )
    assert len(answer.choices) == 2
    assert answer.choices[0].logprobs is not None
    assert answer.choices[0].logprobs.content is not None
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2
    assert all("three" not in (each.message.content or "") for each in answer.choices)


@pytest.mark.usefixtures("grammars")
def test_openai_json_schema(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}, "size": {"enum": ["small", "large"]}},
        "required": ["city", "size"],
        "additionalProperties": False,
    }
    answer = client.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "The capital of France, as JSON."}],
        response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": schema}},
        max_tokens=60,
        temperature=0,
    )
    assert json.loads(answer.choices[0].message.content or "").keys() == {"city", "size"}


@pytest.mark.usefixtures("grammars")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_tools_in_a_session(sglang: Container, stream: bool) -> None:
    """A required tool call, the tool's answer, and what follows: on the session's tokens."""
    session = sglang.open()
    ask = {
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
        "tools": [WEATHER],
        "tool_choice": "required",
        "temperature": 0,
        "max_tokens": 100,
        "stream": stream,
    }
    answer = sglang.invoke(ask, session)
    if stream:
        events = answer.events
        deltas = [each["choices"][0]["delta"] for each in events if each["choices"]]
        parts = [part for delta in deltas for part in delta.get("tool_calls") or ()]
        name = next(part["function"]["name"] for part in parts if part["function"].get("name"))
        arguments = "".join(part["function"].get("arguments") or "" for part in parts)
        call_id, usage = parts[0]["id"], events[-1]["usage"]
    else:
        (call,) = answer.json["choices"][0]["message"]["tool_calls"]
        name, arguments, call_id = call["function"]["name"], call["function"]["arguments"], call["id"]
        usage = answer.json["usage"]
    assert name == "get_weather"
    assert json.loads(arguments) == {"city": "Paris"}
    follow = {
        "messages": [{"role": "tool", "tool_call_id": call_id, "content": "18 degrees and sunny"}],
        "tools": [WEATHER],
        "max_tokens": 20,
        "temperature": 0,
    }
    after = sglang.invoke(follow, session).json
    assert after["session"]["turn"] == 2
    assert after["usage"]["prompt_tokens_details"]["cached_tokens"] >= usage["total_tokens"] - 1


@pytest.mark.parametrize("thinking", [False, True])
def test_thinking_is_told_apart(client: openai.OpenAI, thinking: bool) -> None:
    """A model that thinks writes its thoughts first; this one never ends them."""
    answer = client.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        temperature=0,
        max_tokens=20,
        extra_body={"chat_template_kwargs": {"thinking": thinking}},
    )
    message = answer.choices[0].message.model_dump()
    told, empty = ("reasoning_content", "content") if thinking else ("content", "reasoning_content")
    assert "Paris" in message[told]
    assert not message[empty]


def test_an_answer_does_not_go_on_inside_parsed_reasoning(sglang: Container) -> None:
    answer = sglang.invoke({"messages": [{"role": "user", "content": "x"}], "answerPrefix": "It is"})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "reasoning" in answer.message


@pytest.mark.parametrize("field", ["session_id", "rid", "input_ids", "routed_dp_rank", "extra_key"])
def test_callers_cannot_steer_the_engine(sglang: Container, field: str) -> None:
    answer = sglang.invoke({"messages": [{"role": "user", "content": "x"}], field: "x"})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert f"'{field}' is not a known field" in answer.message


def test_metrics_have_sglangs_own(sglang: Container) -> None:
    text = sglang.request("GET", "/metrics").body.decode()
    assert re.search(r"^sglang:prompt_tokens_total", text, re.M)
    assert re.search(r"^sglang:token_usage", text, re.M)
    assert re.search(r"^sticky_turns_total", text, re.M)


def test_data_parallel_sessions_stay_on_the_rank_that_holds_them(tmp_path: Path) -> None:
    model = tmp_path / "tiny"
    environment = settings(SM_SGLANG_MODEL_PATH=str(model), SM_SGLANG_DP_SIZE="2", SGLANG_CPU_OMP_THREADS_BIND="0|1")
    make_tiny(Path(settings()["SM_SGLANG_MODEL_PATH"]), model)
    with running_container(tmp_path / "log", environment) as container:
        sessions = [container.open() for _ in range(4)]
        earlier = dict.fromkeys(sessions, 0)
        for turn in range(3):
            for session in sessions:
                body = {"inputs": f"turn {turn} of session {session}", "parameters": {"max_new_tokens": 8}}
                usage = container.invoke(body, session).json["generation"]["meta_info"]
                assert usage["cached_tokens"] >= earlier[session] - 1
                earlier[session] = usage["prompt_tokens"] + usage["completion_tokens"]
        # Both copies of the model have worked.
        text = container.request("GET", "/metrics").body.decode()
        assert len(set(re.findall(r'^sglang:num_requests_total.*dp_rank="(\d)"', text, re.M)) | {"0", "1"}) == 2
        # An engine process that dies takes the server with it, non-zero.
        os.kill(scheduler_pid(container), signal.SIGKILL)
        wait_until(lambda: container.process.poll() is not None, seconds=30)
        assert container.process.returncode != 0


def scheduler_pid(container: Container) -> int:
    """One of SGLang's schedulers, which name themselves."""
    listing = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()[1:]]
    children = {int(pid): int(parent) for pid, parent, _ in rows}
    for pid, _, name in rows:
        if "sglang::scheduler" in name:
            above = int(pid)
            while above in children:
                if above == container.process.pid:
                    return int(pid)
                above = children[above]
    raise AssertionError("no scheduler runs below the container")


def test_an_unknown_engine_argument_ends_the_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = settings(SM_SGLANG_CONTEXT_LENGHT="4096")
    with pytest.raises(AssertionError), running_container(log, environment):
        pass
    assert "'SM_SGLANG_CONTEXT_LENGHT' is not an engine argument (did you mean 'context_length'?)" in log.read_text()
