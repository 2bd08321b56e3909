"""A LangChain chat model on a sticky endpoint. Needs ``pip install 'sagemaker-sticky[langchain]'``.

Example::

    with StickyClient("my-endpoint").session() as session:
        chain = prompt | ChatSticky(session=session, parameters={"max_tokens": 200})
        print(chain.invoke({"question": "Who was Alan Turing?"}).content)

LangChain sends the whole conversation with every call. In a session the endpoint keeps what this shares with the last,
so that only what is new is computed; a call that shares nothing is answered too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, convert_to_openai_messages
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.messages.utils import convert_to_messages
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, model_validator

from ._core.answers import Turn
from .client import StickyClient
from .session import Session

__all__ = ["ChatSticky"]


class ChatSticky(BaseChatModel):
    """Talks in a session, or, given a client alone, without one. As a session is, it is for one thread at a time.

    Raises:
        StickyError: from every call; a pydantic ValidationError at construction.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    session: Session | None = None
    """An open session."""
    client: StickyClient | None = None
    """Instead of a session: every call computes the whole conversation, as far as the endpoint's cache lacks it."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """OpenAI's fields for every call: ``max_tokens``, ``temperature``."""

    @model_validator(mode="after")
    def _one_of_both(self) -> ChatSticky:
        if (self.session is None) == (self.client is None):
            raise ValueError("give either 'session' or 'client'")
        return self

    @property
    def _llm_type(self) -> str:
        return "sagemaker-sticky"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """This model with tools that it may call."""
        choice = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turn = self._endpoint.invoke(_said(messages), **self._parameters(stop, kwargs))
        (message,) = convert_to_messages([turn.message])
        assert isinstance(message, AIMessage)
        message.usage_metadata, message.response_metadata = _usage(turn), _metadata(turn)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        with self._endpoint.stream(_said(messages), **self._parameters(stop, kwargs)) as stream:
            for piece in stream:
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
                if run_manager is not None:
                    run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk
        turn = stream.turn
        assert turn is not None, "a stream read to its end is a turn"
        calls = enumerate(turn.message.get("tool_calls") or ())
        last = AIMessageChunk(
            content="",
            tool_call_chunks=[
                tool_call_chunk(
                    name=call["function"].get("name"),
                    args=call["function"].get("arguments"),
                    id=call.get("id"),
                    index=index,
                )
                for index, call in calls
            ],
            usage_metadata=_usage(turn),
            response_metadata=_metadata(turn),
        )
        yield ChatGenerationChunk(message=last)

    @property
    def _endpoint(self) -> Session | StickyClient:
        endpoint = self.session or self.client
        assert endpoint is not None, "checked at construction"
        return endpoint

    def _parameters(self, stop: list[str] | None, given: dict[str, Any]) -> dict[str, Any]:
        own = {} if self.session is None else {"history": "full"}
        stopped = {} if stop is None else {"stop": stop}
        return {**self.parameters, **given, **stopped, **own}


def _said(messages: list[BaseMessage]) -> list[dict[str, Any]]:
    said = convert_to_openai_messages(messages)
    return said if isinstance(said, list) else [said]


def _usage(turn: Turn) -> UsageMetadata:
    usage = turn.usage
    return UsageMetadata(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        input_token_details=InputTokenDetails(cache_read=usage.cached_tokens),
    )


def _metadata(turn: Turn) -> dict[str, Any]:
    served_by = turn.session.served_by if turn.session else None
    return {"finish_reason": turn.finish_reason, "served_by": served_by}
