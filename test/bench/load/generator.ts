import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { AnswerReader } from '../../support/http/answer-reader.js';
import type { GeneratorOptions, Latencies } from './protocol.js';

// Sends requests over a fixed number of connections, at a constant rate or as many as are answered. It prints the
// result as JSON. At a constant rate, a request that finds no free connection waits, and its wait counts: a server that
// stalls also gets the requests of that time (no "coordinated omission").

const options = JSON.parse(process.argv[2] ?? '') as GeneratorOptions;
const requests = readFileSync(options.requestsFile, 'utf8')
  .split('\0')
  .map((text) => Buffer.from(text));
const { hostname, port } = new URL(options.url);

const latencies: number[] = [];
/** How late each tick of the clock was, in milliseconds: the delay that this program itself adds. */
const delays: number[] = [];
/**
 * Requests that were due before this are not timed: this program itself was late, for example because of a garbage
 * collection, so they were sent and read late.
 */
let distrustedUntil = 0;
const idle: Connection[] = [];
/** The due times of requests that wait for a free connection. */
const waiting: number[] = [];
let sent = 0;
let answered = 0;
let refused = 0;
let broken = 0;
let isOver = false;

class Connection {
  readonly #socket: Socket;
  readonly #reader = new AnswerReader();
  #dueAt = 0;

  constructor() {
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true }, () => this.#next());
    this.#socket.on('data', (bytes) => {
      const status = this.#reader.read(bytes);
      if (status === undefined) return;
      const now = performance.now();
      if (this.#dueAt > distrustedUntil && now - turnAt < TURN_MS + LATE_MS) latencies.push(now - this.#dueAt);
      answered++;
      if (status >= 400) refused++;
      if (status >= 500) broken++;
      this.#next();
    });
    this.#socket.on('error', () => broken++);
  }

  send(dueAt: number): void {
    this.#dueAt = dueAt;
    this.#socket.write(requests[sent++ % requests.length] ?? '');
  }

  #next(): void {
    if (isOver) return;
    const dueAt = options.rate === undefined ? performance.now() : waiting.shift();
    if (dueAt === undefined) idle.push(this);
    else this.send(dueAt);
  }
}

const TURN_MS = 1;

/** A tick that is later than this counts as a pause of this program. */
const LATE_MS = 3;

/** Not counted, while connections are opened and this program's code is compiled, which alone would decide its p99. */
const WARM_UP_MS = 500;

for (let i = 0; i < options.connections; i++) new Connection();
const start = performance.now();
let due = 0;
let turnAt = start;
let countedFrom: number | undefined;
const clock = setInterval(() => {
  const now = performance.now();
  const late = now - turnAt - TURN_MS;
  delays.push(late);
  if (late > LATE_MS) distrustedUntil = now + late;
  turnAt = now;
  if (countedFrom === undefined && now - start >= WARM_UP_MS) countedFrom = begin(now);
  if (countedFrom !== undefined && now - countedFrom >= options.seconds * 1000) end(now, countedFrom);
  // A request is due at the first turn of the clock after its time, so that the clock's own step is no wait.
  for (; due < ((now - start) / 1000) * (options.rate ?? 0); due++) {
    const connection = idle.pop();
    if (connection === undefined) waiting.push(now);
    else connection.send(now);
  }
}, TURN_MS);

function begin(now: number): number {
  latencies.length = 0;
  delays.length = 0;
  answered = 0;
  refused = 0;
  return now;
}

function end(now: number, from: number): void {
  isOver = true;
  clearInterval(clock);
  // Requests that still wait have waited at least this long.
  for (const dueAt of waiting) latencies.push(now - dueAt);
  const result: Latencies = {
    requests: answered,
    seconds: (now - from) / 1000,
    refused,
    broken,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    delayP99: percentile(delays, 0.99),
  };
  process.stdout.write(`RESULT ${JSON.stringify(result)}\n`, () => process.exit(0));
}

function percentile(numbers: number[], part: number): number {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}
