import assert from 'node:assert/strict';
import { startService, type TestService } from '../support/service.js';
import { CLIENTS } from './clients.js';
import { consumer, createConsumerProject, type ConsumerProject, type Ended } from './project.js';
import { startRecordingProxy, type RecordingProxy } from '../support/proxies/recording-proxy.js';

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

/** What a program in `consumers/` must print. */
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
        id: 'test',
        name: 'Test',
        requests_per_minute: 2_000_000_000,
        requests_per_day: 2_000_000_000,
        commercial_use: true,
      },
      attribution_required: true,
    },
    plan: 'TEST',
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
    tooOld: 'since_out_of_window: go on from oldest_since',
    milliseconds: 'invalid_since: Parameter since invalid',
  };
}

/** The first line of each error of a compilation: the others go into details. */
function linesOf({ stdout }: Ended): string[] {
  return stdout.split('\n').filter((line) => /^\S/.test(line));
}

describe('a client made from the contract', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
    await fill(service);
  });

  after(async () => {
    await service.stop();
  });

  for (const client of CLIENTS) {
    describe(`by ${client.generator}`, () => {
      let project: ConsumerProject;
      let compiled: Ended;
      let proxy: RecordingProxy;

      before(async () => {
        proxy = await startRecordingProxy(service.url);
        project = await createConsumerProject(client.compilerOptions);
        await client.generate(project);
        const program = await consumer(client.consumer);
        await project.write('program.ts', program);
        for (const [index, { right, wrong }] of client.mistakes.entries()) {
          const mistaken = program.replace(right, () => wrong);
          assert.notEqual(mistaken, program, `the program does not have: ${right}`);
          await project.write(`mistake-${index}.ts`, mistaken);
        }
        // Together, since most of the time goes into reading the libraries.
        compiled = await project.compile(
          'program.ts',
          ...client.mistakes.map((_mistake, index) => `mistake-${index}.ts`),
        );
      });

      after(async () => {
        await proxy.stop();
        await project.remove();
      });

      it('compiles with all strictness, and so does a program that uses it', () => {
        assert.equal(compiled.stderr, '');
        assert.deepEqual(
          linesOf(compiled).filter((line) => !/^mistake-\d+\.ts\(/.test(line)),
          [],
        );
      });

      it('does not compile with a mistake in that program', () => {
        const lines = linesOf(compiled);
        const found = client.mistakes.map(({ right, wrong, error }, index) => {
          const said = lines.filter((line) => line.startsWith(`mistake-${index}.ts(`));
          return said.some((line) => error.test(line)) ? 'found' : `${right} → ${wrong}: ${said.join('; ')}`;
        });
        assert.deepEqual(
          found,
          client.mistakes.map(() => 'found'),
        );
      });

      it('reads the running service', async () => {
        const start = Math.floor(Date.now() / 1000) - HOUR_S;
        const settings = { BASE_URL: proxy.url, API_KEY: service.key, SINCE: String(start) };
        const { code, stdout, stderr } = await project.run('program.js', settings);
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });

        assert.deepEqual(JSON.parse(stdout), await expectedReport(service));

        // fetch asks by itself: the two full pages and the third came compressed, the empty one and errors did not.
        const changes = proxy.requests.filter(({ path }) => path.startsWith('/api/v1/changes'));
        assert.deepEqual(
          changes.map(({ coding }) => coding),
          ['gzip', 'gzip', 'gzip', undefined, undefined, undefined],
        );

        const sentKeys = proxy.requests.map(({ path, headers }) => ({
          authorization: headers.authorization,
          inAddress: path.includes('api_key'),
        }));
        const strangers = sentKeys.filter(({ authorization }) => authorization === 'Bearer svc_unknown');
        assert.equal(strangers.length, 1);
        const expected = { authorization: `Bearer ${service.key}`, inAddress: false };
        assert.deepEqual(
          sentKeys.filter(({ authorization }) => authorization !== 'Bearer svc_unknown'),
          Array.from({ length: sentKeys.length - 1 }, () => expected),
        );
      });
    });
  }
});
