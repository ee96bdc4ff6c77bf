import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startDemoService, type DemoService } from '../support/catalog/demo-service.js';
import { startProxy } from '../support/proxies/altering-proxy.js';
import { execute } from '../support/programs/execute.js';
import { startService, type TestService } from '../support/service.js';
import { CLIENTS } from './clients.js';
import { compile, followGuide, type ConsumerProject } from './project.js';

/** For two generators and the compiler, on a busy machine. */
const TIMEOUT_MS = 3_600_000;

/** Two full pages, and a third. */
const TITLES = 460;

const HOUR_S = 3600;

interface Entry {
  readonly svc_id: string;
  readonly media_type: string;
  readonly title: string;
  readonly updated_at: string;
  readonly has_bundles: boolean;
}

async function fill({ db }: TestService): Promise<void> {
  await db.raw(
    `insert into titles (svc_id, media_type, title, has_bundles, available_in_library)
     select 'title-' || n, case when n % 4 = 0 then 'series' else 'movie' end, 'Title ' || n, n % 3 = 0, n % 5 = 0
     from generate_series(1, ?) n`,
    [TITLES],
  );
  await db.raw(`insert into people (svc_id, name) values ('p1', 'A person'), ('p2', 'Another')`);
  await db.raw(`insert into collections (svc_id, name) values ('c1', 'A collection')`);
}

/** The expected output of a program in `consumers/`. */
async function expectedReport({ db, key }: TestService): Promise<unknown> {
  const { rows: entries } = await db.raw<{ rows: Entry[] }>(
    `select svc_id, media_type, title, has_bundles,
            to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as updated_at
     from titles order by titles.updated_at`,
  );
  const last = await db('titles')
    .select(db.raw('extract(epoch from max(updated_at))::text as position'))
    .first<{ position: string }>();
  return {
    stats: {
      titles: TITLES,
      movies: 345,
      series: 115,
      available_in_library: 92,
      people: 2,
      svc_collections: 1,
    },
    people: '2',
    revalidated: 304,
    me: {
      project_name: 'Test project',
      key_prefix: key.slice(0, 'svc_'.length + 8),
      plan: {
        id: 'unlimited',
        name: 'Unlimited',
        requests_per_minute: 2_000_000_000,
        requests_per_day: 2_000_000_000,
        commercial_use: true,
      },
      attribution_required: true,
    },
    plan: 'UNLIMITED',
    stranger: 'invalid_api_key',
    pages: [entries.slice(0, 200), entries.slice(200, 400), entries.slice(400)],
    movies: 345,
    afterTheLast: {
      entries: [],
      since: Number(last.position),
      hasMore: false,
    },
    title: { ...entries[0], available_in_library: false, created_at: entries[0]?.updated_at },
    unknown: [404, 'No such title'],
    tooOld: 'since_out_of_window: continue from oldest_since',
    milliseconds: 'invalid_since: Parameter since invalid',
  };
}

/** The name of a program with one of the mistakes. */
const mistakeFile = (consumer: string, index: number): string => `${consumer}-mistake-${index}.ts`;

describe('the clients of the guide to generating an SDK', () => {
  let demo: DemoService;
  let service: TestService;
  let project: ConsumerProject;
  /** The errors of the compiler. */
  let errors: string[];

  before(async function () {
    this.timeout(TIMEOUT_MS);
    [demo, service] = await Promise.all([startDemoService(), startService()]);
    await fill(service);
    project = await followGuide(demo.service, demo.key);
    const files = [...project.programs];
    const write = async (name: string, text: string): Promise<void> => {
      files.push(name);
      await writeFile(join(project.folder, name), text);
    };
    const readConsumer = (name: string) => readFile(new URL(`consumers/${name}.ts.txt`, import.meta.url), 'utf8');
    for (const { consumer, mistakes } of CLIENTS) {
      const program = (await readConsumer(consumer)) + (await readConsumer('report'));
      await write(`${consumer}.ts`, program);
      for (const [index, { right, wrong }] of mistakes.entries()) {
        const mistaken = program.replace(right, () => wrong);
        assert.notEqual(mistaken, program, `the program does not have: ${right}`);
        await write(mistakeFile(consumer, index), mistaken);
      }
    }
    // Together, since most of the time goes into reading the libraries.
    const { stdout, stderr } = await compile(project, files);
    assert.equal(stderr, '');
    // The first line of each, without its details.
    errors = stdout.split('\n').filter((line) => /^\S/.test(line));
  });

  after(async () => {
    await demo.service.stop();
    await service.stop();
  });

  it('the commands and programs of the guide, pasted in order, print what it shows', () => {
    assert.deepEqual(
      new Set(project.packages),
      new Set(['openapi-fetch', 'openapi-typescript', 'typescript@5', 'tsx', '@types/node', '@hey-api/openapi-ts']),
    );
    assert.equal(project.outputs.length, 2);
    for (const { shown, printed } of project.outputs) assert.equal(printed, shown);
  });

  it('the generated clients and the programs that use them compile in strict mode', () => {
    assert.deepEqual(
      errors.filter((line) => !line.includes('-mistake-')),
      [],
    );
  });

  for (const { generator, consumer, mistakes } of CLIENTS) {
    it(`a mistake in a program that uses a client generated by ${generator} does not compile`, () => {
      const found = mistakes.map(({ right, wrong, error }, index) => {
        const those = errors.filter((line) => line.startsWith(`${mistakeFile(consumer, index)}(`));
        return those.some((line) => error.test(line)) ? 'found' : `${right} → ${wrong}: ${those.join('; ')}`;
      });
      assert.deepEqual(
        found,
        mistakes.map(() => 'found'),
      );
    });

    it(`a client generated by ${generator} reads the running service`, async () => {
      const sent: { readonly authorization: string | undefined; readonly path: string | undefined }[] = [];
      const proxy = await startProxy(service.url, (response, _mark, { url: path, headers }) => {
        sent.push({ authorization: headers.authorization, path });
        return response;
      });
      try {
        const since = String(Math.floor(Date.now() / 1000) - HOUR_S);
        const settings = { BASE_URL: proxy.url, API_KEY: service.key, SINCE: since };
        const { code, stdout, stderr } = await execute(process.execPath, [`${consumer}.js`], project.folder, settings);
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        assert.deepEqual(JSON.parse(stdout), await expectedReport(service));
      } finally {
        await proxy.stop();
      }
      const [strangers, own] = ['svc_unknown', service.key].map((key) =>
        sent.filter(({ authorization }) => authorization === `Bearer ${key}`),
      );
      assert.deepEqual([strangers?.length, own?.length], [1, sent.length - 1]);
      assert.ok(sent.every(({ path }) => !path?.includes('api_key')));
    });
  }
});
