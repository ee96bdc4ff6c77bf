/** The settings of the load generator, as JSON in its first argument. */
export interface GeneratorOptions {
  readonly url: string;
  /** Serialised requests with a NUL between them, which are sent in turn. */
  readonly requestsFile: string;
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second; without it, as many as the server can answer. */
  readonly rate?: number;
}

/** The result of some seconds of load. */
export interface Load {
  /** Answered requests. */
  readonly requests: number;
  readonly seconds: number;
  /** Answers with a status of 400 or more. */
  readonly refused: number;
  /** Broken connections, and requests without an answer or with a 5xx. */
  readonly broken: number;
}

/** The same with latencies in milliseconds. */
export interface Latencies extends Load {
  readonly p50: number;
  readonly p99: number;
  /** 99th percentile of how late the generator itself was. */
  readonly delayP99: number;
}
