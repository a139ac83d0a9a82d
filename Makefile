# `make test` is everything that must be green before a change lands; it needs Rust and nothing else.
CARGO ?= cargo
export CARGO_TERM_COLOR ?= always

.PHONY: test fmt lint unit doctest doc deny bench clean

test: fmt lint unit doctest doc

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

unit:
	$(CARGO) test --workspace --all-targets --locked

doctest:
	$(CARGO) test --workspace --doc --locked

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

# Licences, duplicate versions and sources of every dependency (installs cargo-deny on first use).
deny:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources

clean:
	$(CARGO) clean
