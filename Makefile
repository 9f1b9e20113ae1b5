# The front door of Attune. `make help` lists what it can do.
#
#   JOBS=N              compilers at a time (default: one a CPU, fewer where memory is short)
#   TESTS=REGEX         run only the tests whose names match
#   ARCH=MACHINE        what `make package` packs for: x86_64, aarch64 (default: both, where it can)
#   SEEDS=N, SEED=N     how many worlds `make sim` runs (default: 1000), and the first one (1)
#   ATTUNE_TORCH_DIR=D  another LibTorch than the one that setup installs

export PATH := $(CURDIR)/.deps/node/bin:$(PATH)

DEMO_DATA := build/demo-data

.DEFAULT_GOAL := build
.PHONY: setup-tests setup-long build demo test sim sanitize cuda bench package test-long reference docs format lint setup setup-docs clean help

build: setup-tests ## Build everything
	@scripts/build

demo: setup ## Tune a small network on Fashion-MNIST on this machine, with the web page
	@scripts/build attune fashion_mnist
	@build/attune run examples/fashion_mnist/sweep.yaml --data-dir $(DEMO_DATA)

test: setup-tests ## Build everything and run every test
	@scripts/build
	@scripts/progress.py ctest ctest --test-dir build --output-on-failure -j2 $(if $(TESTS),-R '$(TESTS)')

sim: setup-tests ## Run simulated services: SEEDS=N of them, from SEED=N on
	@scripts/build sim
	@build/tests/sim/sim --seeds $(or $(SEEDS),1000) --seed $(or $(SEED),1)

sanitize: setup-tests ## Run the tests of the pure rooms under sanitizers, and the fuzzers for a while
	@scripts/sanitize

cuda: ## Compile the SDK's CUDA code, also where there is no CUDA
	@scripts/cuda

bench: setup-tests ## Build for release and run the benchmarks
	@scripts/build --preset release bench

package: ## Pack attune as archives, wheels and Debian packages, in build-release/packages/
	@packaging/pack $(ARCH)

test-long: setup-long ## Run the slow tests, as root: packages on bare systems, also aarch64; many seeds
	@packaging/pack x86_64 aarch64
	@scripts/build sim
	@scripts/progress.py ctest ctest --test-dir build -C long -L long --output-on-failure $(if $(TESTS),-R '$(TESTS)')

reference: setup-tests ## Make the reference of the SDK's headers, as pages for a browser
	@scripts/build reference

docs: setup-docs ## Make the documentation as a site for a browser, with search
	@scripts/docs

format: setup-tests ## Format the C++ sources
	@scripts/lint --fix

lint: setup-tests ## Check formatting, and clang-tidy where it is installed
	@scripts/lint

setup: ## Install what Attune is built from (silent if nothing is missing)
	@scripts/setup

setup-tests: ## Install that and what the tests need (silent if nothing is missing)
	@scripts/setup tests

setup-docs:
	@scripts/setup docs

setup-long:
	@scripts/setup long

clean: ## Remove what make built
	@rm -rf build build-debug build-release build-asan build-tsan build-cuda build-cuda-objects build-aarch64 build-chroots

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
