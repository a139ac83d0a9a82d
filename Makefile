# `make test` is everything that must be green before a change lands; it needs Rust and nothing else.
CARGO ?= cargo
export CARGO_TERM_COLOR ?= always

.PHONY: test fmt lint unit doctest doc deny bench tools clean

# Where tools are kept that tests use but do not need.
KUBEWRIGHT_CACHE ?= $(HOME)/.cache/kubewright
KUBECTL_VERSION := v1.37.0

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

# kubewright beside its peers: one table of ratios. client-go joins where Go is installed.
bench:
	$(CARGO) build --release --locked -p kubewright-bench
	cd bench/peers/kube-rs && $(CARGO) build --release --locked
	@if command -v go >/dev/null; then \
		cd bench/peers/go && mkdir -p target && for peer in indexer queue; do go build -o target/$$peer ./$$peer || exit 1; done; \
	else echo "Go is not installed: client-go is left out" >&2; fi
	target/release/compare --ours target/release --kube-rs bench/peers/kube-rs/target/release/peer-kube-rs \
		--go bench/peers/go/target $(BENCH_FLAGS)

# kubectl from its published modules, for crates/kubewright-cli/tests/kubectl.rs (needs Go; without it those tests are
# skipped).
tools:
	cd tools/kubectl && go build -trimpath -o "$(KUBEWRIGHT_CACHE)/bin/kubectl" \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(KUBECTL_VERSION)" .

clean:
	$(CARGO) clean
