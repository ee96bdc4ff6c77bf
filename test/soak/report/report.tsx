/** @jsxRuntime automatic @jsxImportSource preact */
import { readFile } from 'node:fs/promises';
import type { VNode } from 'preact';
import { render } from 'preact-render-to-string';
import { ROOT } from '../../support/guides.js';
import { readHistory } from '../history.js';
import type { SoakResult } from '../soak.js';
import { figuresOf, type FaultFigures, type Figures } from './figures.js';
import { LineChart } from './line-chart.js';

/** Violations of one promise that the page lists. */
const MOST_LISTED = 50;

/** The style of the report beside that of the pages, which has the colours. */
const STYLE = `
table { border-collapse: collapse; }
th, td { padding: 0.4rem 0.75rem; border-bottom: 1px solid var(--border); text-align: left; vertical-align: top; }
.soak-faults td:not(:nth-child(2)) { white-space: nowrap; }
.soak-chart { margin: 2rem 0; }
.soak-chart figcaption { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; }
.soak-chart svg { width: 100%; height: auto; overflow: visible; }
.soak-fault { fill: var(--danger-soft); }
.soak-line { fill: none; stroke: currentcolor; stroke-width: 1.6; vector-effect: non-scaling-stroke; }
.soak-key::before { content: ''; display: inline-block; width: 1em; height: 3px; margin-right: 0.4em; vertical-align: middle; background: currentcolor; }
.soak-line-0 { color: var(--meter-ok); }
.soak-line-1 { color: var(--meter-high); }
.soak-line-2 { color: var(--meter-full); }
.soak-line-3 { color: var(--ok); }
.soak-line-4 { color: var(--code-keyword); }
.soak-line-5 { color: var(--muted); }
`;

/** @returns the report of a run as one HTML document that needs no other file */
export async function renderReport(result: SoakResult): Promise<string> {
  const figures = figuresOf(() => readHistory(result.history));
  const style = await readFile(new URL('src/site/static/site.css', ROOT), 'utf8');
  return `<!doctype html>\n${render(<Report {...result} figures={figures} style={style + STYLE} />)}\n`;
}

function Report({ verdicts, missing, figures, style }: SoakResult & { figures: Figures; style: string }): VNode {
  const { begin, end, at, seed, rate, totals, faults, samples } = figures;
  const kept = verdicts.filter(({ violations }) => violations.length === 0).length;
  const frame = { begin, end, faults };
  const count = (kind: string): string => (totals[kind] ?? 0).toLocaleString('en-US');
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>Soak</title>
        <style>{style}</style>
      </head>
      <body>
        <main>
          <div class="container">
            <h1>
              Soak: {kept} of {verdicts.length} promises kept
            </h1>
            <p>
              {at}, {((end - begin) / 60_000).toFixed(1)} minutes at {rate.toFixed(0)} calls a second, seed {seed}:{' '}
              {count('call')} calls, {count('view')} pages, {count('commit')} commits, {count('key')} changes of keys,{' '}
              {count('developer')} of developers, {faults.length} faults.
              {missing.length > 0 && ` Missing on this machine, and left out: ${missing.join(', ')}.`}
            </p>
            <Promises verdicts={verdicts} />
            <h2>Over time</h2>
            <p>A band marks each fault, with its number in the table below.</p>
            <LineChart title="Requests a second" lines={figures.requests} {...frame} />
            <LineChart title="Time of a request, ms" lines={figures.latencies} {...frame} />
            <LineChart title="Entries a second" lines={figures.entries} {...frame} />
            <LineChart title="Memory, MiB" lines={samples.get('memory, MiB') ?? []} {...frame} />
            <LineChart title="Open descriptors" lines={samples.get('descriptors') ?? []} {...frame} />
            <LineChart title="Connections" lines={samples.get('connections') ?? []} {...frame} />
            <LineChart title="Processes that want each core" lines={samples.get('load') ?? []} {...frame} />
            <Faults faults={faults} begin={begin} />
          </div>
        </main>
      </body>
    </html>
  );
}

function Promises({ verdicts }: Pick<SoakResult, 'verdicts'>): VNode {
  return (
    <table>
      <thead>
        <tr>
          <th>Promise</th>
          <th>Kept</th>
          <th>What was checked</th>
        </tr>
      </thead>
      <tbody>
        {verdicts.map(({ promise, judged, violations }) => (
          <tr key={promise}>
            <td>{promise}</td>
            <td>{violations.length === 0 ? 'yes' : <strong>no</strong>}</td>
            <td>
              {judged}
              {violations.length > 0 && (
                <ul>
                  {violations.slice(0, MOST_LISTED).map((violation) => (
                    <li key={violation}>{violation}</li>
                  ))}
                  {violations.length > MOST_LISTED && <li>and {violations.length - MOST_LISTED} more</li>}
                </ul>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Faults({ faults, begin }: { readonly faults: readonly FaultFigures[]; readonly begin: number }): VNode {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  return (
    <>
      <h2>Faults</h2>
      <table class="soak-faults">
        <thead>
          <tr>
            {['', 'Fault', 'At', 'Lasted', '503', 'No answer', 'Slowest', 'Last failure after it', 'Bound'].map(
              (head) => (
                <th key={head}>{head}</th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {faults.map((fault, index) => (
            <tr key={fault.start}>
              <td>{index + 1}</td>
              <td>{fault.name}</td>
              <td>{seconds(fault.start - begin)}</td>
              <td>{seconds(fault.end - fault.start)}</td>
              <td>{fault.unavailable}</td>
              <td>{fault.broken}</td>
              <td>{seconds(fault.slowest)}</td>
              <td>{fault.healedAfter > 0 ? seconds(fault.healedAfter) : 'none'}</td>
              <td>{seconds(fault.boundMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
