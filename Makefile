# `make run` and `make test` install what they lack; both can be run again at any time.

CARGO ?= cargo

.PHONY: test lint bench soak

test: ## every test
	$(CARGO) test --workspace --locked

lint: ## formatting and lints, as CI runs them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
