# `make test` is everything that must be green before a change lands; it needs Rust and nothing else.
CARGO ?= cargo
export CARGO_TERM_COLOR ?= always

.PHONY: test test-real real fmt lint unit doctest doc deny bench clean

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

# etcd, kube-apiserver, kube-controller-manager and kubectl from their published Go modules, once, into a cache folder
# outside the repository. Tests that compare with the real ones use them where they are.
real:
	@tools/real/build.sh

test-real: real
	$(CARGO) test -p kubewright-envtest --locked -- --nocapture
	$(CARGO) test -p kubewright-cluster --features real --locked --test real --test same

# Licences, duplicate versions and sources of every dependency (installs cargo-deny on first use).
deny:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources

# kubewright beside its peers: one table of ratios. client-go joins where Go is installed.
BENCH_OURS := $(or $(CARGO_TARGET_DIR),target)/release
BENCH_KUBE_RS := $(or $(CARGO_TARGET_DIR),bench/peers/kube-rs/target)/release/peer-kube-rs
bench:
	$(CARGO) build --release --locked -p kubewright-bench -p kubewright-cli
	cd bench/peers/kube-rs && $(CARGO) build --release --locked
	@if command -v go >/dev/null; then \
		cd bench/peers/go && mkdir -p target && for peer in indexer queue; do go build -o target/$$peer ./$$peer || exit 1; done; \
	else echo "Go is not installed: client-go is left out" >&2; fi
	$(BENCH_OURS)/compare --ours $(BENCH_OURS) --kube-rs $(BENCH_KUBE_RS) \
		--go bench/peers/go/target $(BENCH_FLAGS)

clean:
	$(CARGO) clean
