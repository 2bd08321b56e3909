#!/usr/bin/env bash
# Usage: scripts/test.sh sglang|echo
# Every test: those that need SGLang, which mostly wait for it to start, beside all others. Their output comes last.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$1" = sglang ] || exec python -m pytest -m "not sglang"

set -m  # a process group for each, so that an interrupt reaches what the tests have started
log=$(mktemp)
python -m pytest -m sglang >"$log" 2>&1 &
sglang=$!
trap 'kill -INT -- "-$sglang" 2>/dev/null && wait "$sglang"; rm -f "$log"' EXIT  # with what it has started
status=0
python -m pytest -m "not sglang" || status=$?
[ "$status" != 2 ] || exit 2  # interrupted
echo "tests: waiting for those that need SGLang"
wait "$sglang" || status=$?
cat "$log"
exit "$status"
