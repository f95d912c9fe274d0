# `make help` lists the targets. Only Python, a C++20 compiler and make are needed: everything else
# is installed into $(VENV).
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Tests and benchmarks on real data read it from the folder CHORDAL_DATA.
ifeq ($(CHORDAL_DATA),)
  ifneq ($(wildcard ../shared/data),)
    export CHORDAL_DATA := $(abspath ../shared/data)
  endif
endif

# For Linux without CUDA: make torch TORCH="torch==2.13.0+cpu --extra-index-url …"
TORCH ?= torch==2.13.0

# An ordinary install, renewed when a source changes; after `make dev`, one that follows the sources.
EDITABLE := SKBUILD_EDITABLE_REBUILD=true $(PIP) install --no-build-isolation --editable
ifeq ($(wildcard $(VENV)/.editable),)
  INSTALL := $(PIP) install --no-build-isolation
  SOURCES := pyproject.toml CMakeLists.txt $(wildcard kernels/*) $(shell find src -name '*.py' -o -name '*.js' -o -name '*.css' -o -name '*.html')
else
  INSTALL := $(EDITABLE)
  SOURCES := pyproject.toml
endif

# Extras that hold others: one install serves them all.
HOLDS_dev   := test examples
HOLDS_test  := examples
HOLDS_bench := examples
HOLDS_experiments := examples
HOLDS_docs  := examples

.PHONY: help demo test extras torch browser lint types layers bench acceptance docs gallery tables sanitize valgrind tsan fuzz properties oldest wheel-test release-check dev clean
.DELETE_ON_ERROR:
.SECONDARY:

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/.installed-examples  ## read handwritten dates with a chain CRF; writes report/index.html
	$(BIN)/python examples/digit_dates.py

# One worker for each core: with threads of their own, those of OpenMP would wait for each other.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: $(VENV)/.installed-test  ## the test suite and the doctests
	$(BIN)/pytest --numprocesses=logical --dist=loadfile --pyargs tests chordal

extras: $(VENV)/.extras  ## servers and what else tests are skipped without; PyTorch apart

torch: $(VENV)/.torch  ## PyTorch and what chordal.torch is compared with, for the tests that are skipped without

browser: $(VENV)/.browser  ## Playwright, and Chromium where it can be installed, for the tests of pages that are skipped without

lint: $(VENV)/.installed-dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev  ## mypy, strict
	$(BIN)/mypy

layers: $(VENV)/.installed-test  ## the order of imports alone
	$(BIN)/pytest --quiet tests/test_layers.py

bench: $(VENV)/.installed-bench  ## speed beside other libraries
	$(BIN)/python -m benchmarks

acceptance:  ## real projects with python-crfsuite and with chordal; into a venv of its own, from PyPI
	$(PYTHON) -m benchmarks.acceptance --venv $(VENV)-acceptance --markdown docs/migration/crfsuite.md

docs: $(VENV)/.installed-docs  ## the documentation site, in docs/_build/html; warnings are errors
	$(BIN)/python -m sphinx -b html -j auto --fail-on-warning --keep-going --quiet docs docs/_build/html

gallery: report/results.json  ## docs/gallery, from a run of all experiments (which is made if there is none)
	$(BIN)/python docs/make_gallery.py report

tables: $(VENV)/.installed-test  ## tables and counts in the documents, from the registries
	$(BIN)/python docs/make_tables.py

report/results.json: | $(VENV)/.installed-experiments
	$(BIN)/chordal reproduce all --out report

dev: $(VENV)/.tools  ## install in place: Python edits are live, kernels are rebuilt at import
	$(EDITABLE) ".[dev]"
	@touch $(addprefix $(VENV)/.,editable $(addprefix installed-,dev $(HOLDS_dev)))

# What calls kernels; TESTS=tests for everything.
SANITIZED := $(addprefix tests/,contract data estimators explanation faults features formats inference metrics model_file \
  numerics objectives prepared properties solvers structures text) \
  $(filter-out %/test_layers.py %/test_release.py %/test_examples.py %/test_small_install.py,$(wildcard tests/test_*.py))
sanitize: export SKBUILD_BUILD_DIR = build/sanitize
sanitize: export SKBUILD_CMAKE_DEFINE = CHORDAL_SANITIZE=ON
sanitize:  ## under AddressSanitizer and UBSan, in a venv of its own: the tests that call kernels, or TESTS=tests/…
	@$(MAKE) --no-print-directory VENV=$(VENV)-sanitize $(VENV)-sanitize/.installed-test
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc CHORDAL_SANITIZED=1 \
	$(VENV)-sanitize/bin/pytest -m "not slow" $(or $(TESTS),$(SANITIZED))

valgrind: $(VENV)/.installed-test  ## every kernel on small cases under valgrind's memcheck, which has to be installed
	$(BIN)/python tools/memcheck.py

tsan: export SKBUILD_BUILD_DIR = build/tsan
tsan: export SKBUILD_CMAKE_DEFINE = CHORDAL_TSAN=ON
tsan:  ## threads under ThreadSanitizer, in a venv of its own; Python itself is not watched; TESTS=… for others
	@$(MAKE) --no-print-directory VENV=$(VENV)-tsan $(VENV)-tsan/.installed-test
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libtsan.so)" \
	TSAN_OPTIONS="suppressions=tools/tsan.txt halt_on_error=1 exitcode=66" OPENBLAS_NUM_THREADS=1 \
	$(VENV)-tsan/bin/pytest -p no:cacheprovider $(or $(TESTS),tests/test_threads.py tests/faults/test_fit_beside_predict.py tests/test_execution.py)

OLDEST := tests/test_registry.py tests/test_potentials.py tests/test_bad_input.py tests/test_threads.py \
  tests/estimators/test_one_road.py tests/model_file tests/cli/test_commands.py
oldest: $(VENV)-oldest/.tools  ## the oldest versions that pyproject.toml allows, in a venv of its own: a selection of tests
	$(VENV)-oldest/bin/python -m pip --quiet install $$($(PYTHON) tools/oldest.py) pytest hypothesis
	$(VENV)-oldest/bin/python -m pip --quiet install --no-build-isolation --no-deps .
	$(VENV)-oldest/bin/pytest -q -m "not slow" -W default $(OLDEST)

EXAMPLES ?= 1000
properties: $(VENV)/.installed-test  ## properties of the whole library, EXAMPLES=… new cases for each
	CHORDAL_EXAMPLES=$(EXAMPLES) $(BIN)/pytest --numprocesses=logical tests/properties

SECONDS ?= 10
EXECUTIONS ?= 0
fuzz: $(VENV)/.fuzz  ## every reader and public calls on mutated input, SECONDS=… for each or until EXECUTIONS=…; clang adds native code
	$(BIN)/python -m fuzz --seconds $(SECONDS) --executions $(EXECUTIONS) $(TARGETS)

wheel-test:  ## source archive and wheel, built and tried in empty environments; PYTHONS="python3.10 …": others too
	$(PYTHON) tools/wheel_test.py $(PYTHONS)

release-check: $(VENV)/.twine  ## what is still missing for publication; looks at dist/ too
	$(BIN)/python tools/release_check.py

# One line for each extra of chordal whose tests are skipped without it.
$(VENV)/.extras: | $(VENV)/.tools
	$(PIP) install "starlette>=0.40" "uvicorn>=0.30" "httpx>=0.27" openapi-spec-validator
	$(PIP) install "dask[distributed]>=2024.2" pandas pyarrow
	$(PIP) install "eli5>=0.16"
	@touch $@

# By itself, and one version: a range would let pip choose among gigabytes. The others name any torch.
$(VENV)/.torch: | $(VENV)/.tools
	$(PIP) install $(TORCH)
	$(PIP) install --no-deps pytorch-crf==0.7.2 torch-struct==0.5
	$(PIP) install onnx onnxruntime onnxscript
	@touch $@

# Debian's Chromium if there is none and this may install it; Playwright downloads no browser.
$(VENV)/.browser: | $(VENV)/.tools
	$(PIP) install "playwright>=1.45"
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	echo "there is no Chromium, and it cannot be installed here: tests in a browser will be skipped"
	@touch $@

$(VENV)/.fuzz: $(VENV)/.installed-test | $(VENV)/.extras
	-$(PIP) install atheris  # no wheel for every Python: without it, no coverage guides the inputs
	@touch $@

$(VENV)/.twine: | $(VENV)/.tools
	$(PIP) install twine
	@touch $@

clean:  ## remove everything made by the other targets
	rm -rf docs/_build docs/reference/api docs/reference/commands $(VENV) $(VENV)-sanitize $(VENV)-tsan $(VENV)-oldest $(VENV)-acceptance build dist report src/chordal/_kernels.pyi .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.tools $(VENV)-oldest/.tools:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install "scikit-build-core>=0.11" "nanobind>=2.5" cmake ninja
	@touch $@

$(VENV)/.installed-%: $(SOURCES) | $(VENV)/.tools
	$(INSTALL) ".[$*]"
	@touch $@ $(addprefix $(VENV)/.installed-,$(HOLDS_$*))
