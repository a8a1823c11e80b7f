# Thin on purpose: everything is in tools/, which also runs where there is no make
# (python -m tools serve).
PYTHON ?= python3

COMMANDS = serve book test test-slow fuzz bench lint clean setup

.PHONY: $(COMMANDS)
$(COMMANDS):
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) found: install Python 3.11 or newer from https://www.python.org/downloads/"; exit 1; }
	@$(PYTHON) -m tools $@
