// Dredd comes without types. These are of what is used of version 14.

declare module 'dredd' {
  import type { EventEmitter } from 'node:events';

  /** What Dredd made of one response of the contract, and what came of it. */
  export interface Transaction {
    id: string;
    host: string;
    port: string | null;
    protocol: string;
    fullPath: string;
    request: { method: string; uri: string; headers: Record<string, string>; body: string };
    expected: { statusCode: string; headers: Record<string, string>; body?: string; bodySchema?: string };
    /** `resourceName` is the path's template. */
    origin: { resourceName: string };
    real?: DreddAnswer;
    skip: boolean;
    fail?: string;
  }

  export interface DreddAnswer {
    statusCode: number;
    headers: Record<string, string | string[] | undefined>;
    body?: string;
    bodyEncoding?: BufferEncoding;
  }

  /** What the emitter's events are about. */
  export interface DreddTest {
    /** The transaction's id. */
    title: string;
    message: string;
    /** In milliseconds since 1970. */
    startedAt: number;
  }

  export interface DreddStats {
    tests: number;
    passes: number;
    failures: number;
    errors: number;
    skipped: number;
  }

  export interface DreddConfiguration {
    endpoint: string;
    path: string[];
    hookfiles: string[];
    emitter: EventEmitter;
    loglevel: string;
    /** Options of the package "request". */
    http: { timeout: number };
    /** Handed on to the hooks, where it is `hooks.configuration.custom`. */
    custom: Record<string, unknown>;
  }

  export default class Dredd {
    constructor(configuration: DreddConfiguration);
    run(callback: (error: Error | null | undefined, stats: DreddStats) => void): void;
  }
}

declare module 'dredd/build/performRequest.js' {
  import type { DreddAnswer, Transaction } from 'dredd';

  export default function performRequest(
    url: string,
    request: Transaction['request'],
    options: { http: { timeout: number } },
    callback: (error: Error | null, answer: DreddAnswer) => void,
  ): void;
}

declare module 'dredd/build/logger.js' {
  import type { EventEmitter } from 'node:events';

  /** A logger of winston 2. */
  export interface DreddLogger extends EventEmitter {
    transports: { console: { silent: boolean } };
  }
}
