"""The real engine: ``sglang.Engine`` in this process, its scheduler and detokenizer as children.

The one module that imports SGLang. Sessions use its radix cache (``session_id``, ``enable_session_radix_cache``): KV
of an open session outlives other cache entries and can still be evicted, so that no session can stop the scheduler.
"""

from __future__ import annotations

import asyncio
import logging
import os
from argparse import ArgumentParser
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, redirect_stderr
from copy import copy
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import sglang
import torch
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest, CompletionRequest
from sglang.srt.entrypoints.openai.serving_chat import OpenAIServingChat
from sglang.srt.entrypoints.openai.serving_completions import OpenAIServingCompletion
from sglang.srt.managers.io_struct import CloseSessionReqInput
from sglang.srt.server_args import ServerArgs, prepare_server_args

from container import logs, openai_sglang
from container.arguments import Machine, check_known, command_line, defaults, first_names, model_path
from container.config import ContainerConfig
from container.engine import Chunk, Event, Generation, OpenAICall, Usage
from container.errors import invalid
from container.openai_sglang import refused
from container.tokenizer import HuggingFaceTokenizer

logger = logging.getLogger(__name__)

OURS = ("--enable-session-radix-cache", "--incremental-streaming-output", "--enable-cache-report", "--enable-metrics")
"""What this container relies on, whatever the settings."""
WARM_UP = {"max_new_tokens": 2, "temperature": 0.0}


def server_args(config: ContainerConfig) -> ServerArgs:
    """SGLang's arguments for these settings and this machine.

    Raises:
        ValueError: a setting is unknown to this SGLang, or SGLang refuses its value.
    """
    parser = ArgumentParser()
    ServerArgs.add_cli_args(parser)
    options = {option for action in parser._actions for option in action.option_strings}
    given = first_names(config.engine_arguments)
    check_known(given, options)
    path = model_path(given)
    chosen = defaults(_machine(path, config), given)
    if chosen:
        logger.info("chosen for this machine: %s", " ".join(command_line(chosen)))
    for lacking in (each for each in OURS if each not in options):
        logger.warning("this SGLang has no %s: going without", lacking)
    line = [each for each in OURS if each in options]
    line += command_line({"log_level": "warning", **chosen, **given, "model_path": path})
    # 0.5.17 has the session cache, but behind this switch; 0.5.23 has no other.
    os.environ.setdefault("SGLANG_ENABLE_UNIFIED_RADIX_TREE", "1")
    problem = StringIO()
    try:
        with redirect_stderr(problem):
            return prepare_server_args(line)
    except SystemExit:
        raise ValueError(problem.getvalue().strip().rpartition("error: ")[2]) from None
    finally:
        logs.configure()  # SGLang put its own in place


def _machine(path: str, config: ContainerConfig) -> Machine:
    on_gpus = torch.cuda.is_available() and config.engine_arguments.get("device", "cuda") == "cuda"
    return Machine(
        gpus=[torch.cuda.mem_get_info(each)[1] for each in range(torch.cuda.device_count())] if on_gpus else [],
        free_host_memory=psutil.virtual_memory().available,
        weights=sum(each.stat().st_size for each in Path(path).glob("*.safetensors")) or None,
    )


class SGLangEngine:
    """See the module's docstring."""

    tokenizer: HuggingFaceTokenizer
    context_length: int
    kv_tokens: int
    ranks: int
    _engine: sglang.Engine

    def __init__(self, config: ContainerConfig) -> None:
        self.name = "sglang"
        self._arguments = server_args(config)
        self._token_secret = config.hf_token_secret_arn
        self._workers: list[psutil.Process] = []

    async def start(self) -> None:
        """Load the model in a thread, so that ``/ping`` is answered meanwhile, then generate once."""
        if self._token_secret:
            from container.hf_token import read_token

            os.environ["HF_TOKEN"] = await asyncio.to_thread(read_token, self._token_secret)
        self._engine = engine = await asyncio.to_thread(sglang.Engine, server_args=self._arguments)
        # Also the grandchildren: with several ranks, the schedulers are children of a controller.
        everyone = psutil.Process().children(recursive=True)
        self._workers = [each for each in everyone if "".join(each.cmdline()).startswith("sglang")]
        manager = engine.tokenizer_manager
        self.name = manager.served_model_name
        self.tokenizer = HuggingFaceTokenizer(manager.tokenizer)
        self._chat = OpenAIServingChat(manager, engine.template_manager)
        self._completions = OpenAIServingCompletion(manager, engine.template_manager)
        # The scheduler refuses longer prompts than its KV pool holds, whatever the model's window is.
        self.context_length = min(manager.model_config.context_len, manager.max_req_input_len + 1)
        self.ranks = self._arguments.dp_size
        self.kv_tokens = self.ranks * engine._scheduler_init_result.scheduler_infos[0]["max_total_num_tokens"]
        warm_up = Generation(input_ids=self.tokenizer.encode("Hello"), sampling_params=WARM_UP)
        async for _ in self.generate(warm_up):
            pass

    async def generate(self, generation: Generation) -> AsyncGenerator[Chunk, None]:
        """Stream from the scheduler; leaving early aborts there."""
        try:
            answer = await self._engine.async_generate(
                input_ids=generation.input_ids.tolist(),
                sampling_params=dict(generation.sampling_params),
                session_id=generation.session_id,
                routed_dp_rank=generation.rank,
                stream=generation.stream,
            )
            if not generation.stream:
                yield _chunk(answer)
                return
            async with aclosing(answer) as chunks:
                async for raw in chunks:
                    yield _chunk(raw)
        except ValueError as problem:
            raise invalid(str(problem)) from None

    def openai(self, call: OpenAICall) -> AsyncGenerator[Event, None]:
        """SGLang's own OpenAI side: its request models, template, tool-call and reasoning parsers."""
        if call.begun and self._arguments.reasoning_parser:
            # The parser would take what follows for thinking.
            raise invalid("'answerPrefix' does not go with a model whose reasoning is parsed; say 'inputs'")
        kind, serving = (ChatCompletionRequest, self._chat) if call.chat else (CompletionRequest, self._completions)
        request = openai_sglang.read_request(kind, call)
        recorder = openai_sglang.Recorder(self._engine.tokenizer_manager, call)
        serving = copy(serving)
        serving.tokenizer_manager = recorder
        return openai_sglang.events(serving, request, recorder)

    async def release(self, session_id: str) -> None:
        """Dereference the session's KV: from now on it is evicted like any other."""
        await self._engine.tokenizer_manager.close_session(CloseSessionReqInput(session_id=session_id))

    def metrics(self) -> bytes:
        """SGLang's own: of this process, and of the schedulers through Prometheus's multiprocess files."""
        children = CollectorRegistry()
        MultiProcessCollector(children)  # type: ignore[no-untyped-call]
        return generate_latest() + generate_latest(children)

    def alive(self) -> bool:
        """Whether schedulers and detokenizer run."""
        return all(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in self._workers)

    def stop(self) -> None:
        """End the child processes."""
        if hasattr(self, "_engine"):
            self._engine.shutdown()


def _chunk(raw: Mapping[str, Any]) -> Chunk:
    meta = raw["meta_info"]
    finish = meta["finish_reason"]
    if finish is None:
        return Chunk(text=raw["text"], token_ids=raw["output_ids"])
    if finish["type"] == "abort":
        raise refused(finish.get("status_code"), str(finish.get("message") or "the engine gave the generation up"))
    usage = Usage(
        prompt_tokens=meta["prompt_tokens"],
        completion_tokens=meta["completion_tokens"],
        cached_tokens=meta["cached_tokens"],
    )
    return Chunk(text=raw["text"], token_ids=raw["output_ids"], finish_reason=finish, usage=usage)
