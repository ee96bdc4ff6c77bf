import { writeFile } from 'node:fs/promises';

/** Times are in milliseconds since the run began. What takes no time has the same start and end. */
interface Timed {
  readonly start: number;
  readonly end: number;
}

/** A request. */
export interface Call extends Timed {
  readonly kind: 'call';
  readonly path: string;
  /** 0 without a whole answer of the service. */
  readonly status: number;
  /** What decides whether it is accepted: its key and the developer of that; nothing for a page for people. */
  readonly subjects: readonly string[];
}

/** A change of a key or a developer, after which calls are accepted or refused. */
export interface Change extends Timed {
  readonly kind: 'change';
  readonly subject: string;
  readonly isRefused: boolean;
  /** False after a failure: it is unknown whether the change was made. */
  readonly isApplied: boolean;
}

/** Failures of requests: 503 of the service, or no whole answer of it. */
export type Failure = 'unavailable' | 'broken';

/** A fault. It ends when its cause is removed. */
export interface FaultRecord extends Timed {
  readonly kind: 'fault';
  readonly name: string;
  /** The failures of requests that it may cause. */
  readonly allows: readonly Failure[];
  /** The time after its end within which all must be well, in milliseconds. */
  readonly boundMs: number;
  /** Whether all servers had all that they depend on by then. */
  readonly isHealed: boolean;
}

/** What a process or a server takes, at one moment. */
interface Sample extends Timed {
  readonly kind: 'sample';
  readonly subject: string;
  readonly figures: Readonly<Record<string, number>>;
}

export type HistoryEvent = Call | Change | FaultRecord | Sample;

/** Everything that happened in a run, in the order in which it ended. */
export class History {
  readonly events: HistoryEvent[] = [];
  readonly #begin = performance.now();

  /** Milliseconds since the run began. */
  now(): number {
    return Math.round((performance.now() - this.#begin) * 100) / 100;
  }

  /** Records what began at a time and has just ended; without a time, what is true from now on. */
  record(event: DistributiveOmit<HistoryEvent, keyof Timed>, start = this.now()): void {
    this.events.push({ ...event, start, end: this.now() });
  }

  /** Writes one JSON document a line. */
  async save(file: string): Promise<void> {
    await writeFile(file, this.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
