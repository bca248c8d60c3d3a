# `make run` and `make test` install what they lack; both can be run again at any time.

CARGO ?= cargo
NOVAPLACE = $(CARGO) run --release --locked --quiet -p cli --

.DEFAULT_GOAL := help
.PHONY: help run test lint bench soak build-deps test-deps

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build-deps ## serve a demo fleet on http://127.0.0.1:8080
	$(NOVAPLACE) serve --demo --listen 127.0.0.1:8080

test: test-deps ## every test
	$(CARGO) test --workspace --locked
	tests/contract/run

lint: build-deps ## formatting and lints, as CI runs them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

bench: build-deps ## placing at 10,000 hosts and 100,000 VMs, then the hot path in pieces
	$(NOVAPLACE) bench scale --hosts 10000 --vms 100000 --seconds 10 --json
	$(CARGO) bench --locked -p benches

soak: build-deps ## faults in the simulator until stopped; SOAK="--seed 7" passes options on
	$(NOVAPLACE) chaos run $(SOAK)

build-deps:
	@tests/deps.sh build

test-deps:
	@tests/deps.sh test
