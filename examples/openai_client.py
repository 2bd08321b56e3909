"""The `openai` package on a sticky endpoint, through SageMaker's OpenAI path. No session: each call says everything.

Run it against `make emulator`, whose variables it reads: python examples/openai_client.py
On AWS the path wants AWS's authorization: what is sent as API key is in OPENAI_API_KEY.
"""

from __future__ import annotations

import os

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam


def main() -> None:
    """Two turns; the second is streamed."""
    runtime = os.environ["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"]
    endpoint = os.environ.get("ENDPOINT_NAME", "sticky")
    client = OpenAI(
        base_url=f"{runtime}/endpoints/{endpoint}/openai/v1", api_key=os.environ.get("OPENAI_API_KEY", "none")
    )
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "My dog is called Rex."}]
    first = client.chat.completions.create(model=endpoint, messages=messages, max_tokens=64)
    print(first.choices[0].message.content)

    messages += [
        {"role": "assistant", "content": first.choices[0].message.content},
        {"role": "user", "content": "What is my dog called?"},
    ]
    stream = client.chat.completions.create(
        model=endpoint, messages=messages, max_tokens=64, stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
        elif chunk.usage:
            print(f"\n{chunk.usage.prompt_tokens} prompt tokens")
    client.close()


if __name__ == "__main__":
    main()
