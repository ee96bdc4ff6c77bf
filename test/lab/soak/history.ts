import { writeFile } from 'node:fs/promises';

/** Times are in milliseconds since the run began. What takes no time has the same start and end. */
interface Timed {
  readonly start: number;
  readonly end: number;
}

/** What a change of a key or a developer came to. After a failure, it is unknown whether it was made. */
export type Outcome = 'applied' | 'unknown';

/** A request to the API. */
export interface Call extends Timed {
  readonly kind: 'call';
  /** The prefix of its key. */
  readonly key: string;
  readonly developer: number;
  readonly path: string;
  /** 0 without a whole answer of the service. */
  readonly status: number;
}

/** A request for a page for people. */
interface View extends Timed {
  readonly kind: 'view';
  readonly path: string;
  readonly status: number;
}

/** A key that was created, or that was ended by its revocation or by a roll without overlap. */
export interface KeyChange extends Timed {
  readonly kind: 'key';
  readonly act: 'create' | 'end';
  readonly key: string;
  readonly developer: number;
  readonly outcome: Outcome;
}

export interface DeveloperChange extends Timed {
  readonly kind: 'developer';
  readonly act: 'suspend' | 'reinstate';
  readonly developer: number;
  readonly outcome: Outcome;
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
}

/** What a server logged about a dependency. */
export interface Change extends Timed {
  readonly kind: 'change';
  readonly pid: number;
  readonly part: string;
  readonly state: 'lost' | 'back';
}

/** What a process or a server takes, at one moment. */
interface Sample extends Timed {
  readonly kind: 'sample';
  readonly subject: string;
  readonly figures: Readonly<Record<string, number>>;
}

export type HistoryEvent =
  | (Timed & { readonly kind: 'begin'; readonly at: string; readonly seed: number })
  | Call
  | View
  | KeyChange
  | DeveloperChange
  | FaultRecord
  | Change
  | Sample;

/** Everything that happened in a run, in the order in which it ended. */
export class History {
  readonly events: HistoryEvent[] = [];
  readonly #begin = performance.now();
  readonly #beginDate = Date.now();

  /** Milliseconds since the run began. */
  now(): number {
    return Math.round((performance.now() - this.#begin) * 100) / 100;
  }

  /** Converts a time of day to a time of this history. */
  timeOf(date: string): number {
    return Date.parse(date) - this.#beginDate;
  }

  record(event: HistoryEvent): void {
    this.events.push(event);
  }

  /** Records what is true from now on. */
  note(event: DistributiveOmit<HistoryEvent, keyof Timed>): void {
    const now = this.now();
    this.record({ ...event, start: now, end: now });
  }

  /** Writes one JSON document a line. */
  async save(file: string): Promise<void> {
    await writeFile(file, this.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
