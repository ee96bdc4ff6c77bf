import assert from 'node:assert/strict';
import type { ServerProcess } from '../program.js';
import { send } from '../request.js';

/** The result of a scrape. */
export interface Scrape {
  readonly text: string;
  /** Values by series, as in `name{label="value"}`, with the labels in alphabetical order. */
  readonly series: ReadonlyMap<string, number>;
}

/** Returns the logged URL of a server's metrics. */
export function metricsUrlOf({ output }: ServerProcess): string {
  return /"metrics_url":"([^"]+)"/.exec(output.stdout)?.[1] ?? assert.fail(`no metrics: ${output.stdout}`);
}

/** Fetches metrics. */
export async function scrape(url: string): Promise<Scrape> {
  const { origin, pathname } = new URL(url);
  const { status, headers, text } = await send(origin, pathname);
  assert.equal(status, 200, text);
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  return { text, series: parse(text) };
}

/** The series of a metric that are not zero. */
export function nonZero({ series }: Scrape, name: string): Record<string, number> {
  return Object.fromEntries([...series].filter(([key, value]) => key.split('{')[0] === name && value !== 0));
}

const SAMPLE = /^(\w+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /\w+="(?:[^"\\\n]|\\["\\n])*"/g;

/** Reads the text format of Prometheus. Each series is there once. */
function parse(text: string): Map<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`);
    const sorted = (labels.match(LABEL) ?? []).sort().join(',');
    const key = sorted === '' ? name : `${name}{${sorted}}`;
    assert.ok(!series.has(key), `twice: ${line}`);
    series.set(key, Number(value));
  }
  return series;
}
