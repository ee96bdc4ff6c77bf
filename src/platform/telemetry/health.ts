import type { Logger } from 'pino';

/** What the service works with. It can do without all of them but the database, at a cost. */
export type Component = 'database' | 'redis' | 'announcements' | 'replica';

/** A component counts as up until its loss is told. */
export type ComponentState = 'up' | 'lost';

/** What the loss of a component means for those who call, in a sentence. Public: it names no address. */
export const CONSEQUENCES: Readonly<Record<Component, string>> = {
  database: 'Requests that need it are answered with 503.',
  redis: 'Limits are counted in each process, and keys are checked in the database.',
  announcements: 'Changes made in the database are not heard of, so keys are checked there at each request.',
  replica: 'The primary is read instead.',
};

/** The one place that knows what is up and what is lost. Each change of state is logged once, however often it is told. */
export class Health {
  readonly #states: Map<Component, ComponentState>;

  /** @param components - those that are configured; what is told of others is ignored */
  constructor(
    private readonly log: Logger,
    components: readonly Component[],
  ) {
    this.#states = new Map(components.map((component) => [component, 'up']));
  }

  /** The components that are configured, each with its state now. */
  get states(): ReadonlyMap<Component, ComponentState> {
    return this.#states;
  }

  /** Notes that a component cannot be used. @param error - why, for the log alone */
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

  /** The same for those who tell the state as a word. */
  note(component: Component, state: 'lost' | 'back', error?: unknown): void {
    if (state === 'lost') this.lost(component, error);
    else this.back(component);
  }
}
