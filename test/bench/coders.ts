import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
import { BROTLI_QUALITY, GZIP_LEVEL, type ContentCoding } from '../../src/http/response/content-coding.js';
import { median } from './measure.js';

/** A coding with its settings. */
export interface Coder {
  readonly name: string;
  readonly coding: ContentCoding;
  /** Whether the service uses it. */
  readonly isChosen: boolean;
  readonly atOnce: (content: Buffer) => Buffer;
  readonly inThread: (content: Buffer) => Promise<Buffer>;
}

/** What one page costs in a coding. */
export interface Cost {
  readonly bytes: number;
  /** CPU time of a page compressed on the event loop, in microseconds. */
  readonly atOnceMicros: number;
  /** The same where threads do it: theirs, and that of the event loop with them. */
  readonly inThreadMicros: number;
  /** The part of it on the event loop, which hands the page to the thread and takes it back. In microseconds. */
  readonly loopMicros: number;
}

const gzipInThread = promisify(gzip);
const brotliInThread = promisify(brotliCompress);

const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

/** All levels of gzip and all qualities of br, and settings that differ a little from those of the service. */
export const CODERS: readonly Coder[] = [
  ...range(1, 9).map((level) => gzipCoder(`gzip ${level}`, { level })),
  gzipCoder(`gzip ${GZIP_LEVEL}, memLevel 7`, { level: GZIP_LEVEL, memLevel: 7 }),
  gzipCoder(`gzip ${GZIP_LEVEL}, memLevel 9`, { level: GZIP_LEVEL, memLevel: 9 }),
  gzipCoder(`gzip ${GZIP_LEVEL}, windowBits 13`, { level: GZIP_LEVEL, windowBits: 13 }),
  ...range(0, 11).map((quality) => brotliCoder(`br ${quality}`, quality)),
  brotliCoder(`br ${BROTLI_QUALITY}, lgwin 16`, BROTLI_QUALITY, { [constants.BROTLI_PARAM_LGWIN]: 16 }),
  brotliCoder(`br ${BROTLI_QUALITY}, text`, BROTLI_QUALITY, {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  }),
];

function gzipCoder(name: string, options: { level: number; memLevel?: number; windowBits?: number }): Coder {
  return {
    name,
    coding: 'gzip',
    isChosen: name === `gzip ${GZIP_LEVEL}`,
    atOnce: (content) => gzipSync(content, options),
    inThread: (content) => gzipInThread(content, options),
  };
}

function brotliCoder(name: string, quality: number, others: Record<number, number> = {}): Coder {
  const options = { params: { [constants.BROTLI_PARAM_QUALITY]: quality, ...others } };
  return {
    name,
    coding: 'br',
    isChosen: name === `br ${BROTLI_QUALITY}`,
    atOnce: (content) => brotliCompressSync(content, options),
    inThread: (content) => brotliInThread(content, options),
  };
}

/** How long one measurement goes on, in milliseconds. */
const TURN_MS = 40;

/** Threads that Node.js has for such work by default. */
const THREADS = 4;

/** Compresses a page over and over. Medians over the rounds. */
export async function costOf({ atOnce, inThread }: Coder, page: Buffer, rounds: number): Promise<Cost> {
  const figures: Omit<Cost, 'bytes'>[] = [];
  for (let round = 0; round <= rounds; round++) {
    const single = await timeOf(() => void atOnce(page));
    const threaded = await timeOf(() => Promise.all(Array.from({ length: THREADS }, () => inThread(page))));
    figures.push({
      atOnceMicros: single.cpuMicros,
      inThreadMicros: threaded.cpuMicros / THREADS,
      loopMicros: threaded.loopMicros / THREADS,
    });
  }
  // The first round does not count: code is compiled, memory is taken.
  const middle = (name: keyof Omit<Cost, 'bytes'>): number => median(figures.slice(1).map((figure) => figure[name]));
  return {
    bytes: atOnce(page).length,
    atOnceMicros: middle('atOnceMicros'),
    inThreadMicros: middle('inThreadMicros'),
    loopMicros: middle('loopMicros'),
  };
}

/** Measures one run: the CPU time of all threads of this process, and the time that the event loop is busy. */
async function timeOf(work: () => unknown): Promise<{ cpuMicros: number; loopMicros: number }> {
  const end = performance.now() + TURN_MS;
  const cpuBefore = process.cpuUsage();
  const loopBefore = performance.eventLoopUtilization();
  let runs = 0;
  do {
    await work();
    runs++;
  } while (performance.now() < end);
  const { user, system } = process.cpuUsage(cpuBefore);
  const { active } = performance.eventLoopUtilization(loopBefore);
  return { cpuMicros: (user + system) / runs, loopMicros: (active * 1000) / runs };
}
