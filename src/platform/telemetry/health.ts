import type { Logger } from 'pino';

/** What the service depends on. Only the database is essential; the loss of another dependency has a cost. */
export type Dependency = 'database' | 'redis' | 'announcements' | 'replica';

/** A dependency counts as up until its loss is reported. */
export type DependencyState = 'up' | 'lost';

/** The current state of a component that the service depends on. */
export interface ComponentState {
  readonly state: DependencyState;
  /** When it was first seen in this state, in milliseconds since 1970: when the server started, if it was up from then on. */
  readonly since: number;
}

/** What the loss of a dependency means. The sentences are public and name no address. */
export interface Outage {
  /** The name of the component. */
  readonly name: string;
  /** For operators, in one sentence: the log, `/readyz` and the operator pages have it. */
  readonly consequence: string;
  /** For people who call the service. */
  readonly forCallers: string;
  /** What an operator can do. The service itself reconnects. */
  readonly advice: string;
  /** The section of a guide for operators with more about it. */
  readonly guide: string;
}

export const OUTAGES: Readonly<Record<Dependency, Outage>> = {
  database: {
    name: 'PostgreSQL',
    consequence: 'Requests that need the database are answered with 503.',
    forCallers:
      'Calls that read the catalogue fail with 503 at the moment: wait the number of seconds in Retry-After, then try ' +
      'again. Your keys are not affected, but you cannot sign in or change them until the service has recovered.',
    advice: 'Bring the primary back, or fail over.',
    guide: 'runbook#postgresql-is-down',
  },
  replica: {
    name: 'Read replica',
    consequence: 'The read replica is down; reads go to the primary.',
    forCallers: 'All calls work, but may take a little longer.',
    advice: 'Bring the replica back. Clients are not affected.',
    guide: 'runbook#the-read-replica-is-down',
  },
  redis: {
    name: 'Redis',
    consequence: 'Redis is down; each process enforces limits on its own, and keys are checked against the database.',
    forCallers: 'All calls work. Until the service has recovered, rate limits may count fewer requests than you send.',
    advice: 'Check that Redis answers and is neither full nor read-only.',
    guide: 'runbook#redis-is-down',
  },
  announcements: {
    name: 'Change notifications',
    consequence: 'Change notifications are down; each request looks its key up in the database.',
    forCallers: 'All calls work, but may take a little longer.',
    advice: 'Look for “announcements lost” in the log, which has the reason.',
    guide: 'runbook#change-notifications-are-down',
  },
};

/** The one place that knows which dependencies are up. Each change is logged once, however often it is reported. */
export class Health {
  readonly #components: Map<Dependency, ComponentState>;

  /** @param dependencies - the configured ones; reports about others are ignored */
  constructor(
    private readonly log: Logger,
    dependencies: readonly Dependency[],
  ) {
    const since = Date.now();
    this.#components = new Map(dependencies.map((dependency) => [dependency, { state: 'up', since }]));
  }

  /** The configured dependencies. */
  get components(): ReadonlyMap<Dependency, ComponentState> {
    return this.#components;
  }

  /** The configured dependencies, each with its current state alone. */
  get states(): ReadonlyMap<Dependency, DependencyState> {
    return new Map([...this.#components].map(([dependency, { state }]) => [dependency, state]));
  }

  /** Notes whether a dependency can be used. @param error - why it cannot, only for the log */
  note(dependency: Dependency, state: DependencyState, error?: unknown): void {
    const before = this.#components.get(dependency)?.state;
    if (before === undefined || before === state) return;
    this.#components.set(dependency, { state, since: Date.now() });
    if (state === 'lost') this.log.warn({ err: error }, `${dependency} lost. ${OUTAGES[dependency].consequence}`);
    else this.log.info(`${dependency} back`);
  }
}
