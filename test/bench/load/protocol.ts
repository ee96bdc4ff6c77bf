/** The settings of the load generator, as JSON in its first argument. */
export interface GeneratorOptions {
  readonly url: string;
  /** Requests as their bytes, with a NUL between them. Sent in turn. */
  readonly requestsFile: string;
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second; left out for as many as are answered. */
  readonly rate?: number;
}

/** What came of some seconds of load. */
export interface Load {
  /** That were answered. */
  readonly requests: number;
  readonly seconds: number;
  /** Answers with a status of 400 or more. */
  readonly refused: number;
  /** Connections that broke, and what was not answered or with a 5xx. */
  readonly broken: number;
}

/** The same with the times that answers took, in milliseconds. */
export interface Latencies extends Load {
  readonly p50: number;
  readonly p99: number;
  /** 99th percentile of how late the generator itself was. */
  readonly delayP99: number;
}
