# What a newcomer and CI call. Each target sets up what it needs; the work itself is in scripts/ and bench/.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help fuzz demo demo-pair hosts hosts-clean calibrate test test-unit test-slow check check-rust test-probe-root bench-probe bench-protocol bench-overhead bench-load bench-agent bench-hosts bench-explain guide-charts setup engine engine-stop clean

VENV := .venv
PY := $(VENV)/bin/python
PYTEST_ARGS ?=
MINUTES ?= 60
HOSTS ?= 2
TRUTH_PAGE := --page docs/guides/calibration.md --chart docs/truth/proved.svg

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Set up, run percona-2016 at demo scale, show overheads and the HTML report
	@scripts/demo.sh

demo-pair: ## Make two test hosts, run setups I to IV of grambow-2018 between them, show each path, remove the hosts (root)
	@scripts/demo_pair.sh

.PHONY: demo-kube
demo-kube: ## Start a one-node Kubernetes cluster, run up to BLOCKS (8) blocks of kube-2026 on it, remove it (root; the first build takes half an hour)
	@scripts/demo_kube.sh $(if $(BLOCKS),--blocks $(BLOCKS))

.PHONY: demo-fleet
demo-fleet: ## Make three pairs of test hosts, run one study on all at once, cut the power of one pair, remove the hosts (root)
	@scripts/demo_fleet.sh

calibrate: setup ## Set up, then calibrate this machine for MINUTES (60); results add to earlier ones
	@scripts/packages.sh demo
	@scripts/engine.sh run $(PY) -m tare calibrate --minutes $(MINUTES)

test: setup ## Set up, then run all unit and integration tests on a real engine
	@scripts/packages.sh test
	@scripts/engine.sh run scripts/test.sh $(PYTEST_ARGS)

test-unit: setup ## Run only the unit tests: no root, no engine
	@scripts/test.sh $(if $(PYTEST_ARGS),$(PYTEST_ARGS),unit)

.PHONY: coverage
coverage: setup ## Measure the unit tests' line coverage of the package; each line in build/coverage/index.html
	@mkdir -p build/coverage
	@COVERAGE_FILE=build/coverage/data $(PY) -m pytest -q -n auto --dist loadscope -m "not slow and not engine" \
		--cov=tare --cov-report=term:skip-covered --cov-report=html:build/coverage tests/unit

test-slow: setup ## Run the tests that take minutes
	@scripts/packages.sh slow
	@scripts/s3.sh build >/dev/null
	@scripts/engine.sh run $(PY) -m pytest -m slow $(PYTEST_ARGS)

check: setup ## Run what CI checks before the tests: format, lint, types, schemas, architecture
	@scripts/check.sh

fuzz: setup ## Feed tare CASES damaged studies, outputs, stores, images, …, or as many as MINUTES (10) allow; print seeds
	@$(PY) -m tools.fuzz $(if $(CASES),--cases $(CASES)) \
		$(if $(filter file,$(origin MINUTES)),,--minutes $(MINUTES)) $(FUZZ_ARGS)

.PHONY: fuzz-load
fuzz-load: ## Feed tare-load CASES (20000) damaged answers of each kind, for each protocol
	@PROPTEST_CASES=$(if $(CASES),$(CASES),20000) nice cargo test --profile dev --locked --package tare-load --quiet -- bytes records_of_tls panic

.PHONY: fuzz-probe
fuzz-probe: ## Feed tare-probe and tare-agent CASES (20000) damaged inputs of each kind
	@PROPTEST_CASES=$(if $(CASES),$(CASES),20000) nice cargo test --locked --package tare-record --package tare-probe --package tare-agent --quiet -- panic

.PHONY: chaos
chaos: setup ## Inject FAULTS (50) faults at random moments of studies of fakes, or CHAOS_ARGS="--study …"; print the seed
	@$(PY) -m tools.chaos --faults $(if $(FAULTS),$(FAULTS),50) $(CHAOS_ARGS)

.PHONY: predictions
predictions: setup ## Predict each arm of STORES from its bare runs and compare with the measurements, leaving one store out each time
	@$(PY) -m tare knowledge predicted $(STORES)

.PHONY: audit
audit: setup ## Check every pinned Python package and crate for known vulnerabilities (network)
	@scripts/audit.sh $(AUDIT_ARGS)

.PHONY: release
release: setup ## Build the wheel and the source archive of this commit in dist/; the same compiler gives the same bytes
	@scripts/release.sh dist

.PHONY: test-release
test-release: setup ## Build a release twice, in two clones and two environments, and compare the bytes (5 minutes on two CPUs)
	@scripts/release.sh twice

.PHONY: schemas
schemas: setup ## Regenerate all JSON Schemas, and the tables of docs/reference/record.md
	@for kind in study report imports knowledge sites sites.cloud; do $(PY) -m tare.$$kind.schema; done
	@$(PY) -m tools.record_reference

check-rust: ## Run only the Rust part of `make check`
	@scripts/check_rust.sh

test-probe-root: ## Run the tests of tare-probe that need root, and eBPF if the kernel has BTF; part of `make test`
	@scripts/test_probe_root.sh

bench-probe: setup ## Cost of tare-probe, beside mpstat, iostat, sar, pidstat, docker stats (root, an engine)
	@bench/probe/run.sh

bench-protocol: setup ## Machine seconds and false positives of each protocol, or of POOLS ("interleave rotate"), for MINUTES (25); results add to earlier ones
	@scripts/packages.sh demo
	@scripts/engine.sh run $(PY) -m bench.protocol --minutes $(if $(filter file,$(origin MINUTES)),25,$(MINUTES)) $(if $(POOLS),--pools $(POOLS)) --markdown build/bench-protocol.md --json build/bench-protocol.json

bench-overhead: setup ## Seconds that a run takes besides its measurement, for MariaDB and Cassandra (root, an engine)
	@scripts/packages.sh test
	@scripts/engine.sh run $(PY) -m bench.overhead --markdown build/bench-overhead.md

bench-load: setup ## tare-load beside other generators (also those in PEERS), PAIRS (5) of runs within MINUTES (60), all or BENCH_ARGS="--parts …" (root)
	@bench/load/run.sh --pairs $(or $(PAIRS),5) --minutes $(MINUTES) --markdown build/bench-load.md --json build/bench-load.json $(BENCH_ARGS)

hosts: setup ## Make HOSTS (2) test hosts, or PAIRS of them, with sshd and engine, in namespaces of this machine, and their sites.yaml; RATE slows the wire
	@scripts/packages.sh hosts
	@$(PY) -m tools.hosts up --engines $(if $(PAIRS),--pairs $(PAIRS),--count $(HOSTS)) $(if $(RATE),--rate $(RATE))

.PHONY: machines
machines: setup ## Build a kernel and Debian machines with systemd and engines, or only SUITES ("trixie …"), in build/machines (root; half an hour once)
	@scripts/apt_install.sh "to build and start test machines" mmdebstrap:mmdebstrap mke2fs:e2fsprogs slirp4netns:slirp4netns ip:iproute2 ssh:openssh-client ethtool:ethtool
	@$(PY) -m tools.machines build $(SUITES)

.PHONY: test-machines
test-machines: machines ## Install the wheel of dist/ on these machines, try each account and engine, write docs/reference/tested-on.md
	@$(PY) -m tools.machines test $(SUITES)

hosts-clean: ## Remove the test hosts and everything started on them
	@scripts/venv.sh dev
	@$(PY) -m tools.hosts down

bench-agent: setup ## Calls through the host agent beside plain SSH, on the host SSH (default: this machine, with a key that its sshd accepts)
	@$(PY) -m bench.agent --ssh $(if $(SSH),$(SSH),localhost) $(if $(SSH_CONFIG),--ssh-config $(SSH_CONFIG)) --markdown build/bench-agent.md

bench-hosts: setup ## On test hosts: calls through the agent beside SSH; a run's own time beside that on one machine (root)
	@scripts/packages.sh hosts
	@$(PY) -m bench.agent --test-host --markdown build/bench-hosts.md
	@$(PY) -m bench.agent.own_time --markdown build/bench-own-time.md

bench-explain: setup ## Does `tare explain` find known causes, and what does sampling cost? PAIRS (5) of runs (root)
	@bench/explain/run.sh --pairs $(or $(PAIRS),5) --markdown build/bench-explain.md --json build/bench-explain.json

.PHONY: bench-predictions
bench-predictions: setup ## Weigh this machine, run workloads on paths, storages and load levels, compare them with predictions; 45 idle minutes, SCALE=tiny to try (root, an engine)
	@scripts/packages.sh demo
	@SCALE=$(SCALE) scripts/engine.sh run bench/predictions/run.sh

.PHONY: bench-fleet
bench-fleet: setup ## Cost of handing out blocks on SITES (1,4,16,64) fake sites, beside make, GNU parallel and plain Dask
	-@scripts/apt_install.sh "needed to compare with" parallel:parallel
	@$(PY) -m bench.fleet $(if $(SITES),--sites $(SITES)) --markdown build/bench-fleet.md --json build/bench-fleet.json

.PHONY: bench-scale
bench-scale: setup ## Bytes, seconds and memory of stores of RUNS (1000,10000,100000) made-up runs, in a directory and in PostgreSQL
	@$(PY) -m bench.fleet.scale $(if $(RUNS),--runs $(RUNS)) --markdown build/bench-scale.md --json build/bench-scale.json

.PHONY: bench-imports
bench-imports: setup ## Time the import of LOGS (10000) made-up logs of sysbench, short and long
	@$(PY) -m bench.imports --logs $(or $(LOGS),10000) --markdown build/bench-imports.md

.PHONY: truth
truth: setup ## Add comparisons with a known truth, of every protocol, to docs/truth/ledger.jsonl for HOURS (8); ONLY="redis bare", SITES=FILE
	@scripts/packages.sh demo
	@scripts/engine.sh run $(PY) -m bench.truth --hours $(or $(HOURS),8) $(if $(ONLY),--only $(foreach word,$(ONLY),'$(word)')) $(if $(SITES),--sites $(SITES)) $(TRUTH_PAGE)

.PHONY: truth-page
truth-page: setup ## Rebuild tables and chart of docs/guides/calibration.md from the ledger; MERGE="FILE…" adds other ledgers
	@$(PY) -m bench.truth --show $(if $(MERGE),--merge $(MERGE)) $(TRUTH_PAGE)

.PHONY: docs
docs: ## Build the docs site in build/site, with search and the Python API; a warning fails it
	@scripts/venv.sh docs
	@$(PY) -m tools.docs_site

guide-charts: setup ## Draw the charts of the guide on loops and rates from the stored data, or latency over load from a STORE
	@$(PY) -m tools.guide_charts $(if $(STORE),--from $(STORE))

setup: ## Make the virtual environment with everything for development
	@scripts/venv.sh dev

engine: setup ## Make sure that a container engine answers (as root, install and start one if needed)
	@scripts/packages.sh demo
	@scripts/engine.sh up

engine-stop: ## Stop the engine that these targets started, and no other
	@scripts/engine.sh down

clean: ## Remove build products and caches, but not demo-store/ or what `tare clean` removes
	rm -rf --one-file-system $(VENV) build dist target .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find python tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +
