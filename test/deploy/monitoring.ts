import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import { ROOT } from '../support/guides.js';

/** The rules of the service and those of mirrors. */
export const RULES = ['alerts.yaml', 'mirror-alerts.yaml'].map((name) => new URL(`.deploy/prometheus/${name}`, ROOT));
export const CASES = RULES.map(({ href }) => new URL(href.replace('.yaml', '.test.yaml')));
const DASHBOARD = new URL('.deploy/grafana/dashboard.json', ROOT);

/** An alerting rule of Prometheus, as far as tests look at it. */
export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url: string };
}

/** Returns the alerts in the order of their files. */
export async function readAlerts(): Promise<readonly Alert[]> {
  const files = await Promise.all(RULES.map((file) => readFile(file, 'utf8')));
  return files.flatMap((text) => (load(text) as { groups: { rules: Alert[] }[] }).groups.flatMap(({ rules }) => rules));
}

/** Returns the queries of all panels of the dashboard, as Grafana sends them, with values for its variables. */
export async function readDashboardQueries(): Promise<readonly string[]> {
  const { panels } = JSON.parse(await readFile(DASHBOARD, 'utf8')) as { panels: { targets?: { expr: string }[] }[] };
  return panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }) =>
      expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'catalog').replaceAll('$instance', '.*'),
    ),
  );
}

/** A metric of the service in a query, with the names of the labels that its selector compares. */
export interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
}

/** Labels that Prometheus adds to each series. */
const LABELS_OF_TARGETS = ['job', 'instance'];

/** Returns the selectors of a query that name a metric of the service or of Node.js. */
export function selectorsIn(query: string): Selector[] {
  return [...query.matchAll(/\b((?:catalog|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, metric = '', matchers = '']) => ({
      metric,
      labels: [...matchers.matchAll(/(\w+)\s*[=!]~?\s*"/g)]
        .map(([, label = '']) => label)
        .filter((label) => !LABELS_OF_TARGETS.includes(label)),
    }),
  );
}
