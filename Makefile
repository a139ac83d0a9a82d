# `make test` is everything that must be green before a change lands; it needs Rust and nothing else.
CARGO ?= cargo
export CARGO_TERM_COLOR ?= always

.PHONY: demo picture test package versions test-real real fmt lint unit doctest doc deny bench goals load explore fuzz clean

# A cluster with three nodes and five operators in one process, to look at, until Ctrl-C. With DEMO_EXIT=1 it ends when all
# is ready, and fails with the reason if that takes more than a minute.
TARGET := $(or $(CARGO_TARGET_DIR),target)
export DEMO_EXIT DEMO_PICTURE
export DEMO_KUBECONFIG ?= $(TARGET)/demo.kubeconfig
demo:
	@$(CARGO) build --locked --profile demo -p demo
	@$(TARGET)/demo/demo

# The picture in the README is what the demo shows.
picture:
	@$(MAKE) --no-print-directory demo DEMO_EXIT=1 DEMO_PICTURE=docs/demo.svg

# The demo is among the tests: examples/demo/tests runs it with DEMO_EXIT=1.
test: fmt lint unit doctest doc package

fmt:
	$(CARGO) fmt --all --check

# All features are on in the workspace (the tests of kubewright-envtest ask for them); what users get by default, and the
# least that they can have, must build too.
lint:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy -p kubewright --locked -- -D warnings
	$(CARGO) clippy -p kubewright --no-default-features --locked -- -D warnings

# Libraries work with every version of the Kubernetes API that k8s-openapi has: the oldest and the newest are built.
versions:
	for version in 1.33 1.37; do \
		K8S_OPENAPI_ENABLED_VERSION=$$version $(CARGO) check --locked -p kubewright -p kubewright-cluster || exit 1; \
	done

# Every crate that is published packs. `make package PACKAGE_FLAGS=` builds what was packed as well.
PACKAGE_FLAGS ?= --no-verify --quiet
PRIVATE := kubewright-bench kubewright-fuzz $(notdir $(patsubst %/,%,$(wildcard examples/*/)))
package:
	$(CARGO) package --workspace $(addprefix --exclude ,$(PRIVATE)) --allow-dirty --locked $(PACKAGE_FLAGS)

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

# What is held against the real ones: clients and controllers, the built-in controllers, and every operator of the examples.
# `make test` runs these too, and passes over them where the programs are not; here they have to be.
REAL_PEERS := read_side write_side
REAL_BODIES := real same ingress_manager operator board
test-real: real
	$(CARGO) test --workspace --locked $(addprefix --test ,$(REAL_PEERS)) -- --nocapture
	$(CARGO) test --workspace --locked $(addprefix --test ,$(REAL_BODIES)) -- on_a_real_control_plane

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

# The goals of the API server: each with our number, and whether it is met.
goals:
	$(CARGO) build --release --locked -p kubewright-bench -p kubewright-cli
	$(BENCH_OURS)/server goals

# A thousand watchers, two hundred writers and a hundred thousand objects at once.
load:
	$(CARGO) test --release --locked -p kubewright-apiserver --test load -- --ignored --nocapture

# Property tests from other numbers than `make test` begins with, EXPLORE times over. A failure names its seed: the same again
# is EXPLORE_SEED=… EXPLORE=1.
EXPLORE ?= 20
EXPLORE_SEED ?= $(shell date +%s)
EXPLORE_TESTS := protobuf properties histories custom_resources cel informer_properties queue
explore:
	@mkdir -p $(TARGET)
	@for seed in $$(seq $(EXPLORE_SEED) $$(($(EXPLORE_SEED) + $(EXPLORE) - 1))); do \
		echo "seed $$seed"; \
		PROPTEST_RNG_SEED=$$seed $(CARGO) test --quiet --workspace --locked --lib $(addprefix --test ,$(EXPLORE_TESTS)) \
			>$(TARGET)/explore.log 2>&1 || { cat $(TARGET)/explore.log; exit 1; }; \
	done

# Whatever comes from outside, for a while each: FUZZ_FLAGS="body cel --seconds 600 --seed 7". What fails is in
# fuzz/artifacts; cargo fuzz runs the same targets with coverage, see fuzz/Cargo.toml.
FUZZ_FLAGS ?= --seconds 60
fuzz:
	$(CARGO) run --release --locked -p kubewright-fuzz --bin fuzz -- $(FUZZ_FLAGS)

clean:
	$(CARGO) clean
