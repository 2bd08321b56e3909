"""A web front end that keeps nothing: the browser keeps a session id, SageMaker finds the instance, it remembers.

Any process of any number answers any request. A session that is lost is 410: the browser, which has the text, may begin
another one with it. Run it against `make emulator`, whose variables it reads:

    uvicorn examples.fastapi_front_end:app
    id=$(curl -s -X POST localhost:8000/conversations | jq -r .id)
    curl -N localhost:8000/conversations/$id/turns --json '{"text": "My dog is called Rex."}'
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel
from sagemaker_sticky import InvalidRequest, SessionBusy, SessionLost, StickyError, Unavailable
from sagemaker_sticky.aio import AsyncStickyClient

STATUSES = ((InvalidRequest, 400), (SessionBusy, 409), (SessionLost, 410), (Unavailable, 503), (StickyError, 502))


class Say(BaseModel):
    """What the user said."""

    text: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for the process."""
    async with AsyncStickyClient(os.environ.get("ENDPOINT_NAME", "sticky")) as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/conversations", status_code=201)
async def begin(request: Request) -> dict[str, str | None]:
    """Open a session; its id is all that anyone has to keep."""
    session = await request.app.state.client.session(system="Answer in one sentence.").open()
    return {"id": session.id, "expires_at": session.expires_at.isoformat() if session.expires_at else None}


@app.post("/conversations/{session_id}/turns")
async def say(session_id: str, said: Say, request: Request) -> StreamingResponse:
    """Answer a turn while it is written. A browser that leaves ends the generation."""
    session = request.app.state.client.attach(session_id)
    opened = AsyncExitStack()
    stream = await opened.enter_async_context(session.stream(said.text))  # here, so that an error has a status

    async def pieces() -> AsyncIterator[str]:
        async with opened:
            async for piece in stream:
                yield piece

    return StreamingResponse(pieces(), media_type="text/plain; charset=utf-8")


@app.delete("/conversations/{session_id}", status_code=204)
async def end(session_id: str, request: Request) -> None:
    """Close the session."""
    await request.app.state.client.attach(session_id).close()


@app.exception_handler(StickyError)
async def failed(_request: Request, error: StickyError) -> JSONResponse:
    """An error of the endpoint as a status of this front end."""
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    return JSONResponse({"code": error.code, "message": str(error)}, status_code=status)
