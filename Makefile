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

# Licences, duplicate versions and sources of every dependency (installs cargo-deny on first use).
deny:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources

# kubewright beside its peers: one table of ratios, and the same as a chart. client-go, controller-runtime and a real
# kube-apiserver join where Go is installed. BENCH_FLAGS=--quick takes minutes; bench/src/bin/compare.rs has all flags.
BENCH_OURS := $(or $(CARGO_TARGET_DIR),target)/release
BENCH_KUBE_RS := $(or $(CARGO_TARGET_DIR),bench/peers/kube-rs/target)/release
BENCH_GO := informer queue indexer operator manager e2e
bench:
	$(CARGO) build --release --locked -p kubewright-bench -p kubewright-cli
	cd bench/peers/kube-rs && $(CARGO) build --release --locked
	@if command -v go >/dev/null; then \
		tools/real/build.sh etcd kube-apiserver kubectl >/dev/null || exit 1; \
		cd bench/peers/go && mkdir -p target && go build -o target/ $(addprefix ./,$(BENCH_GO)) || exit 1; \
	else echo "Go is not installed: client-go and kube-apiserver are left out" >&2; fi
	$(BENCH_OURS)/compare --ours $(BENCH_OURS) --kube-rs $(BENCH_KUBE_RS) --go bench/peers/go/target \
		--real "$$(tools/real/build.sh --where)" --chart docs/performance.svg $(BENCH_FLAGS)

clean:
	$(CARGO) clean
