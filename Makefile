# Everything from a fresh clone: Python 3.11 or newer with venv, and make, are all that is needed.
#   make demo    install into .venv, compare five schedulers on the shipped sample, say where the page is
#   make demo-live    start a federation of real processes, kill masters of it, count what became of its tasks
#   make study   Megha's heartbeat and number of global masters on the shipped sample, 120 runs, and their page
#   make test    what CI runs: linters, types, import rules, documentation, tests
#   make lint    the first three of those
#   make docs    write again what is generated, docs/reference and docs/job.schema.json, and build the site of all
#                pages in build/site
#   make bench   run every benchmark in bench/
#   make mutants change the code that decides in small ways, and see which changes no test notices
#   make planted  plant defects that no test had noticed once, and see that each is noticed
#   make conditions  count how often each guard of Megha's handlers decided which way, and see which never did
#   make plain   compile an engine without private parts of Numba, and compare a run, which takes two minutes
#   make chaos   kill processes of a real federation under load, KILLS of them (200), and count what became of each job
#   make test-hosts    follow docs/hosts.md on four hosts, then let things go wrong between ten for a minute; hosts are
#                namespaces of this machine; root only
#   make test-alerts   let each alert of deploy/alerts.yml fire once (promtool)
#   make chaos-hosts   the same for SEEDS seeds (10) of SECONDS seconds (90) each
#   make test-package  build the sdist and the wheel, and try the wheel alone in a new environment
#   make test-versions  run a part of the tests under every version of Python that pyproject.toml claims
#   make clean   remove .venv and what was built
# Debian's own where it is new enough: a newer one on PATH would hide what does not install there.
PYTHON ?= $(shell /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo /usr/bin/python3 || echo python3)
BIN := .venv/bin
OUT ?= out/demo
KILLS ?= 200
SEEDS ?= 10
SECONDS ?= 90

.PHONY: help demo demo-live study test lint ruff types bench-types collected imports reference docs bench mutants \
	planted conditions plain chaos clean test-hosts chaos-hosts test-alerts test-package test-versions
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

demo: .venv/installed
	$(BIN)/subak compare --out $(OUT) --overwrite
	@echo "The page with the charts: $(OUT)/report.html"

demo-live: .venv/installed-live
	$(BIN)/python -m subak.live.up.demo

study: .venv/installed
	$(BIN)/subak experiment docs/studies/megha.toml --out out/study

# One more process of tests than cores: those of the live half wait for timers. With two more it took as long.
# Tests start some hundred processes: each would compile the package's modules again where Python does not keep them,
# and each process of pytest those of the tests, which takes half of the time to collect them. So one collects them first,
# beside the checks of types, which leave half a minute of the other core.
test: .venv/installed-dev
	@$(MAKE) --no-print-directory -j 2 types ruff collected bench-types imports reference
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# Benchmarks run by hand: that they call what there is, as it is called, is seen without running them.
BENCHES_TYPED := --config-file= --cache-dir=.mypy_cache/bench --check-untyped-defs --ignore-missing-imports \
	--follow-imports=silent --disable-error-code=arg-type --disable-error-code=operator \
	--disable-error-code=assignment --disable-error-code=return-value --disable-error-code=union-attr

# Each takes one core, the types longest: two at a time take half as long.
lint: .venv/installed-dev
	@$(MAKE) --no-print-directory -j 2 ruff types bench-types imports

ruff: .venv/installed-dev
	$(BIN)/ruff check

types: .venv/installed-dev
	$(BIN)/mypy

bench-types: .venv/installed-dev
	MYPYPATH=bench $(BIN)/mypy $(BENCHES_TYPED) bench/*.py

imports: .venv/installed-dev
	$(BIN)/lint-imports

collected: .venv/installed-dev
	$(BIN)/python -m compileall -q src
	-@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 0 --collect-only -q -q >/dev/null  # what fails fails again

reference: .venv/installed-dev
	$(BIN)/python docs/make_reference.py --check

docs: .venv/installed-dev
	$(BIN)/python docs/make_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "The site: build/site/index.html"

bench: .venv/installed-dev
	@set -e; for script in bench/[a-z]*.py; do echo "$$script"; $(BIN)/python "$$script"; done

mutants: .venv/installed-dev
	$(BIN)/python tests/support/mutants.py

planted: .venv/installed-dev
	$(BIN)/python tests/support/planted_defects.py

conditions: .venv/installed-dev
	NUMBA_DISABLE_JIT=1 $(BIN)/python tests/support/conditions.py

plain: .venv/installed-dev
	PLAIN_ENGINES=1 $(BIN)/pytest -n 0 tests/kernels/test_kernel_switch.py

chaos: .venv/installed-dev
	$(BIN)/python tests/support/chaos.py --kills $(KILLS)

# What it needs beyond Python comes from Debian, where that may be installed; else it says what is missing, and is skipped.
HOSTS_NEED := iproute2 iptables util-linux mount
define with-hosts
@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { command -v ip && command -v iptables; } >/dev/null; then \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get install -q -y --no-install-recommends $(HOSTS_NEED) >/dev/null \
	  || { apt-get update -q && apt-get install -q -y --no-install-recommends $(HOSTS_NEED); } >/dev/null || true; fi
endef

test-hosts: .venv/installed-dev
	$(with-hosts)
	$(BIN)/python tests/hosts/walk.py
	$(BIN)/python tests/hosts/run.py --seconds 60

chaos-hosts: .venv/installed-dev
	$(with-hosts)
	$(BIN)/python tests/hosts/run.py --first $$(date +%s) --seeds $(SEEDS) --seconds $(SECONDS)

# promtool is of Debian's package prometheus.
test-alerts: .venv/installed-dev
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v promtool >/dev/null; then \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get install -q -y --no-install-recommends prometheus >/dev/null \
	  || { apt-get update -q && apt-get install -q -y --no-install-recommends prometheus; } >/dev/null || true; fi
	$(BIN)/pytest -q -n 0 -rs tests/live/test_metrics.py

test-package: .venv/installed-dev
	$(BIN)/python tests/support/built_package.py

# VERSIONS="3.13" for some of them, ALL=--all for the whole suite. Each has an environment in build/.
test-versions: .venv/installed-dev
	$(BIN)/python tests/support/other_versions.py $(ALL) $(VERSIONS)

clean:
	rm -rf .venv build dist

# The stamps are newer than what they were made of; so an installation is repeated only when that changes.
.venv/installed: .venv/made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

.venv/installed-live: .venv/made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[live]'
	@touch .venv/installed $@

.venv/installed-dev: .venv/made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch .venv/installed $@

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "subak needs Python 3.11 or newer; name one: make PYTHON=python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@
