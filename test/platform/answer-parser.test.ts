import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import pg from 'pg';
import { Parser } from 'pg-protocol/dist/parser.js';
import { AnswerParser } from '../../src/platform/answer-parser.js';
import { poolOf } from '../../src/platform/database.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';

/** ASCII and not, short and long, and what is none or nothing. */
const TEXTS = ['', 'a', 'naïve', '七人の侍', '🎬', 'é'.repeat(40), 'plain', '\u007f\u0080', 'x'.repeat(5_000), null];

const ROWS = `select n, t as "Títel", n % 2 = 0 as even, 1.5::numeric, '{1,ü}'::text[] as list
                from unnest($1::text[]) with ordinality as u (t, n)`;

describe('the parser of answers', () => {
  let database: OpenTestDatabase;
  before(async () => (database = await openTestDatabase()));
  after(() => database.close());

  /** Everything that a server sends during some queries, as bytes. */
  async function recordAnswers(): Promise<Buffer> {
    const client = new pg.Client(database.url);
    const chunks: Buffer[] = [];
    await client.connect();
    (client.connection.stream as Readable).on('data', (chunk: Buffer) => chunks.push(chunk));
    await client.query({ name: 'rows', text: ROWS, values: [TEXTS] });
    await client.query('listen "Kanal_ü"; notify "Kanal_ü", \'Grüße\'');
    await assert.rejects(client.query('select "Größe"'));
    await client.end();
    return Buffer.concat(chunks);
  }

  function parse(parser: Pick<Parser, 'parse'>, chunks: readonly Buffer[]): unknown[] {
    const messages: unknown[] = [];
    for (const chunk of chunks) {
      // The parser writes into what it is given.
      parser.parse(Buffer.from(chunk), (message) => messages.push(message));
    }
    return messages;
  }

  it('finds the same messages as the one of the driver, wherever the stream is cut', async () => {
    const answers = await recordAnswers();
    const expected = parse(new Parser(), [answers]);
    const names = new Set(expected.map((message) => (message as { name: string }).name));
    for (const name of ['rowDescription', 'dataRow', 'notification', 'error', 'commandComplete', 'readyForQuery']) {
      assert.ok(names.has(name), name);
    }
    assert.ok(JSON.stringify(expected).includes('七人の侍'));
    for (let size = 1; size <= 200; size += 1) {
      const chunks = [];
      for (let at = 0; at < answers.length; at += size) chunks.push(answers.subarray(at, at + size));
      assert.deepEqual(parse(new AnswerParser(), chunks), expected, `in chunks of ${size}`);
    }
    assert.deepEqual(parse(new AnswerParser(), [answers]), expected);
  });

  it('does not mind that the driver keeps what arrives in one buffer, over and over', async () => {
    const answers = await recordAnswers();
    const cut = Math.floor(answers.length / 2);
    const [parser, drivers] = [new AnswerParser(), new Parser()];
    for (let i = 0; i < 20; i += 1) {
      const chunks = [answers.subarray(0, cut + i), answers.subarray(cut + i)];
      assert.deepEqual(parse(parser, chunks), parse(drivers, chunks));
    }
  });

  it('serves the connections of a pool', async () => {
    const { rows } = await poolOf(database.db).query<{ Títel: string }>({ text: ROWS, values: [TEXTS] });
    assert.deepEqual(
      rows.map((row) => row['Títel']),
      TEXTS,
    );
    await assert.rejects(poolOf(database.db).query({ text: 'select "Größe"' }), /column "Größe" does not exist/);
  });
});
