import type { Logger } from 'pino';

/** A dependency of the service. Only the database is essential; the loss of another one has a cost. */
export type Dependency = 'database' | 'redis' | 'announcements' | 'replica';

/** A dependency counts as up until its loss is reported. A slow one is there, but does not answer in time. */
export type DependencyState = 'up' | 'slow' | 'lost';

/** The losses of this time count as flapping. */
const HOUR_MS = 3_600_000;

/** The current state of a component that the service depends on. */
export interface ComponentState {
  readonly state: DependencyState;
  /**
   * When it was first seen in this state, in milliseconds since 1970: when the server started, if it was up from then
   * on.
   */
  readonly since: number;
  /** The names of the lost parts; absent if all of it or nothing is lost. */
  readonly lostParts?: readonly string[];
  /** When it stopped being up, in milliseconds since 1970, of the last hour. */
  readonly losses: readonly number[];
  /** How often it stopped being up since the process began. */
  readonly lossCount: number;
}

/** The consequences of losing a dependency. The sentences are public and name no address. */
export interface Outage {
  /** The name of the component. */
  readonly name: string;
  /** For operators, in one sentence: the log, `/readyz` and the operator pages have it. */
  readonly consequence: string;
  /** Replaces the members of the same name while the component is slow; absent if it is never slow. */
  readonly slow?: Pick<Outage, 'consequence' | 'advice' | 'guide'>;
  /** The consequence where only parts of the component are lost. */
  readonly partly?: (lostParts: readonly string[]) => string;
  /** For people who call the service. */
  readonly forCallers: string;
  /** For the operator. The service itself reconnects. */
  readonly advice: string;
  /** The section of a guide for operators with more about it. */
  readonly guide: string;
}

/** Changes that failed with a 5xx: to create, roll or revoke a key, to sign in. */
export interface FailedChanges {
  readonly count: number;
  /** When the last one failed, in milliseconds since 1970; undefined if none has. */
  readonly lastAt: number | undefined;
}

/** The one place that knows which dependencies are up. Each change is logged once, however often it is reported. */
export class Health {
  readonly #components: Map<Dependency, ComponentState>;
  #failedChanges: FailedChanges = { count: 0, lastAt: undefined };

  /**
   * @param outages - the consequences of losing each dependency
   * @param dependencies - the configured ones; reports about others are ignored
   */
  constructor(
    private readonly log: Logger,
    readonly outages: Readonly<Record<Dependency, Outage>>,
    dependencies: readonly Dependency[],
  ) {
    const since = Date.now();
    const initial = { state: 'up', since, losses: [], lossCount: 0 } as const;
    this.#components = new Map(dependencies.map((dependency) => [dependency, initial]));
  }

  /** The configured dependencies. */
  get components(): ReadonlyMap<Dependency, ComponentState> {
    return this.#components;
  }

  /** The changes that failed since the process began, on pages for developers and operators alike. */
  get failedChanges(): FailedChanges {
    return this.#failedChanges;
  }

  /** Notes that a change has failed, such as on a full disk, while every dependency is up. */
  noteFailedChange(): void {
    this.#failedChanges = { count: this.#failedChanges.count + 1, lastAt: Date.now() };
  }

  /** The configured dependencies that are lost or slow. */
  get lost(): readonly Dependency[] {
    return [...this.#components].flatMap(([dependency, { state }]) => (state === 'up' ? [] : [dependency]));
  }

  /** @returns the current effect of losing a dependency, or parts of it, and the remedy */
  outageOf(dependency: Dependency): Outage {
    const outage = this.outages[dependency];
    const { state, lostParts = [] } = this.#components.get(dependency) ?? {};
    if (state === 'slow') return { ...outage, ...outage.slow };
    return lostParts.length > 0 && outage.partly ? { ...outage, consequence: outage.partly(lostParts) } : outage;
  }

  /**
   * Notes whether a dependency can be used.
   *
   * @param error - why it cannot, only for the log
   * @param lostParts - if only parts of it are lost
   */
  note(dependency: Dependency, state: DependencyState, error?: unknown, lostParts: readonly string[] = []): void {
    const before = this.#components.get(dependency);
    if (before === undefined || (before.state === state && (before.lostParts ?? []).join() === lostParts.join()))
      return;
    const now = Date.now();
    const since = before.state === state ? before.since : now;
    const isLoss = before.state === 'up' && state !== 'up';
    const losses = [...before.losses, ...(isLoss ? [now] : [])].filter((at) => at > now - HOUR_MS);
    const lossCount = before.lossCount + Number(isLoss);
    this.#components.set(dependency, { state, since, lostParts, losses, lossCount });
    if (state === 'up') this.log.info(`${dependency} back`);
    else this.log.warn({ err: error }, `${dependency} ${state}. ${this.outageOf(dependency).consequence}`);
  }
}
