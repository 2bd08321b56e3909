# ENGINE=echo does everything without SGLang (macOS, ARM). PYTHON chooses the Python that makes .venv.
ENGINE ?= sglang
PYTHON ?= python3
export PYTHON
BIN := $(CURDIR)/.venv/bin
export PATH := $(BIN):$(PATH)
export PYTHONPATH := $(CURDIR)

.PHONY: help setup runtime demo emulator test check synth rehearse wheel bench

help:            ## What can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

setup: runtime   ## Everything: what a conversation takes, tools, tests, the CDK
	@scripts/setup.sh tools $(ENGINE)

runtime:
	@scripts/setup.sh runtime $(ENGINE)

demo: runtime    ## Two remembered conversations at once, on this machine
	@python -m scripts.demo --engine $(ENGINE)

emulator: runtime ## SageMaker's runtime API on loopback, in front of two containers; Ctrl-C ends it
	@python -m emulator --instances 2 --engine $(ENGINE) --port 8090

test: setup      ## Every test: units, contract on the echo engine and on SGLang
	@scripts/test.sh $(ENGINE)

check: setup     ## ruff, mypy, import-linter
	@ruff check . && ruff format --check . && mypy && lint-imports && hadolint container/Dockerfile

synth: setup     ## The CloudFormation template, into cdk.out
	@cdk synth --quiet

rehearse: setup  ## cdk bootstrap, deploy, smoke, change, destroy against an account on loopback
	@python -m tests.rehearsal

wheel: setup     ## The client's wheel, installed alone on every Python from 3.10 that is here
	@python -m scripts.check_wheel

bench: setup     ## Figures of client and server, each beside a peer
	@scripts/setup.sh peers
	@python -m benchmarks.client && python -m benchmarks.server $(if $(filter echo,$(ENGINE)),echo)
