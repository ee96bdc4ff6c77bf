import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import type { Readable } from 'node:stream';
import { mock } from 'node:test';
import pg from 'pg';
import { BufferReader } from 'pg-protocol/dist/buffer-reader.js';
import { Parser } from 'pg-protocol/dist/parser.js';
import { AnswerParser } from '../../src/platform/answer-parser.js';
import { isDatabaseUnavailable, poolOf } from '../../src/platform/database.js';
import { ListeningClient } from '../../src/platform/pooled-connection.js';
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
    await client.query('do $$ begin raise notice $n$Größe$n$; end $$');
    await client.query('listen "Kanal_ü"; notify "Kanal_ü", \'Grüße\'');
    await assert.rejects(client.query('select "Größe"'));
    await client.end();
    return Buffer.concat(chunks);
  }

  function inChunks(bytes: Buffer, size: number): Buffer[] {
    return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
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
    for (const name of [
      'rowDescription',
      'dataRow',
      'notice',
      'notification',
      'error',
      'commandComplete',
      'readyForQuery',
    ]) {
      assert.ok(names.has(name), name);
    }
    assert.ok(JSON.stringify(expected).includes('七人の侍'));
    for (let size = 1; size <= 200; size += 1) {
      assert.deepEqual(parse(new AnswerParser(), inChunks(answers, size)), expected, `in chunks of ${size}`);
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

  it('goes on where much has arrived, and the driver has moved it from one buffer to another', async () => {
    const texts = [
      'x'.repeat(300_000),
      ...Array.from({ length: 3_000 }, (_, i) => `${i} ${i % 7 === 0 ? 'ß' : 's'} a title`),
    ];
    const client = new pg.Client(database.url);
    const chunks: Buffer[] = [];
    await client.connect();
    (client.connection.stream as Readable).on('data', (chunk: Buffer) => chunks.push(chunk));
    await client.query({ text: ROWS, values: [texts] });
    await client.end();
    const answers = Buffer.concat(chunks);
    const expected = parse(new Parser(), [answers]);
    for (const size of [1_000, 65_536, 70_001]) {
      assert.deepEqual(parse(new AnswerParser(), inChunks(answers, size)), expected, `in chunks of ${size}`);
    }
    assert.deepEqual(parse(new AnswerParser(), [answers]), expected);
  });

  it('gives a connection up where a message of the server is broken, and nothing else', async () => {
    for (const broken of [
      // A row of one field that has no length, one whose field is longer than what has come, an error that does not end.
      [68, 0, 0, 0, 6, 0, 1],
      [68, 0, 0, 0, 12, 0, 1, 0, 0, 9, 9, 88, 88],
      [69, 0, 0, 0, 6, 77, 88],
    ]) {
      assert.throws(() => parse(new AnswerParser(), [Buffer.from(broken)]), /Connection terminated: .* too early/);
      const client = new ListeningClient(database.url);
      await client.connect();
      const ended = new Promise((resolve) => client.once('end', resolve));
      const query = client.query('select pg_sleep(10)');
      client.connection.stream.emit('data', Buffer.from(broken));
      await assert.rejects(query, (error) => isDatabaseUnavailable(error));
      await ended;
    }
  });

  it('comes from the package that the driver uses', () => {
    const here = createRequire(import.meta.url);
    const drivers = createRequire(here.resolve('pg'));
    assert.equal(drivers.resolve('pg-protocol'), here.resolve('pg-protocol'));
  });

  it('reads in its own way, in the place where the driver has its reader', () => {
    const readerOf = (parser: object): unknown => (parser as { reader?: unknown }).reader;
    assert.ok(readerOf(new Parser()) instanceof BufferReader);
    assert.ok(!(readerOf(new AnswerParser()) instanceof BufferReader));
  });

  it('serves the connections of a pool', async () => {
    const spy = mock.method(AnswerParser.prototype, 'parse');
    after(() => {
      spy.mock.restore();
    });
    const { rows } = await poolOf(database.db).query<{ Títel: string }>({ text: ROWS, values: [TEXTS] });
    assert.deepEqual(
      rows.map((row) => row['Títel']),
      TEXTS,
    );
    await assert.rejects(poolOf(database.db).query({ text: 'select "Größe"' }), /column "Größe" does not exist/);
    assert.ok(spy.mock.callCount() > 0);
  });
});
