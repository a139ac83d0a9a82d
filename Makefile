# `make test` is everything that must be green before a change lands; it needs Rust and nothing else.
CARGO ?= cargo
export CARGO_TERM_COLOR ?= always

.PHONY: test fmt lint unit doctest doc deny bench bench-queue clean

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

# Side by side with client-go; needs Go for the peers. REPEATS=9 for a busy machine.
bench: bench-queue

BUILT = $(abspath $(or $(CARGO_TARGET_DIR),target))

bench-queue: $(BUILT)/peers/go-queue
	$(CARGO) build --release --locked -p kubewright-bench
	$(BUILT)/release/compare distinct-1-adder distinct-4-adders burst delayed-1s \
		client-go=$(BUILT)/peers/go-queue kubewright=$(BUILT)/release/queue

$(BUILT)/peers/go-%: $(shell find bench/peers/go -type f)
	cd bench/peers/go && go build -o $@ ./$*

clean:
	$(CARGO) clean
