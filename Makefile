# The main commands for developers. `make help` lists them.
#
#   JOBS=N              number of compilers at a time (default: one per CPU, fewer if memory is short)
#   TESTS=REGEX         run only the tests whose names match
#   ARCH=MACHINE        architecture for `make package`: x86_64, aarch64 (default: both if possible)
#   SEEDS=N, SEED=N     number of seeds of `make sim` (default: 1000), and the first seed (default: 1)
#   ATTUNE_TORCH_DIR=D  use the LibTorch in folder D instead of the LibTorch of setup

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

sanitize: setup-tests ## Run tests under sanitizers, and the fuzzers for a short time
	@scripts/sanitize

cuda: ## Compile the SDK's CUDA code, even without CUDA
	@scripts/cuda

bench: setup-tests ## Build for release and run the benchmarks
	@scripts/build --preset release bench

package: ## Pack attune as archives, wheels and Debian packages, in build-release/packages/
	@packaging/pack $(ARCH)

test-long: setup-long ## Run the slow tests, as root: packages on bare systems, also aarch64; many seeds
	@packaging/pack x86_64 aarch64
	@scripts/kubernetes-tools
	@scripts/build sim
	@scripts/progress.py ctest ctest --test-dir build -C long -L long --output-on-failure $(if $(TESTS),-R '$(TESTS)')

reference: setup-tests ## Make the API reference of the SDK as HTML pages
	@scripts/build reference

docs: setup-docs ## Make the site of the documentation, with search
	@scripts/docs

format: setup-tests ## Format the C++ sources
	@scripts/lint --fix

lint: setup-tests ## Check formatting, and run clang-tidy if it is installed
	@scripts/lint

setup: ## Install the build dependencies (silent if nothing is missing)
	@scripts/setup

setup-tests: ## Install the dependencies of build and tests (silent if nothing is missing)
	@scripts/setup tests

setup-docs:
	@scripts/setup docs

setup-long:
	@scripts/setup long

clean: ## Remove the build folders
	@rm -rf build build-debug build-release build-asan build-tsan build-cuda build-cuda-objects build-aarch64 build-chroots

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
