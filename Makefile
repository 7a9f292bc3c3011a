# The verbs of the repo. PYTHON is the interpreter to build for; cmake, ninja and nanobind are taken from beside it.
PYTHON ?= python3
NATIVE_BUILD := build/native
BESIDE := $(dir $(shell command -v $(PYTHON)))
LOCK := $(if $(shell command -v flock),flock $(NATIVE_BUILD)/.lock,)

.PHONY: native
native: ## build the C++ module into src/sonant (incremental)
	@mkdir -p $(NATIVE_BUILD)
	@$(LOCK) sh -ec 'export PATH="$(BESIDE):$$PATH"; \
	  cmake -S . -B $(NATIVE_BUILD) -G Ninja -DPython_EXECUTABLE="$$(command -v $(PYTHON))" > $(NATIVE_BUILD)/configure.log \
	    || { cat $(NATIVE_BUILD)/configure.log; exit 1; }; \
	  cmake --build $(NATIVE_BUILD) --target _native; \
	  for module in $(NATIVE_BUILD)/_native*.so; do \
	    cp $$module src/sonant/native.so.tmp; mv src/sonant/native.so.tmp src/sonant/$$(basename $$module); done'

.PHONY: test
test: ## every test; skips say what is missing
	PYTHONPATH=src $(PYTHON) -m pytest

.PHONY: lint
lint: ## ruff, mypy, clang-format
	$(PYTHON) -m ruff check -q src tests tools benchmarks
	$(PYTHON) -m mypy
	clang-format --dry-run --Werror $$(git ls-files 'native/*.cc' 'native/*.h' | grep -v '\.gen\.h$$')
