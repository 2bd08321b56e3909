"""The peer of ``benchmarks.server``: a FastAPI echo app with the sessions of model-hosting-container-standards 0.1.16.

That is what AWS gives to those who bring a container of their own today. Usage: ``python peer_sessions.py PORT``.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["SAGEMAKER_ENABLE_STATEFUL_SESSIONS"] = "true"

import uvicorn
from fastapi import FastAPI, Request, Response
from model_hosting_container_standards.sagemaker import bootstrap, stateful_session_manager

app = FastAPI()


@app.get("/ping")
async def ping() -> Response:
    """Ready."""
    return Response(status_code=200)


@app.post("/invocations")
@stateful_session_manager()
async def invocations(request: Request) -> Response:
    """Echo the words, as the echo engine does."""
    body = json.loads(await request.body())
    return Response(json.dumps({"generation": {"text": f"You said: {body['inputs']}"}}), media_type="application/json")


bootstrap(app)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
