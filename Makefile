# The same words here, in CI and in the README. Each does its whole job on a fresh machine with Rust and a C compiler; the tests run examples in
# Python and TypeScript too, for which they install a compiler with npm, once.

SEEDS ?= 1000
FIRST ?= 0
SCENARIO ?= all

.PHONY: run test check sim bench schemathesis

## A workflow worth looking at: fan-outs inside of each other, a retry, a sub-workflow; three seconds, live on a terminal.
run:
	cargo run --locked --release --quiet -p steadfast-cli -- run examples/graphs/research.yaml

## Everything that can fail; examples are built with the tests.
test:
	INSTA_UPDATE=no cargo test --locked --workspace
	$${CARGO_TARGET_DIR:-target}/debug/examples/counter

## Form: formatting, lints (which also keep `core` pure), documentation.
check:
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p steadfast --features mutations -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

## Random histories: make sim SEEDS=10000, and make sim SEEDS=1 FIRST=4711 SCENARIO=graphs to replay one.
sim:
	cargo run --locked --release --quiet -p steadfast-sim -- $(SEEDS) $(FIRST) $(SCENARIO)

## The benchmarks in full: about three minutes on a machine that does nothing else.
bench:
	cargo run --locked --release --quiet -p steadfast-cli -- bench all

## The whole HTTP API tried by its own description; needs Python and, the first time, the network: make schemathesis SECONDS_MAX=600
schemathesis:
	SECONDS_MAX=$(or $(SECONDS_MAX),120) scripts/schemathesis
