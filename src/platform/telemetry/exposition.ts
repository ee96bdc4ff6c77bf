/** One value of a metric. */
export interface Sample {
  readonly name: string;
  /** The name with the labels, as they are written: the same in each reading. */
  readonly series: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^((\w+)(?:\{(.*)\})?) (\S+)$/gm;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/**
 * Reads metrics from the text format of Prometheus, as the service writes it. No label of ours has a value that
 * needs an escape.
 *
 * @param names - the metrics to read; all others are left out
 */
export function parseSamples(text: string, names: ReadonlySet<string>): readonly Sample[] {
  const samples: Sample[] = [];
  for (const [, series = '', name = '', labels = '', value] of text.matchAll(LINE)) {
    if (!names.has(name)) continue;
    const pairs = [...labels.matchAll(LABEL)].map(([, label = '', text = '']) => [label, text]);
    samples.push({ name, series, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) });
  }
  return samples;
}
