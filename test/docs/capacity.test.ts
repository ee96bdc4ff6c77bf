import assert from 'node:assert/strict';
import { readGuide, tableOf } from '../support/guides.js';

const PARTS = ['service', 'postgres', 'redis'] as const;
type Part = (typeof PARTS)[number];
type Costs = Readonly<Record<Part, number>>;

/** The part of its maximum rate that a process is planned for, and the part of its core that Redis is. */
const PROCESS_LOAD = 0.6;
const REDIS_LOAD = 0.8;

const CORES_OF_MACHINE = 4;

/** By default, with the connection that listens. */
const CONNECTIONS_OF_PROCESS = 11;

const FULL_PAGE = '/changes, a full page';

/** @returns the number that a text has first, without separators */
function numberIn(text = ''): number {
  return Number(/[\d.,]+/.exec(text)?.[0].replaceAll(',', '').replace(/\.$/, ''));
}

/** @returns a number with two significant digits */
function about(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString('en-US');
}

describe('the capacity in the performance guide', () => {
  let guide: string;
  /** In microseconds, of an average request: while the server answers as many as it can, and at the planned load. */
  let saturated: Costs;
  let planned: Costs;
  let responseBytes: number;

  function numberAfter(pattern: RegExp): number {
    return numberIn(pattern.exec(guide)?.[1] ?? assert.fail(`no ${pattern.source}`));
  }

  before(async () => {
    guide = (await readGuide('performance')).replace(/(?<=\S)\n(?=\S)/g, (_, at, all: string) =>
      all[Number(at) + 1] === '|' ? '\n' : ' ',
    );
    const costs = new Map(tableOf(guide, 'What a request costs').map(([what = '', ...cells]) => [what, cells]));
    const shares = tableOf(guide, 'An average request').map(
      ([what = '', share]) => [what, numberIn(share) / 100] as const,
    );
    assert.equal(shares.reduce((sum, [, share]) => sum + share, 0).toFixed(6), '1.000000');
    const average = (part: number): number =>
      shares.reduce((sum, [what, share]) => {
        const cell = costs.get(what)?.[part] ?? assert.fail(`no costs of ${what}`);
        return sum + share * (cell === 'none' ? 0 : numberIn(cell));
      }, 0);
    saturated = { service: average(0), postgres: average(1), redis: average(2) };
    planned = {
      service: saturated.service * numberAfter(/takes ([\d.]+) times as much of the service/),
      postgres: saturated.postgres * numberAfter(/, ([\d.]+) times as much of PostgreSQL/),
      redis: saturated.redis * numberAfter(/ ([\d.]+) times as much of Redis/),
    };
    const pages = shares.find(([what]) => what === FULL_PAGE)?.[1] ?? 0;
    responseBytes =
      (1 - pages) * numberAfter(/A response has ([\d,]+) bytes/) + pages * numberAfter(/a full page ([\d,]+)/);
  });

  /** What an installation needs, by the names of the guide's rows. */
  function needs(rate: number): Record<string, string> {
    const processes = Math.ceil(rate / ((PROCESS_LOAD * 1e6) / saturated.service));
    const machines = Math.ceil(processes / CORES_OF_MACHINE) + 1;
    const onEach = Math.min(processes, CORES_OF_MACHINE);
    const redis = (rate * planned.redis) / 1e6;
    return {
      'server processes, a core each': String(processes),
      'machines of four cores, of which one may fail': String(machines),
      'connections to PostgreSQL': String(machines * onEach * CONNECTIONS_OF_PROCESS),
      PostgreSQL: `${about((rate * planned.postgres) / 1e6)} cores`,
      'Redis, all together': `${about(redis)} cores`,
      'deployments, by Redis': String(Math.ceil(redis / REDIS_LOAD)),
      responses: `${about((rate * responseBytes) / 1e6)} MB/s`,
      'log a day': `${about((rate * 86_400 * numberAfter(/a line of the log (\d+)/)) / 1e9)} GB`,
    };
  }

  it('what installations need follows from the costs of requests', () => {
    const [, heading = ''] = /\n\| requests a second +\|(.+)\n/.exec(guide) ?? [];
    const computed = heading
      .split('|')
      .slice(0, -1)
      .map((rate) => needs(numberIn(rate)));
    assert.equal(computed.length, 3);
    assert.deepEqual(
      tableOf(guide, 'What larger installations need'),
      Object.keys(computed[0] ?? {}).map((name) => [name, ...computed.map((each) => each[name])]),
    );
  });

  it('what saturates first follows from the costs of requests', () => {
    const limits = new Map(tableOf(guide, 'What saturates first').map(([what = '', at]) => [what, numberIn(at)]));
    assert.equal(limits.get('a server process'), Number((1e6 / saturated.service).toPrecision(2)));
    assert.equal(limits.get('Redis'), Number((1e6 / planned.redis).toPrecision(2)));
    assert.equal(limits.get('writers'), numberAfter(/one writer makes ([\d,]+) single-row commits/));
  });

  it('the metrics that show a limit before it is reached exist', async () => {
    const shown = new Set(guide.match(/\bcatalog_\w+/g));
    const listed = new Set(
      tableOf(await readGuide('operators/monitor'), 'Metrics')
        .join()
        .match(/\bcatalog_\w+/g),
    );
    assert.ok(shown.size >= 4);
    assert.deepEqual(
      [...shown].filter((name) => !listed.has(name)),
      [],
    );
  });
});
