import type { Logger } from 'pino';

/** What the service depends on. Only the database is essential; the loss of another dependency has a cost. */
export type Dependency = 'database' | 'redis' | 'announcements' | 'replica';

/** A dependency counts as up until its loss is reported. */
export type DependencyState = 'up' | 'lost';

/** What the loss of a dependency means for clients, in one sentence. It is public and names no address. */
export const CONSEQUENCES: Readonly<Record<Dependency, string>> = {
  database: 'Requests that need the database are answered with 503.',
  redis: 'Redis is down; each process enforces limits on its own, and keys are checked against the database.',
  announcements: 'Change notifications are down; each request looks its key up in the database.',
  replica: 'The read replica is down; reads go to the primary.',
};

/** The one place that knows which dependencies are up. Each change is logged once, however often it is reported. */
export class Health {
  readonly #states: Map<Dependency, DependencyState>;

  /** @param dependencies - the configured ones; reports about others are ignored */
  constructor(
    private readonly log: Logger,
    dependencies: readonly Dependency[],
  ) {
    this.#states = new Map(dependencies.map((dependency) => [dependency, 'up']));
  }

  /** The configured dependencies, each with its current state. */
  get states(): ReadonlyMap<Dependency, DependencyState> {
    return this.#states;
  }

  /** Notes whether a dependency can be used. @param error - why it cannot, only for the log */
  note(dependency: Dependency, state: DependencyState, error?: unknown): void {
    const before = this.#states.get(dependency);
    if (before === undefined || before === state) return;
    this.#states.set(dependency, state);
    if (state === 'lost') this.log.warn({ err: error }, `${dependency} lost. ${CONSEQUENCES[dependency]}`);
    else this.log.info(`${dependency} back`);
  }
}
