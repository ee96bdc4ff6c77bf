# Targets for people and build machines. Requires GNU make 3.81 or later. All paths are relative, so the checkout may
# lie anywhere, even in a folder with spaces in its name.

.DEFAULT_GOAL := help
.SUFFIXES:
MAKEFLAGS += --no-print-directory

BIN := node_modules/.bin
INSTALLED := node_modules/.installed
# Names the commit of the build. Everything that runs the program depends on it.
BUILT := .build/commit
COMMIT := $(shell git describe --always --dirty=-modified --exclude='*' 2>/dev/null)
# Test files that run in parallel. Three keep two cores busy; with more, tests only take time from each other.
JOBS := 3
IMAGE := catalog-lookup-service
# Installed only for their own targets: they would be half of all packages.
SPECTRAL := @stoplight/spectral-cli@6.16.3 @stoplight/spectral-owasp-ruleset@2.0.1
STRYKER := @stryker-mutator/core@9.6.1 @stryker-mutator/tap-runner@9.6.1
# The last version whose package contains the generator; later ones download it.
OPENAPI_GENERATOR := @openapitools/openapi-generator-cli@1.0.18-5.0.0-beta2
# The tests of make test-quick: without browsers, other languages, packages and servers that fail.
QUICK := $(addprefix test/,accounts admission api catalog/export config contract/document copies events http keys limits platform usage)
CHECKS := check-format check-lint check-layers check-dead-code check-faults

# Written for any version of Node.js, since it checks the version.
NODE_FITS := var v = process.versions.node.split(".").map(Number); \
  process.exit((v[0] === 20 && v[1] >= 19) || (v[0] === 22 && v[1] >= 12) || v[0] > 22 ? 0 : 1)
# What an installation depends on. Not the version of Node.js: every native package uses Node-API.
STATE := $$(node -p 'process.platform + " " + process.arch') \
  $$(cksum < package.json) $$(cksum < package-lock.json)
NODE_WANTED := install Node.js 20.19 or later, or 22.12 or later, from https://nodejs.org and run make again.

# A number, as in `make test NODE=24`, runs any target with that version of Node.js, from the npm package `node`.
ifneq ($(shell expr "$(NODE)" : '[1-9][0-9]*$$'),0)
OTHER_NODE := .cache/node-$(NODE)/node_modules/node/bin/node
export PATH := $(CURDIR)/$(dir $(OTHER_NODE)):$(PATH)
override NODE := $(CURDIR)/$(OTHER_NODE)
export NODE
endif

# Includes folders, whose time changes when a file in them is removed.
SOURCES := $(shell find src generated ! -name '.*' 2>/dev/null)

.PHONY: help run key link dev types format generate test test-quick redis programs check $(CHECKS) bench lab screenshots mutants \
  stryker drill clients spectral check-release package image sbom install build clean FORCE

help: ## List these targets
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

##@ Try it

run: $(BUILT) ## Start the service on its own PostgreSQL, with a demo catalogue and a demo key
	@exec node .build/cli.js serve --migrate --demo

key: $(BUILT) ## Create another demo key
	@exec node .build/cli.js keys create --demo

link: $(BUILT) ## Print links that sign you in, as the demo developer and as the operator
	@node .build/cli.js developers sign-in-link --demo
	@exec node .build/cli.js operator sign-in-link

##@ Change it

dev: $(INSTALLED) ## Run the service from its sources as make run does, and start it again at each change of a file
	@DRAIN_SECONDS=0 exec $(BIN)/tsx watch --clear-screen=false --include 'src/**' --include 'generated/*.json' \
	  src/cli.ts serve --migrate --demo

types: $(INSTALLED) ## Check the types with the compiler, whose messages are longer than those of make check-lint
	@$(BIN)/tsc -p . && $(BIN)/tsc -p test

format: $(INSTALLED) ## Format every file with Oxfmt
	@$(BIN)/oxfmt .

# The contract itself has one file, whose order stays; the descriptions beside their handlers refer to it.
generate: $(INSTALLED) ## Write generated/ from openapi.yaml and the descriptions beside their handlers, and db/schema.sql from the migrations
	@$(BIN)/openapi-typescript openapi.yaml -o generated/openapi.d.ts
	@mkdir -p .cache && $(BIN)/js-yaml openapi.yaml > .cache/openapi.json && mv .cache/openapi.json generated/openapi.json
	@output=$$(REDOCLY_TELEMETRY=off $(BIN)/redocly bundle src/http/*/openapi-*.yaml --ext json --output generated 2>&1) || \
	  { echo "$$output" >&2; exit 1; }
	@node --import tsx db/dump-schema.ts

##@ Test it

# FILES run from the sources, so that nothing has to be bundled first; a test that starts the program builds it.
test: $(INSTALLED) ## Run every check and every test, or only the tests in FILES, which names files and folders; INSTALL=no installs no system packages, NODE=24 runs any target with that Node.js
ifeq ($(FILES),)
	@$(MAKE) --keep-going --jobs=2 programs build $(CHECKS)
	@echo '== tests'
	@node .config/build-tests.mjs .cache/tests test
	@exec $(BIN)/mocha --config .cache/tests/mocharc.json --forbid-only --parallel --jobs $(JOBS)
else
	@exec $(BIN)/mocha $$(find $(FILES) -name '*.test.ts' | sort)
endif

test-quick: $(INSTALLED) ## Run a part of the tests, in a minute of processor time: no browsers, no other languages
	@node .config/build-tests.mjs .cache/tests-quick $(QUICK)
	@exec $(BIN)/mocha --config .cache/tests-quick/mocharc.json --forbid-only --parallel --jobs $(JOBS)

redis: $(INSTALLED) ## Find the Redis server for the tests, or install it with the system's package manager
	@exec node --import tsx test/support/programs/provide-programs.ts redis

programs: $(INSTALLED) ## Find or install every program that the tests start; without HAProxy, PgBouncer or Chromium, their tests are skipped
	@exec node --import tsx test/support/programs/provide-programs.ts redis haproxy pgbouncer chromium

check: $(INSTALLED) ## Run all checks of the sources, even after one has failed
	@$(MAKE) --keep-going --jobs=2 $(CHECKS)

check-format: $(INSTALLED) ## Check formatting with Oxfmt
	@echo '== format'
	@$(BIN)/oxfmt --check .

# The compiler in it is a Go program, which spends a quarter of its time on collecting garbage.
check-lint: $(INSTALLED) ## Lint and check types with Oxlint
	@echo '== lint and types'
	@GOGC=off GOMEMLIMIT=3GiB $(BIN)/oxlint --deny-warnings .

check-layers: $(INSTALLED) ## Check with dependency-cruiser that imports only go downward
	@echo '== layers'
	@$(BIN)/depcruise --config .config/dependency-cruiser.cjs --output-type err-long src

check-dead-code: $(INSTALLED) ## Find unused files, exports and packages with Knip
	@echo '== dead code'
	@$(BIN)/knip --config .config/knip.jsonc --no-progress

check-faults: $(INSTALLED) ## Check that each fault that make mutants plants still applies to the sources
	@echo '== planted faults'
	@exec node --import tsx test/mutants/check.ts

##@ Measure it

bench: $(BUILT) redis ## Measure size and speed: sizes, beside, catchup, costs, or the PARTS named
	@exec node --import tsx test/bench/run.ts $(PARTS)

# One file at a time: each measures the machine.
lab: $(BUILT) programs ## Measure what depends on the machine: worst cases, stalls, long runs of models, a soak of MINUTES (5); MATCH selects tests, LONG=n lengthens runs
	@exec $(BIN)/mocha $(if $(MATCH),--grep '$(MATCH)') 'test/lab/**/*.lab.ts'

screenshots: $(INSTALLED) programs ## Take screenshots of the pages into .cache/screenshots; README=1 also updates the one in the README
	@exec node --import tsx test/pages/screenshots.ts

##@ Test it further

mutants: $(INSTALLED) programs ## Check that tests catch each fault of test/mutants, planted in two copies: an hour, and a run that is started again continues; MATCH selects some
	@exec node --import tsx test/mutants/run.ts

stryker: $(INSTALLED) ## Check with StrykerJS that tests catch changes to the modules that need no server
	@npm install --prefix .cache/stryker-program --no-save --no-package-lock --loglevel=error $(STRYKER)
	@exec .cache/stryker-program/node_modules/.bin/stryker run .config/stryker.config.mjs

drill: $(BUILT) ## Rehearse on this machine: DRILL=failover, or upgrade with OLD, the folder of the old version
	@test -x '.deploy/drills/$(DRILL).sh' || { \
	  echo 'Choose a drill: make drill DRILL=failover, or make drill DRILL=upgrade OLD=/opt/catalog-old' >&2; exit 2; }
	@test '$(DRILL)' != upgrade -o -n '$(OLD)' || { \
	  echo 'Set OLD to the folder of the old version: make drill DRILL=upgrade OLD=/opt/catalog-old' >&2; exit 2; }
	@exec .deploy/drills/$(DRILL).sh $(if $(OLD),'$(OLD)')

clients: $(INSTALLED) ## Generate clients in five languages with OpenAPI Generator, and check them with the installed languages
	@command -v java >/dev/null || { echo 'Java is missing: OpenAPI Generator runs on it' >&2; exit 1; }
	@npm install --prefix .cache/openapi-generator --no-save --no-package-lock --loglevel=error $(OPENAPI_GENERATOR)
	@exec node --import tsx test/sdk/openapi-generator.ts \
	  .cache/openapi-generator/node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar

spectral: $(INSTALLED) ## Check the contract with Spectral and the rules of OWASP
	@npm install --prefix .cache/spectral --no-save --no-package-lock --loglevel=error $(SPECTRAL)
	@exec .cache/spectral/node_modules/.bin/spectral lint -r .config/spectral.yaml --fail-severity hint openapi.yaml

##@ Release it

# In an order in which the quickest comes first. `make mutants`, `make lab` and the drills take hours and a quiet machine.
check-release: ## Run all that a release needs: make spectral, package, sbom, clients and test
	@for target in spectral package sbom clients test; do \
	  echo "== $$target" && $(MAKE) $$target || { echo "make $$target failed: no release." >&2; exit 1; }; \
	done

package: $(BUILT) ## Pack the program into one file, named by version and commit; servers need nothing else but Node.js
	@exec node .config/pack.mjs

# Docker's format has the health check, which that of OCI lacks.
image: ## Build the container image with docker, podman or buildah: IMAGE names it, IMAGE_FLAGS are more options
	@for tool in docker podman buildah; do \
	  if $$tool info >/dev/null 2>&1; then \
	    BUILDAH_FORMAT=docker exec $$tool build -f .deploy/Containerfile -t '$(IMAGE)' \
	      --build-arg VERSION="$$(sed -n 's/^  "version": "\(.*\)",$$/\1/p' package.json)" \
	      --build-arg REVISION='$(COMMIT)' $(IMAGE_FLAGS) .; \
	  fi; \
	done; \
	echo 'Neither docker, podman nor buildah works here: install one of them.' >&2; exit 1

# Of a copy without the packages of development, in a folder that npm names the service by: with --omit=dev, npm sbom
# also leaves out those that both kinds need.
sbom: $(INSTALLED) ## Write a list of the production packages, in CycloneDX, to .cache/sbom/sbom.json
	@rm -rf .cache/sbom && mkdir -p .cache/sbom/catalog-lookup-service
	@cp package-lock.json .cache/sbom/catalog-lookup-service
	@node -p 'JSON.stringify({ ...require("./package.json"), devDependencies: undefined })' \
	  > .cache/sbom/catalog-lookup-service/package.json
	@cd .cache/sbom/catalog-lookup-service && npm install --package-lock-only --prefer-offline --loglevel=error > /dev/null && \
	  npm sbom --sbom-format=cyclonedx --sbom-type=application --package-lock-only > ../sbom.json
	@echo .cache/sbom/sbom.json

##@ Install and build it

install: $(INSTALLED) ## Install the packages of the lock file, unless they are installed

build: $(BUILT) ## Bundle the program and its npm packages into .build

clean: ## Remove everything that make created, except the data in .data
	rm -rf .build .cache node_modules

# Checked on every call, and written at the end of an installation. Its content decides, not its time: it names the
# platform and the packages. Both kinds of package are named, because NODE_ENV=production or the user's npmrc
# would leave some out. npm needs a cache of its own if the user has no writable home.
$(INSTALLED): $(OTHER_NODE) FORCE
	@command -v node >/dev/null || { echo 'Node.js is missing: $(NODE_WANTED)' >&2; exit 1; }
	@node -e '$(NODE_FITS)' || { echo "Node.js $$(node --version) does not fit: $(NODE_WANTED)" >&2; exit 1; }
	@command -v npm >/dev/null || { echo 'npm, which comes with Node.js, is missing: $(NODE_WANTED)' >&2; exit 1; }
	@test "$(STATE)" = "$$(cat $@ 2>/dev/null)" || { \
	  echo '== install'; \
	  rm -f $@; \
	  test -w "$${HOME:-/nowhere}" || export npm_config_cache="$${npm_config_cache:-$$PWD/.cache/npm}"; \
	  exec npm ci --include=dev --include=optional --no-fund --no-audit --loglevel=error; }
	@test "$(STATE)" = "$$(cat $@ 2>/dev/null)" || echo "$(STATE)" > $@

$(OTHER_NODE):
	@echo '== install $(@:.cache/%/node_modules/node/bin/node=%)'
	@npm install --prefix $(@:/node_modules/node/bin/node=) --no-save --no-package-lock --loglevel=error \
	  $(@:.cache/node-%/node_modules/node/bin/node=node@%)

# `make check-lint` checks the types.
.build/.built: $(SOURCES) .config/build.mjs $(INSTALLED)
	@echo '== build'
	@node .config/build.mjs

# Not in the bundle, so that a commit of anything else builds nothing.
$(BUILT): .build/.built FORCE
	@test '$(COMMIT)' = "$$(cat $@ 2>/dev/null)" || echo '$(COMMIT)' > $@
