"""LangChain on a sticky session: the chain sends the whole conversation, the endpoint computes what is new.

pip install 'sagemaker-sticky[langchain]'
Run it against `make emulator`, whose variables it reads: python examples/langchain_chat.py
"""

from __future__ import annotations

import os

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from sagemaker_sticky import StickyClient
from sagemaker_sticky.langchain import ChatSticky

PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Answer in one sentence."), MessagesPlaceholder("history"), ("human", "{question}")]
)


def main() -> None:
    """A conversation of three turns; the last is streamed."""
    history: list[BaseMessage] = []
    with StickyClient(os.environ.get("ENDPOINT_NAME", "sticky")) as client, client.session() as session:
        chain = PROMPT | ChatSticky(session=session, parameters={"max_tokens": 64, "temperature": 0})
        for question in ("My dog is called Rex.", "What do dogs like to eat?"):
            answer = chain.invoke({"history": history, "question": question})
            print(answer.content)
            history += [HumanMessage(question), answer]

        usage = None
        for chunk in chain.stream({"history": history, "question": "What is my dog called?"}):
            print(chunk.content, end="", flush=True)
            usage = chunk.usage_metadata or usage
        print(f"\n{usage}")


if __name__ == "__main__":
    main()
