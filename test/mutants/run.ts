import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../support/guides.js';
import { CheckoutCopy, killRuns, staleness, type Outcome } from './checkout.js';
import { FAULTS, type Fault } from './faults.js';

// Plants each fault of the table in a copy of the checkout and runs the suites that must catch it. Two copies share the
// work. Prints each result, and exits with code 1 if a fault is missed or could not be tried. A run that is started
// again continues, as long as the sources are the same. MATCH selects the faults whose name, promise or place contains
// it, and tries them again.

const COPIES = 2;
const FOLDER = fileURLToPath(new URL('.cache/mutants/', ROOT));

const { MATCH = '' } = process.env;
const faults = Object.entries(FAULTS).flatMap(([promise, those]) =>
  those.filter(({ fault, of }) => `${promise} ${fault} ${of}`.includes(MATCH)),
);

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    killRuns();
    print('Interrupted. Start it again to continue.');
    process.exit(1);
  });
}

mkdirSync(FOLDER, { recursive: true });
const copies = await Promise.all(Array.from({ length: COPIES }, (_, i) => CheckoutCopy.make(`${FOLDER}copy-${i + 1}`)));

// One line of JSON for each decision; a suite without a fault is decided as well.
const decisions = `${FOLDER}${copies[0]?.digest()}.jsonl`;
const lines = existsSync(decisions) ? readFileSync(decisions, 'utf8').trimEnd().split('\n') : [];
const decided = new Map(lines.map((line) => JSON.parse(line) as [key: string, outcome: Outcome]));

const keyOf = (fault: Fault): string => JSON.stringify(fault);

function decide(key: string, outcome: Outcome): Outcome {
  decided.set(key, outcome);
  appendFileSync(decisions, `${JSON.stringify([key, outcome])}\n`);
  return outcome;
}

/** Shares items between the copies, and prints the line that each leads to. */
async function share<Item>(items: readonly Item[], work: (copy: CheckoutCopy, item: Item) => Promise<string>) {
  const queue = [...items];
  let done = 0;
  const workOff = async (copy: CheckoutCopy): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      const line = await work(copy, item).catch((error: unknown) => `error    ${(error as Error).message}`);
      print(`[${(done += 1)}/${items.length}] ${line}`);
    }
  };
  await Promise.all(copies.map(workOff));
}

const stale = new Map(faults.map((fault) => [fault, staleness(fault)] as const));
const due = faults.filter((fault) => stale.get(fault) === undefined && (MATCH !== '' || !decided.has(keyOf(fault))));
print(`${faults.length} faults, ${due.length} to be tried.`);

// A suite that fails without a fault would count as having caught every one.
const suites = [...new Set(due.flatMap((fault) => fault.suites))].filter((suite) => !decided.has(suite));
if (suites.length > 0) print('== suites without a fault');
await share(suites, async (copy, suite) => {
  const { failure, seconds } = decide(suite, await copy.run([suite]));
  return `${failure === undefined ? 'passes ' : 'FAILS  '} ${suite} ${failure ? `(${failure}) ` : ''}${seconds} s`;
});

/** The suites of a fault that pass without it, the shortest first. */
function usableSuites({ suites }: Fault): readonly string[] {
  const passing = suites.flatMap((suite) => {
    const { failure, seconds = 0 } = decided.get(suite) ?? { failure: 'not run' };
    return failure === undefined ? { suite, seconds } : [];
  });
  return passing.sort((a, b) => a.seconds - b.seconds).map(({ suite }) => suite);
}

if (due.length > 0) print('== faults');
await share(due, async (copy, fault) => {
  const usable = usableSuites(fault);
  if (usable.length === 0) return `UNTRIED  ${fault.fault} (its suites fail without it)`;
  const { failure, seconds } = decide(keyOf(fault), await copy.try(fault, usable));
  return `${failure === undefined ? 'MISSED ' : 'caught '} ${fault.fault} ${failure ? `(${failure}) ` : ''}${seconds} s`;
});

const outcomes = faults.map((fault) => ({ fault, outcome: decided.get(keyOf(fault)) }));
const missed = outcomes.filter(({ outcome }) => outcome && outcome.failure === undefined);
const untried = outcomes.filter(({ outcome }) => outcome === undefined);
for (const { fault } of missed) print(`MISSED   ${fault.fault} (${fault.suites.join(', ')})`);
for (const { fault } of untried) print(`UNTRIED  ${fault.fault}: ${stale.get(fault) ?? 'see above'}`);
print(
  `${faults.length} faults: ${faults.length - missed.length - untried.length} caught, ${missed.length} missed, ` +
    `${untried.length} not tried.`,
);
process.exitCode = missed.length + untried.length > 0 ? 1 : 0;
