import type { Logger } from 'pino';

/** The components that the service works with. Only the database is essential; the loss of another one has a cost. */
export type Component = 'database' | 'redis' | 'announcements' | 'replica';

/** A component counts as up until its loss is reported. */
export type ComponentState = 'up' | 'lost';

/** What the loss of a component means for clients, in one sentence. It is public and names no address. */
export const CONSEQUENCES: Readonly<Record<Component, string>> = {
  database: 'Requests that need it are answered with 503.',
  redis: 'Limits are counted in each process, and keys are checked in the database.',
  announcements: 'Changes made in the database are not heard of, so keys are checked there at each request.',
  replica: 'The primary is read instead.',
};

/**
 * The one place that knows which components are up. Each change of state is logged once, however often it is reported.
 */
export class Health {
  readonly #states: Map<Component, ComponentState>;

  /** @param components - the configured ones; reports about others are ignored */
  constructor(
    private readonly log: Logger,
    components: readonly Component[],
  ) {
    this.#states = new Map(components.map((component) => [component, 'up']));
  }

  /** The configured components, each with its current state. */
  get states(): ReadonlyMap<Component, ComponentState> {
    return this.#states;
  }

  /** Notes that a component cannot be used. @param error - why, only for the log */
  lost(component: Component, error?: unknown): void {
    if (this.#states.get(component) !== 'up') return;
    this.#states.set(component, 'lost');
    this.log.warn({ err: error }, `${component} lost. ${CONSEQUENCES[component]}`);
  }

  /** Notes that a component can be used again. */
  back(component: Component): void {
    if (this.#states.get(component) !== 'lost') return;
    this.#states.set(component, 'up');
    this.log.info(`${component} back`);
  }

  note(component: Component, state: 'lost' | 'back', error?: unknown): void {
    if (state === 'lost') this.lost(component, error);
    else this.back(component);
  }
}
