# `make run` and `make test` install what they lack; both can be run again at any time.

CARGO ?= cargo
NOVAPLACE = $(CARGO) run --release --locked --quiet -p cli --

.DEFAULT_GOAL := help
.PHONY: help run test lint bench soak build-deps test-deps

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build-deps ## serve a demo fleet on http://127.0.0.1:8080
	$(NOVAPLACE) serve --demo --listen 127.0.0.1:8080 --data-dir target/demo

test: test-deps ## every test
	$(CARGO) test --workspace --locked
	tests/contract/run
	tests/go/run
	$(CARGO) test --workspace --locked --features chaos/planted-bugs --test planted -- --nocapture

lint: build-deps ## formatting and lints, as CI runs them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --profile test --workspace --all-targets --locked -- -D warnings

bench: build-deps ## figures of this machine: scale, HTTP, policies, recovery, the hot path in pieces
	$(NOVAPLACE) bench scale --hosts 10000 --vms 100000 --seconds 10
	$(NOVAPLACE) bench scale --hosts 100000 --vms 1000000 --seconds 15
	$(NOVAPLACE) bench http --hosts 10000 --vms 100000 --rps 2000 --seconds 10
	$(NOVAPLACE) bench policy --hosts 10000
	$(NOVAPLACE) bench reload --rps 2000 --seconds 10
	rm -rf target/bench-recovery
	$(NOVAPLACE) bench recovery --data-dir target/bench-recovery
	$(CARGO) bench --locked -p benches

soak: build-deps ## two million fault cycles in the simulator; SOAK="--seed 7" passes options on
	$(NOVAPLACE) chaos run --profile soak $(SOAK)

build-deps:
	@tests/deps.sh build

test-deps:
	@tests/deps.sh test
