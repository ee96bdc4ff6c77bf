import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import type { CommandContext } from '../../src/commands/context.js';
import { reportRows, type RowChunks } from '../../src/commands/output/report.js';
import { table } from '../../src/commands/output/table.js';
import { runCommand } from '../support/programs/command.js';
import { testWorld } from '../support/world.js';

interface Row {
  readonly id: number;
  readonly name: string;
}

const COLUMNS = { id: ({ id }: Row) => id, name: ({ name }: Row) => name };

describe('lists of commands', () => {
  /** Writes rows as a command does. @param take - takes each text that is written; an error is that of the output */
  function write(
    parts: RowChunks<Row>,
    json: boolean,
    take: (text: string) => Error | undefined,
    signal = new AbortController().signal,
  ): Promise<void> {
    const stdout = new Writable({
      decodeStrings: false,
      write: (text: string, _encoding, done) => done(take(text)),
    });
    stdout.on('error', () => undefined);
    const withDatabase = ((use: (db: undefined) => unknown) => use(undefined)) as unknown;
    const context = { stdout, signal, withDatabase } as unknown as CommandContext;
    return reportRows(context, json, () => parts, { name: 'rows', columns: COLUMNS, members: { days: 1 } });
  }

  async function written(rows: readonly Row[], json: boolean): Promise<string[]> {
    const texts: string[] = [];
    await write([Promise.resolve(rows)], json, (text) => void texts.push(text));
    return texts;
  }

  const rowsUpTo = (count: number): Row[] =>
    Array.from({ length: count }, (_, index) => ({ id: index + 1, name: `row "${index + 1}"` }));

  /** Rows without an end, as far as their reader wants them. */
  async function* endless(): AsyncGenerator<readonly Row[]> {
    for (;;) yield await Promise.resolve(rowsUpTo(3));
  }

  it('a list of any length is one table or one JSON document, written in parts', async () => {
    for (const count of [0, 1, 1_000, 1_001, 150_000]) {
      const rows = rowsUpTo(count);
      const texts = await written(rows, true);
      assert.equal(texts.join(''), `${JSON.stringify({ days: 1, rows }, null, 2)}\n`, String(count));
      const lines = (await written(rows, false)).join('').split('\n');
      assert.deepEqual(
        lines.map((line) => line.split(/ {2,}/)),
        [['id', 'name'], ...rows.map(({ id, name }) => [String(id), name]), ['']],
      );
      const longest = Math.max(0, ...texts.map(({ length }) => length));
      assert.ok(longest < 100_000, `${longest} characters were held at once`);
    }
  });

  it('a signal ends a list, also one that is being written', async () => {
    for (const json of [true, false]) {
      const stopping = new AbortController();
      let texts = 0;
      const take = (): undefined => {
        if (++texts === 9) stopping.abort();
      };
      await assert.rejects(
        write(endless(), json, take, stopping.signal),
        /^OperatorError: Interrupted\. The list is not/,
      );
      assert.equal(texts, 9);
    }
  });

  it('a list ends with its reader', async () => {
    let texts = 0;
    await write(endless(), false, () => (++texts === 9 ? Object.assign(new Error(), { code: 'EPIPE' }) : undefined));
    assert.equal(texts, 9);
  });

  it('columns are as wide as what they show, in columns of a terminal', () => {
    const rows = [
      { id: 1, name: '電影俱樂部' },
      { id: 22, name: 'e\u0301te\u0301' },
    ];
    const columns = { name: COLUMNS.name, id: COLUMNS.id };
    assert.equal(table(rows, columns), 'name        id\n電影俱樂部  1\ne\u0301te\u0301         22');
    assert.equal(
      table(rows, columns, { isTTY: true, columns: 13 }),
      'name       id\n電影俱…    1\ne\u0301te\u0301        22',
    );
  });

  describe('of a database', () => {
    const world = testWorld();
    const KEYS = 2_100;

    before(async () => {
      await world.db.raw(`insert into developers (project_name) select 'Club ' || i from generate_series(1, :KEYS) i`, {
        KEYS,
      });
      await world.db.raw(
        `insert into api_keys (prefix, hash, developer_id, plan_id, label)
         select 'svc_' || lpad(id::text, 8, '0'), sha256(id::text::bytea), case when id % 2 = 0 then 1 else id end,
                'free', 'Label ' || id
           from developers`,
      );
    });

    /** @returns what a list has in a column of JSON */
    async function list(command: string, name: string, member: string): Promise<unknown[]> {
      const { code, stdout, stderr } = await runCommand([...command.split(' '), '--json'], { DATABASE_URL: world.url });
      assert.deepEqual([code, stderr], [0, '']);
      return (JSON.parse(stdout) as Record<string, Record<string, unknown>[]>)[name]?.map((row) => row[member]) ?? [];
    }

    it('keys, developers and events are all listed once, in order, or as many as are wanted', async () => {
      const ids = await world.db('developers').orderBy('id').pluck<number[]>('id');
      const prefixes = await world.db('api_keys').orderBy('id').pluck<string[]>('prefix');
      const ofOne = await world.db('api_keys').where({ developer_id: 1 }).orderBy('id').pluck<string[]>('prefix');
      const kinds = await world
        .db('events')
        .orderBy('at', 'desc')
        .orderBy('id', 'desc')
        .pluck<(string | null)[]>('key_prefix');
      for (const [command, name, member, expected] of [
        ['developers list', 'developers', 'id', ids],
        ['developers list --limit 1001', 'developers', 'id', ids.slice(0, 1_001)],
        ['developers list --search CLUB --limit 2', 'developers', 'id', ids.slice(0, 2)],
        ['developers list --search ub_2', 'developers', 'id', []],
        ['keys list', 'keys', 'key_prefix', prefixes],
        ['keys list --limit 2000', 'keys', 'key_prefix', prefixes.slice(0, 2_000)],
        ['keys list --developer 1', 'keys', 'key_prefix', ofOne],
        ['keys list --developer 1 --search lABEl --limit 3', 'keys', 'key_prefix', ofOne.slice(0, 3)],
        ['keys list --search SVC_00002099', 'keys', 'key_prefix', ['svc_00002099']],
        ['events --limit 9000', 'events', 'key_prefix', kinds],
        ['events --limit 1001', 'events', 'key_prefix', kinds.slice(0, 1_001)],
      ] as const) {
        assert.deepEqual(await list(command, name, member), expected, command);
      }
    });
  });
});
