# The targets that people use. Meson and ninja build underneath; everything lands in build/ (build-asan/, build-tsan/, build-fuzz/ and
# build-portable/ for those).

SANITIZE ?=
SECONDS_EACH ?= 60
PYTEST_ARGS ?=
BASE ?=

comma := ,
build_of_ := build
build_of_address,undefined := build-asan
build_of_address := build-asan
build_of_thread := build-tsan
BUILD := $(build_of_$(SANITIZE))
ifeq ($(BUILD),)
$(error SANITIZE=$(SANITIZE) is unknown; use SANITIZE=address,undefined or SANITIZE=thread)
endif
SETUP := $(if $(SANITIZE),-Db_sanitize=$(SANITIZE) -Db_lundef=false --buildtype=debugoptimized -Dc_args=-g1)

VENV := build/venv/bin
SCRIPTS = $(shell git grep -lE '^\#!/usr/bin/(env )?python3' -- tools bin)

.PHONY: all help build portable packages build-tests demo test test-long system lint format bench fuzz clean
.DEFAULT_GOAL := all

all: ## build dl3d, dl3gen and the dl3 command into build/
	@tools/install-deps build
	@$(MAKE) --no-print-directory build
	@tools/setup-venv run

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build:
	@tools/run-build $(BUILD) $(SETUP)

portable: ## what packages get: a build for any CPU of this kind, in build-portable/; guests run it
	@tools/run-build build-portable -Dmarch=corei7 -Dtests=disabled

packages: ## Debian packages of the latest commit, for Debian 12 and 13, in build/packages/
	@tools/install-deps packages
	@tools/make-packages

build-tests:
	@TARGET=$(TARGET) tools/run-build $(BUILD) $(SETUP) -Dtests=enabled

demo: ## two Linux hosts talk through dl3d, its rate beside testpmd's, then dl3gen measures it and makes a page
	@tools/install-deps build demo
	@$(MAKE) --no-print-directory build
	@tools/setup-venv run
	@tools/demo

test: ## all but the long tests; SANITIZE=address,undefined or SANITIZE=thread: those in C, under that sanitizer
	@tools/install-deps build test $(if $(SANITIZE),,demo bench)
	@$(MAKE) --no-print-directory build-tests $(if $(SANITIZE),TARGET=meson-test-prereq)
	@$(if $(SANITIZE),,tools/setup-venv test)
	@tools/run-tests $(BUILD) $(PYTEST_ARGS)

test-long: ## all tests, the system tests under ASan and UBSan, and make fuzz; goes on after a failure
	@tools/install-deps build test guest demo bench packages
	@$(MAKE) --no-print-directory build-tests portable
	@$(MAKE) --no-print-directory SANITIZE=address,undefined build-tests
	@tools/setup-venv test
	@failed=0; \
	tools/run-tests build --long $(PYTEST_ARGS) || failed=1; \
	tools/run-tests build-asan --long $(PYTEST_ARGS) || failed=1; \
	$(MAKE) --no-print-directory fuzz TARGET=all || failed=1; \
	exit $$failed

system: ## the system tests alone, with the long ones (30 s of route changes)
	@tools/install-deps build test guest demo bench
	@$(MAKE) --no-print-directory build-tests portable
	@tools/setup-venv test
	@DL3_BUILD=$(BUILD) $(VENV)/python -m pytest test --long $(PYTEST_ARGS)

lint: ## format, types, shell scripts, modules, sizes, words
	@tools/install-deps build lint
	@tools/setup-venv lint
	@tools/run-lint

format: ## let clang-format and ruff lay out all files
	@tools/install-deps build lint
	@tools/setup-venv lint
	clang-format -i $$(git ls-files '*.c' '*.h')
	$(VENV)/ruff format dl3 test tools/*.py $(SCRIPTS)
	$(VENV)/ruff check --fix dl3 test tools/*.py $(SCRIPTS)

bench: ## dl3d and dl3gen beside l3fwd and testpmd, interleaved, and a restart of dl3d; BASE=REV: dl3d beside that of another commit
	@tools/install-deps build bench
	@$(MAKE) --no-print-directory build
	@tools/setup-venv run
	@$(if $(BASE),tools/bench-against "$(BASE)",bin/dl3 bench peers && bin/dl3 bench restart)

fuzz: ## every fuzz target for SECONDS_EACH (60) seconds
	@tools/install-deps build fuzz
	@CC=clang TARGET=$(or $(TARGET),fuzz) tools/run-build build-fuzz -Dfuzz=true
	@tools/run-fuzz build-fuzz $(SECONDS_EACH)

clean: ## remove all that was built
	rm -rf build build-asan build-tsan build-fuzz build-portable
	@git worktree prune 2>/dev/null || true # of commits that were built below build/
