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

/** Fetches metrics and checks their format. */
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

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|\+Inf|NaN|Nan)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
const TYPES = ['counter', 'gauge', 'histogram', 'summary'];

/**
 * Reads the text format of Prometheus, version 0.0.4, as strictly as it may be read. Each metric is one group under its HELP
 * and TYPE. Each series is there once. Histograms are cumulative and complete.
 */
function parse(text: string): Map<string, number> {
  assert.ok(text.endsWith('\n'), 'the last line has no end');
  const series = new Map<string, number>();
  const types = new Map<string, string>();
  let helped: string | undefined;
  let current: string | undefined;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === 'HELP') {
      assert.match(name, NAME);
      assert.ok(!types.has(name), `two groups: ${line}`);
      helped = name;
    } else if (kind === 'TYPE') {
      assert.equal(name, helped, `TYPE without HELP: ${line}`);
      assert.ok(TYPES.includes(rest), line);
      types.set(name, rest);
      current = name;
    } else {
      const [, sample = '', labels = '', value = ''] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`);
      assert.ok(current !== undefined, line);
      const type = types.get(current) ?? '';
      const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      assert.ok(
        suffixes.some((suffix) => sample === `${String(current)}${suffix}`),
        `outside its group: ${line}`,
      );
      const key = seriesKey(sample, parseLabels(labels));
      assert.ok(!series.has(key), `twice: ${line}`);
      series.set(key, Number(value.replace('Inf', 'Infinity').replace('Nan', 'NaN')));
    }
  }
  for (const [name, type] of types) {
    if (type === 'counter') assert.match(name, /_total$/);
    if (type === 'histogram') checkHistogram(name, series);
    if (name.startsWith('catalog_') && type !== 'counter') assert.doesNotMatch(name, /_total$/);
  }
  return series;
}

function parseLabels(text: string): [string, string][] {
  const labels: [string, string][] = [];
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name = '', value = ''] = LABEL.exec(text) ?? assert.fail(`labels: ${text}`);
    assert.ok(!labels.some(([other]) => other === name), `a label twice: ${text}`);
    labels.push([name, value]);
  }
  return labels;
}

function seriesKey(name: string, labels: readonly (readonly [string, string])[]): string {
  if (labels.length === 0) return name;
  const sorted = [...labels].sort(([a], [b]) => (a < b ? -1 : 1));
  return `${name}{${sorted.map(([label, value]) => `${label}="${value}"`).join(',')}}`;
}

function checkHistogram(name: string, series: ReadonlyMap<string, number>): void {
  const buckets = new Map<string, number[]>();
  for (const [key, value] of series) {
    if (!key.startsWith(`${name}_bucket{`)) continue;
    const others = key
      .slice(`${name}_bucket`.length)
      .replace(/,?le="[^"]+"/, '')
      .replace('{,', '{')
      .replace('{}', '');
    buckets.set(others, [...(buckets.get(others) ?? []), value]);
  }
  for (const [labels, counts] of buckets) {
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
      `${name}${labels} is not cumulative`,
    );
    assert.equal(counts.at(-1), series.get(`${name}_count${labels}`), `${name}${labels} has another count`);
    assert.ok(series.has(`${name}_sum${labels}`));
  }
}
