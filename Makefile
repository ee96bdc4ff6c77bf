# What a person or a build machine does with this checkout. For GNU make 3.81 and later; paths are relative, so a
# checkout may lie anywhere, also where folder names have spaces.

.DEFAULT_GOAL := help
.SUFFIXES:
MAKEFLAGS += --no-print-directory

BIN := node_modules/.bin
# TypeScript 7 compiles four times as fast as TypeScript 5, whose API other packages and the tests still need.
TSC := node_modules/typescript-7/bin/tsc
INSTALLED := node_modules/.installed
BUILT := .build/.built
# Test files that run at the same time: most of them wait for servers to start, stop and come back.
JOBS := 3
# Not among the packages, of which it would be a quarter: only this target needs it.
STRYKER := @stryker-mutator/core@9.6.1 @stryker-mutator/tap-runner@9.6.1
# The last version whose package has the generator itself: later ones download it.
OPENAPI_GENERATOR := @openapitools/openapi-generator-cli@1.0.18-5.0.0-beta2
CHECKS := check-format check-lint check-types check-layers check-dead-code

# In the syntax of any Node.js, since the version is what it asks.
NODE_FITS := var v = process.versions.node.split(".").map(Number); \
  process.exit((v[0] === 20 && v[1] >= 19) || (v[0] === 22 && v[1] >= 12) || v[0] > 22 ? 0 : 1)
# What an installation is made from.
STATE := $$(node -p '[process.versions.modules, process.platform, process.arch].join(" ")') \
  $$(cksum < package.json) $$(cksum < package-lock.json)
NODE_WANTED := install Node.js 20.19 or later, or 22.12 or later, from https://nodejs.org and run make again.

# Folders are listed too: a folder's time changes when a file in it is removed.
SOURCES := $(shell find src generated ! -name '.*' 2>/dev/null)

.PHONY: help run key test redis programs check $(CHECKS) bench screenshots mutants stryker clients contract generate format install build clean FORCE

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

run: $(BUILT) ## Start the service on its own PostgreSQL, with a demo catalogue and a demo key
	@exec node .build/cli.js serve --migrate --demo

key: $(BUILT) ## Make one more demo key
	@exec node .build/cli.js keys create --demo

test: $(INSTALLED) ## Every check, then every test
	@$(MAKE) --keep-going --jobs=2 programs $(BUILT) $(CHECKS)
	@echo '== tests'
	@exec $(BIN)/mocha --forbid-only --parallel --jobs $(JOBS) 'test/shared/*.test.ts' 'test/!(shared)/**/*.test.ts'

redis: $(INSTALLED) ## Find the Redis server that the tests start, or install one with the system's package manager
	@exec node --import tsx test/support/programs/provide-programs.ts redis

programs: $(INSTALLED) ## The same for every program that the tests start: Redis; HAProxy, PgBouncer and Chromium, without which some are skipped
	@exec node --import tsx test/support/programs/provide-programs.ts redis haproxy pgbouncer chromium

check: $(INSTALLED) ## All checks of the sources, two at a time, also those after a failed one
	@$(MAKE) --keep-going --jobs=2 $(CHECKS)

check-format: $(INSTALLED) ## Oxfmt
	@echo '== format'
	@$(BIN)/oxfmt --check .

check-lint: $(INSTALLED) ## Oxlint, with type information
	@echo '== lint'
	@$(BIN)/oxlint --deny-warnings .

check-types: $(INSTALLED) ## TypeScript, over the service, its tests and its scripts
	@echo '== types'
	@$(TSC) -p test/tsconfig.json

check-layers: $(INSTALLED) ## dependency-cruiser: which part may import which
	@echo '== layers'
	@$(BIN)/depcruise --config .config/dependency-cruiser.cjs --output-type err-long src

check-dead-code: $(INSTALLED) ## Knip: unused files, exports and packages
	@echo '== dead code'
	@$(BIN)/knip --config .config/knip.jsonc --no-progress

bench: $(BUILT) redis ## Measure size and speed: import, reads, writes, compression, costs, speed, idle, or the PARTS named; growth when named
	@exec node --import tsx test/bench/run.ts $(or $(PARTS),$(if $(PROFILE),speed))

screenshots: $(INSTALLED) programs ## Take pictures of the pages, light and dark, wide and narrow, into .cache/screenshots; README=1 also takes the one in the README
	@exec node --import tsx test/site/screenshots.ts

mutants: $(INSTALLED) programs ## Plant each fault of test/mutants in a copy, and see that a test notices; those that MATCH, or all
	@exec node --import tsx test/mutants/run.ts

stryker: $(INSTALLED) ## StrykerJS: change the modules that need no server bit by bit, and see that a test notices
	@npm install --prefix .cache/stryker-program --no-save --no-package-lock --loglevel=error $(STRYKER)
	@exec .cache/stryker-program/node_modules/.bin/stryker run .config/stryker.config.mjs

clients: $(INSTALLED) ## Make clients in five languages with OpenAPI Generator, and check them as far as their languages are there
	@command -v java >/dev/null || { echo 'Java is missing: OpenAPI Generator runs on it' >&2; exit 1; }
	@npm install --prefix .cache/openapi-generator --no-save --no-package-lock --loglevel=error $(OPENAPI_GENERATOR)
	@exec node --import tsx test/sdk/openapi-generator.ts \
	  .cache/openapi-generator/node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar

# Every user of the machine sees the arguments of a program, and nobody else its environment.
contract: $(INSTALLED) ## Hold any deployment, BASE_URL, against the contract, with the key in the environment as API_KEY
	@test '$(origin API_KEY)' != 'command line' || { \
	  echo 'Give API_KEY in the environment: as an argument of make every user of this machine can read it, so' \
	    'replace the key. Then: read -rs API_KEY && export API_KEY && make contract BASE_URL=https://host' >&2; exit 2; }
	@test -n "$$BASE_URL" && test -n "$$API_KEY" || { \
	  echo 'Say which deployment, and with which key in the environment:' \
	    'read -rs API_KEY && export API_KEY && make contract BASE_URL=https://host' >&2; exit 2; }
	@exec node --import tsx test/contract/run.ts

generate: $(INSTALLED) ## Write generated/ from openapi.yaml and db/schema.sql from the migrations
	@$(BIN)/openapi-typescript openapi.yaml -o generated/openapi.d.ts
	@mkdir -p .cache && $(BIN)/js-yaml openapi.yaml > .cache/openapi.json && mv .cache/openapi.json generated/openapi.json
	@node --import tsx db/dump-schema.ts

format: $(INSTALLED) ## Write every file the way Oxfmt wants it
	@$(BIN)/oxfmt .

install: $(INSTALLED) ## Install the packages of the lock file, if they are not there yet

build: $(BUILT) ## Compile src into .build

clean: ## Remove what make has made; the data in .data stays
	rm -rf .build .cache node_modules

# Always looked at, but only written at the end of an installation. What it says decides, not its time: which Node.js
# and which packages are installed. NODE_ENV=production or the user's own npmrc would leave packages out, so both kinds
# are asked for by name; npm needs a cache of its own where the user has no home to write to.
$(INSTALLED): FORCE
	@command -v node >/dev/null || { echo 'Node.js is missing: $(NODE_WANTED)' >&2; exit 1; }
	@node -e '$(NODE_FITS)' || { echo "Node.js $$(node --version) does not fit: $(NODE_WANTED)" >&2; exit 1; }
	@command -v npm >/dev/null || { echo 'npm, which comes with Node.js, is missing: $(NODE_WANTED)' >&2; exit 1; }
	@test "$(STATE)" = "$$(cat $@ 2>/dev/null)" || { \
	  echo '== install'; \
	  rm -f $@; \
	  test -w "$${HOME:-/nowhere}" || export npm_config_cache="$${npm_config_cache:-$$PWD/.cache/npm}"; \
	  exec npm ci --include=dev --include=optional --no-fund --no-audit --loglevel=error; }
	@test "$(STATE)" = "$$(cat $@ 2>/dev/null)" || echo "$(STATE)" > $@

# From nothing each time, which takes seconds: a removed source must not live on in .build. The stamp has the time of the
# start, so that what is saved during the compilation is compiled next time. `make check-types` checks the types.
$(BUILT): $(SOURCES) tsconfig.json $(INSTALLED)
	@echo '== build'
	@rm -rf .build && mkdir .build && touch .build/.started
	@$(TSC) -p tsconfig.json --noCheck
	@chmod 755 .build/cli.js
	@mv .build/.started $@
