import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type Dredd from 'dredd';
import type { DreddAnswer, DreddStats, DreddTest, Transaction } from 'dredd';
import type { DreddLogger } from 'dredd/build/logger.js';
import type performRequest from 'dredd/build/performRequest.js';

/** What a run does at each step. Whatever one of these throws fails the transaction, or the run. */
export interface Hooks {
  /** Chooses the transactions to perform, given one for each response of the contract. Their ids must differ. */
  select(transactions: readonly Transaction[]): readonly Transaction[];
  /** Sets a transaction up. */
  prepare(transaction: Transaction): Promise<void>;
  /** Judges the answer, beyond what Dredd does: what is wrong with it, nothing when all is well. */
  verify(transaction: Transaction): Promise<readonly string[]>;
}

/** What became of one transaction. */
export interface Outcome {
  /** The transaction's id. */
  readonly id: string;
  /** `error`: there was no answer. */
  readonly verdict: 'pass' | 'fail' | 'skip' | 'error';
  /** What is wrong; empty for a pass. */
  readonly reasons: readonly string[];
  readonly durationMs: number;
}

/** A run as a whole. */
export interface DreddRun {
  readonly outcomes: readonly Outcome[];
  /** Dredd's own numbers. */
  readonly stats: DreddStats;
  /** What Dredd would have printed as warnings. */
  readonly warnings: readonly string[];
}

export interface DreddOptions {
  readonly baseUrl: string;
  readonly hooks: Hooks;
  readonly hookFile?: string;
  /** Called with each outcome when it is known. */
  readonly onOutcome?: (outcome: Outcome) => void;
}

const CONTRACT = fileURLToPath(new URL('../../../openapi.yaml', import.meta.url));
const HOOK_FILE = fileURLToPath(new URL('./hooks.cjs', import.meta.url));

/** Bound on one exchange, in milliseconds. */
const HTTP = { timeout: 20_000 };

/** The parts of Dredd that are used. */
interface Parts {
  Runner: typeof Dredd;
  perform: typeof performRequest;
  logger: DreddLogger;
}

let parts: Parts | undefined;

/**
 * Performs the contract's transactions against a server. One run at a time: Dredd's loggers are global.
 *
 * @throws when the contract cannot be read, or the hooks did not run
 */
export async function runDredd({ baseUrl, hooks, hookFile = HOOK_FILE, onOutcome }: DreddOptions): Promise<DreddRun> {
  const { Runner, logger } = load();
  const warnings: string[] = [];
  const collect = (_transport: unknown, level: string, message: string) => warnings.push(`${level}: ${message}`);
  const outcomes: Outcome[] = [];
  const { driver, state } = drive(hooks);
  const emitter = observe(state, (outcome) => {
    outcomes.push(outcome);
    onOutcome?.(outcome);
  });
  logger.on('logging', collect);
  try {
    const stats = await new Promise<DreddStats>((resolve, reject) => {
      const runner = new Runner({
        endpoint: baseUrl,
        path: [CONTRACT],
        hookfiles: [hookFile],
        emitter,
        loglevel: 'warning',
        http: HTTP,
        custom: { cwd: process.cwd(), driver },
      });
      runner.run((error, result) => (error ? reject(error) : resolve(result)));
    });
    if (state.failure !== undefined) throw state.failure;
    if (!state.loaded) throw new Error('the hooks did not run');
    return { outcomes, stats: { ...stats }, warnings };
  } catch (error) {
    throw new Error([`Dredd cannot run: ${messageOf(error)}`, ...warnings].join('\n'), { cause: error });
  } finally {
    logger.off('logging', collect);
  }
}

/** Sends one request as Dredd does, outside of its transactions. */
export function perform(
  url: string,
  request: Pick<Transaction['request'], 'method' | 'headers'>,
): Promise<DreddAnswer> {
  return new Promise((resolve, reject) => {
    load().perform(url, { uri: '', body: '', ...request }, { http: HTTP }, (error, answer) =>
      error ? reject(error) : resolve(answer),
    );
  });
}

/** What the hooks leave for the observer. */
interface RunState {
  loaded: boolean;
  failure?: Error;
  readonly violations: Map<string, readonly string[]>;
}

/** The hooks as functions that never throw: an error thrown in one of Dredd's hooks leads it astray. */
function drive(hooks: Hooks): { driver: Record<string, unknown>; state: RunState } {
  const state: RunState = { loaded: false, violations: new Map() };
  const driver = {
    loaded: () => {
      state.loaded = true;
    },
    select: (transactions: Transaction[]) => {
      try {
        transactions.splice(0, transactions.length, ...hooks.select([...transactions]));
      } catch (error) {
        transactions.length = 0;
        state.failure = error instanceof Error ? error : new Error(String(error));
      }
    },
    prepare: async (transaction: Transaction) => {
      try {
        await hooks.prepare(transaction);
      } catch (error) {
        transaction.fail = messageOf(error);
        state.violations.set(transaction.id, [messageOf(error)]);
      }
    },
    verify: async (transaction: Transaction) => {
      const violations = await hooks.verify(transaction).catch((error: unknown) => [messageOf(error)]);
      state.violations.set(transaction.id, violations);
      if (violations.length > 0) transaction.fail = violations.join('\n');
    },
  };
  return { driver, state };
}

/** Turns Dredd's events into outcomes. */
function observe({ violations }: RunState, report: (outcome: Outcome) => void): EventEmitter {
  const emitter = new EventEmitter();
  const on = (event: string, verdict: Outcome['verdict'], reasonsOf: (test: DreddTest) => readonly string[]) =>
    emitter.on(event, (test: DreddTest) => {
      report({ id: test.title, verdict, reasons: reasonsOf(test), durationMs: Date.now() - test.startedAt });
    });
  on('test pass', 'pass', () => []);
  on('test skip', 'skip', () => []);
  // Ours say where and why; Dredd's own are left for what ours do not see.
  on('test fail', 'fail', ({ title, message }) => {
    const ours = violations.get(title) ?? [];
    return ours.length > 0 ? ours : [message.trim()];
  });
  emitter.on('test error', (error: Error, test: DreddTest) => {
    report({ id: test.title, verdict: 'error', reasons: [error.message], durationMs: Date.now() - test.startedAt });
  });
  return emitter;
}

/** Loads Dredd when it is first needed, and quietly: its old packages warn when they load, and it prints all it does. */
function load(): Parts {
  if (parts !== undefined) return parts;
  const require = createRequire(import.meta.url);
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    const { default: perform } = require('dredd/build/performRequest.js') as { default: typeof performRequest };
    const { default: logger } = require('dredd/build/logger.js') as { default: DreddLogger };
    const { default: output } = require('dredd/build/reporters/reporterOutputLogger.js') as { default: DreddLogger };
    logger.transports.console.silent = true;
    output.transports.console.silent = true;
    parts = { Runner: require('dredd') as typeof Dredd, perform, logger };
    return parts;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
