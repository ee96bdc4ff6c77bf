import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder.js';
import { CODERS, costOf, type Coder, type Cost } from './coders.js';
import { count, median, print, printResults } from './measure.js';
import { runCatalog } from './program.js';
import { bearer, type Case, type Ingredients } from './speed/cases.js';
import { reserveServerCore } from './speed/load/cores.js';
import { generate, saturate } from './speed/load/load.js';
import { cpuSeconds } from './speed/load/process-figures.js';
import { startSubject, type Stores, type Subject } from './speed/servers.js';
import { prepareSurroundings } from './speed/surroundings.js';

/** What to measure with. */
export interface CompressionOptions {
  readonly titles: number;
  readonly rounds: number;
  /** Of each measurement of the server. */
  readonly seconds: number;
  /** Files with pages of your own, as `curl` gets them; they are measured too. */
  readonly pages: readonly string[];
}

const DEMO_TITLES = fileURLToPath(new URL('../../db/demo/titles.csv', import.meta.url));

/** What clients ask for; `identity` is what those get that do not ask. */
const ASKED = ['identity', 'gzip', 'br'] as const;
type Asked = (typeof ASKED)[number];

/** Requests a second for `/me` while pages are asked for as well. */
const ME_RATE = 200;

/** Requests that are not counted, in seconds. */
const WARM_UP_SECONDS = 1;

/** What the server does with pages in one coding: medians over the rounds. */
interface Served {
  readonly bytes: number;
  readonly pagesPerSecond: number;
  /** CPU time of the server for one page, in microseconds; NaN where the system does not tell. */
  readonly cpuMicros: number;
  /** Of `/me` together with pages at a quarter of what the server can do without compression, in milliseconds. */
  readonly meP50: number;
  readonly meP99: number;
}

/** Measures what it costs to compress a full page of changes, and what it costs the server that does it. */
export async function benchCompression(options: CompressionOptions): Promise<void> {
  const surroundings = await prepareSurroundings(options.titles);
  const { db, stores, ingredients } = surroundings;
  try {
    // Behind the synthetic ones in the feed: titles that people wrote.
    await runCatalog(stores.databaseUrl, ['import', DEMO_TITLES, '--kind', 'titles']);
    await db.raw('vacuum (analyze) titles');

    // First, while this process may still run on every core: threads want some.
    const pages = await collectPages(stores, ingredients, options.pages);
    const costs = new Map<string, Map<Coder, Cost>>();
    for (const [name, page] of pages) {
      print(`Compressing a page of ${name} …\n`);
      costs.set(name, new Map());
      for (const coder of CODERS) costs.get(name)?.set(coder, await costOf(coder, page, options.rounds));
    }

    const core = reserveServerCore();
    print(`Asking for pages, with /me beside them; the server ${core.description} …\n`);
    const subject = await startSubject('service', stores, { core });
    const served = await serve(subject, ingredients, stores.folder, options);
    await subject.stop();

    for (const [name, page] of pages) printCosts(name, page.length, costs.get(name) ?? new Map(), served.identity);
    printServed(served);
  } finally {
    await surroundings.close();
  }
}

async function collectPages(
  stores: Stores,
  ingredients: Ingredients,
  files: readonly string[],
): Promise<Map<string, Buffer>> {
  const subject = await startSubject('service', stores);
  const pageAfter = async (since: number | undefined): Promise<Buffer> =>
    (await fetchPage(subject.url, ingredients, since, 'identity')).content;
  const pages = new Map([
    ['synthetic titles', await pageAfter(ingredients.positions[0])],
    ['the demo catalogue', await pageAfter(ingredients.newestPosition)],
  ]);
  await subject.stop();
  for (const file of files) pages.set(file, await readFile(file));
  return pages;
}

function printCosts(name: string, length: number, costs: ReadonlyMap<Coder, Cost>, { cpuMicros }: Served): void {
  printResults(
    `A full page of ${name}, ${count(length)} bytes; CPU time in microseconds, and its part of that of a page as it is`,
    ['bytes', 'ratio', 'at once', 'part', 'in a thread', 'of that on the loop'],
    [...costs].map(([coder, { bytes, atOnceMicros, inThreadMicros, loopMicros }]) => ({
      what: `${coder.name}${coder.isChosen ? ' (the service)' : ''}`,
      figures: [
        count(bytes),
        (length / bytes).toFixed(2),
        count(atOnceMicros),
        `${count((atOnceMicros / cpuMicros) * 100)} %`,
        count(inThreadMicros),
        count(loopMicros),
      ],
    })),
  );
}

async function serve(
  subject: Subject,
  ingredients: Ingredients,
  folder: string,
  { rounds, seconds }: CompressionOptions,
): Promise<Record<Asked, Served>> {
  const loads = {
    identity: pagesIn('identity', ingredients),
    gzip: pagesIn('gzip', ingredients),
    br: pagesIn('br', ingredients),
  };
  const me: Case = { name: 'me', status: 200, requests: [{ path: '/me', headers: bearer(ingredients.keys[0] ?? '') }] };
  const saturated = new Map<Asked, { pagesPerSecond: number; cpuMicros: number }[]>(ASKED.map((asked) => [asked, []]));
  for (const asked of ASKED) await saturate(subject, loads[asked], WARM_UP_SECONDS, folder);
  for (let round = 0; round < rounds; round++) {
    for (const asked of ASKED) {
      const before = cpuSeconds(subject.pid);
      const { requests, seconds: took } = await saturate(subject, loads[asked], seconds, folder);
      const cpuMicros = ((cpuSeconds(subject.pid) - before) / requests) * 1e6;
      saturated.get(asked)?.push({ pagesPerSecond: requests / took, cpuMicros });
    }
  }
  const middle = (asked: Asked, figure: 'pagesPerSecond' | 'cpuMicros'): number =>
    median(saturated.get(asked)?.map((one) => one[figure]) ?? []);
  const rate = middle('identity', 'pagesPerSecond') / 4;
  const beside = new Map<Asked, { p50: number; p99: number }[]>(ASKED.map((asked) => [asked, []]));
  // A folder of its own: each load has its requests in one file of its folder.
  const folderOfMe = await temporaryFolder();
  for (let round = 0; round < rounds; round++) {
    for (const asked of ASKED) {
      const [ofMe] = await Promise.all([
        generate(subject, me, seconds, folderOfMe, ME_RATE),
        generate(subject, loads[asked], seconds, folder, rate),
      ]);
      beside.get(asked)?.push(ofMe);
    }
  }
  const servedIn = async (asked: Asked): Promise<Served> => ({
    bytes: (await fetchPage(subject.url, ingredients, ingredients.positions[0], asked)).bytes,
    pagesPerSecond: middle(asked, 'pagesPerSecond'),
    cpuMicros: middle(asked, 'cpuMicros'),
    meP50: median(beside.get(asked)?.map(({ p50 }) => p50) ?? []),
    meP99: median(beside.get(asked)?.map(({ p99 }) => p99) ?? []),
  });
  return { identity: await servedIn('identity'), gzip: await servedIn('gzip'), br: await servedIn('br') };
}

function printServed(served: Record<Asked, Served>): void {
  printResults(
    'The server with full pages of synthetic titles on 32 connections, and /me beside them at a quarter of that',
    ['bytes', 'pages a second', 'CPU time, µs', '/me p50, ms', 'p99, ms'],
    ASKED.map((asked) => {
      const { bytes, pagesPerSecond, cpuMicros, meP50, meP99 } = served[asked];
      return {
        what: asked === 'identity' ? 'not asked to compress' : asked,
        figures: [count(bytes), count(pagesPerSecond), count(cpuMicros), meP50.toFixed(2), meP99.toFixed(2)],
      };
    }),
  );
}

function pagesIn(asked: Asked, ingredients: Ingredients): Case {
  const headers = headersOf(ingredients, asked);
  const requests = ingredients.positions.map((since) => ({ path: `/changes?since=${since}`, headers }));
  return { name: asked, status: 200, requests };
}

function headersOf(ingredients: Ingredients, asked: Asked): Record<string, string> {
  return { ...bearer(ingredients.keys[0] ?? ''), ...(asked !== 'identity' && { 'accept-encoding': asked }) };
}

/** @returns the decoded page, and the bytes of content that came @throws Error when it came in another coding */
async function fetchPage(
  url: string,
  ingredients: Ingredients,
  since: number | undefined,
  asked: Asked,
): Promise<{ content: Buffer; bytes: number }> {
  const headers = { ...bearer(ingredients.keys[0] ?? ''), 'accept-encoding': asked };
  const response = await fetch(`${url}/api/v1/changes?since=${since ?? ''}`, { headers });
  const coding = response.headers.get('content-encoding') ?? 'identity';
  if (coding !== asked) throw new Error(`The page came as ${coding}, not as ${asked}`);
  const bytes = Number(response.headers.get('content-length'));
  return { content: Buffer.from(await response.arrayBuffer()), bytes };
}
