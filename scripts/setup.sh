#!/usr/bin/env bash
# Usage: scripts/setup.sh runtime|tools sglang|echo, or scripts/setup.sh images|peers
# Fills .venv: "runtime" is what a conversation on this machine takes, "tools" what tests, checks and the CDK take.
# "images" installs Debian's podman and its kin, for CI: they build and run the container's image without a daemon.
# A part that is already there, for the same requirement files, costs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
CPU_TORCH_INDEX=https://download.pytorch.org/whl/cpu
CDK_CLI=aws-cdk@2.1148.1

say() { echo "setup: $*"; }

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "setup: Python 3.11 or newer is needed, $PYTHON is $("$PYTHON" --version 2>&1); set PYTHON=/path/to/python3" >&2; exit 1; }
[ -x .venv/bin/python ] || { say "making .venv"; "$PYTHON" -m venv .venv; }
PIP=".venv/bin/python -m pip --disable-pip-version-check -q"

# done_for NAME FILE...: whether NAME was installed from exactly these files; else runs the rest of the part and marks it.
fingerprint() { cat "$@" scripts/setup.sh | cksum | tr -d ' '; }
is_done() { local name=$1; shift; [ "$(cat ".venv/.$name" 2>/dev/null)" = "$(fingerprint "$@")" ]; }
mark_done() { local name=$1; shift; fingerprint "$@" > ".venv/.$name"; }

install_sglang() {
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "setup: SGLang's CPU set runs on Linux x86-64 only, this is $(uname -sm); use ENGINE=echo" >&2; exit 1
  fi
  is_done sglang requirements-cpu.txt && return
  local torch; torch=$(grep '^torch==' requirements-cpu.txt)
  say "installing SGLang for the CPU (1.6 GB, about two minutes)"
  if ! .venv/bin/python -c "import importlib.metadata as m, sys; sys.exit(m.version('torch').split('+')[0] != '${torch#torch==}')" 2>/dev/null; then
    $PIP install --no-deps "$torch+cpu" 2>/dev/null ||
      $PIP install --no-deps "$torch+cpu" --retries 1 --timeout 20 --index-url "$CPU_TORCH_INDEX" 2>/dev/null || {
        say "no CPU build of torch could be had: taking the default build, which may be several GB"
        $PIP install "$torch"
      }
  fi
  $PIP install --no-deps -r requirements-cpu.txt
  mark_done sglang requirements-cpu.txt
}

case "${1:-} ${2:-}" in
  "runtime sglang" | "runtime echo")
    [ "$2" = echo ] || install_sglang
    files=(container/requirements.txt emulator/requirements.txt client/pyproject.toml)
    if ! is_done runtime "${files[@]}"; then
      say "installing container, emulator and client"
      $PIP install --no-warn-conflicts -c requirements-cpu.txt -r container/requirements.txt -r emulator/requirements.txt -e 'client[cli]'
      mark_done runtime "${files[@]}"
    fi
    if [ "$2" = sglang ] && [ ! -d .venv/models/smollm2-135m-instruct ]; then
      say "making the model SmolLM2-135M-Instruct (260 MB)"
      .venv/bin/python -W ignore sglang_cpu/make_model.py .venv/models/smollm2-135m-instruct
    fi ;;
  "tools sglang" | "tools echo")
    if ! is_done tools requirements-dev.txt requirements.txt; then
      say "installing tools, tests and the CDK"
      $PIP install --no-warn-conflicts -c requirements-cpu.txt -r requirements-dev.txt
      PATH="$PWD/.venv/bin:$PATH" npm install --silent --no-fund --no-audit --global --prefix .venv "$CDK_CLI"
      mark_done tools requirements-dev.txt requirements.txt
    fi
    if [ "$2" = sglang ] && ! is_done sglang-0.5.17 requirements-cpu-0.5.17.txt; then
      say "installing SGLang 0.5.17, that of AWS's public image, for tests"
      rm -rf .venv/sglang-0.5.17
      $PIP install --no-deps --target .venv/sglang-0.5.17 -r requirements-cpu-0.5.17.txt
      mark_done sglang-0.5.17 requirements-cpu-0.5.17.txt
    fi ;;
  "peers ")
    if ! is_done peers requirements-bench.txt; then
      say "installing the peers of the benchmarks"
      rm -rf .venv/peers
      $PIP install --no-deps --target .venv/peers -r requirements-bench.txt
      mark_done peers requirements-bench.txt
    fi ;;
  "images ")
    if [ -n "$(.venv/bin/python -m tests.rehearsal.tools)" ]; then
      say "installing what builds and runs images (Debian's packages, as root)"
      apt-get update -qq
      DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        $(.venv/bin/python -m tests.rehearsal.tools) >/dev/null
    fi ;;
  *) echo "usage: scripts/setup.sh runtime|tools sglang|echo, or images, or peers" >&2; exit 2 ;;
esac
