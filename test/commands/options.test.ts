import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { linkIdentity } from '../../src/accounts/identities.js';
import { addPasskey } from '../../src/accounts/passkeys.js';
import { writeFailures } from '../../src/usage/failed-requests.js';
import { startReceiver, type Receiver } from '../notices/receiver.js';
import { ROOT } from '../support/guides.js';
import { somePublicKey } from '../support/http/authenticator.js';
import { programCommands, runCommand } from '../support/programs/command.js';
import { toColumns } from '../support/keys/usage.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { testWorld } from '../support/world.js';

/** What arguments can name. It is made anew for each run. */
interface Names {
  readonly developer: number;
  /** The name of the developer's project. */
  readonly project: string;
  /** Of a key of this developer, on the plan "free". */
  readonly prefix: string;
  /** Of this developer. */
  readonly passkey: number;
  /** Titles, some of which are rejected. */
  readonly file: string;
  readonly folder: string;
}

/** What is added to the arguments, and a part of the outcome that is only there with it. */
type Effect = readonly [added: string, shown: RegExp];

interface Usage {
  /** The arguments without the option. One that is given twice has its second value. */
  readonly base?: (names: Names) => string;
  /** By the flag of the option. */
  readonly effects?: (names: Names) => Readonly<Record<string, Effect>>;
}

const IDENTITY = { issuer: 'https://id.example', subject: 'ann' } as const;

/** Of a table: its header and one row, or its header alone. */
const ONE_ROW = /^0\n[a-z][^\n]*\n[^\n]+\n$/;
const NO_ROW = /^0\n[a-z][^\n]*\n$/;

const ofDeveloper = ({ developer }: Names): string => String(developer);
const ofKey = ({ prefix }: Names): string => prefix;

/** Most commands have this option, and some only this one. */
const JSON_FLAG = { '--json': ['--json', /^\d\n\{\n/] } as const;

/** The commands that end by themselves. */
const USAGES: Readonly<Record<string, Usage>> = {
  health: {},
  migrate: {},
  import: {
    base: ({ file }) => `${file} --kind titles`,
    effects: () => ({
      '--kind': ['--kind people --column name=title', /people: 9 rows read/],
      '--format': ['--format ndjson', /JSON/],
      '--no-escapes': ['--no-escapes', /requires a TSV file/],
      '--column': ['--column title=svc_id', /",movie"/],
      '--value': ['--value media_type:film=movie', /4 created/],
      '--skip-unmapped': ['--skip-unmapped --value media_type:show=series', /3 skipped/],
      '--verbose': ['--verbose', /line 10/],
      '--strict': ['--strict', /^1\n/],
      '--max-rejected': ['--max-rejected 3', /^1\n/],
    }),
  },
  export: {
    base: () => '--kind people',
    effects: ({ folder }) => ({
      '--kind': ['--kind titles', /titles: \d+ rows written/],
      '--publish': [`--publish ${folder} --base-url https://catalog.example`, /^2\n/],
      '--base-url': ['--base-url https://catalog.example', /--base-url requires/],
      '--json': ['--json', /"rows": /],
    }),
  },
  'feed restart': {
    effects: () => ({
      '--yes': ['--yes', /^0\n/],
      '--after': [`--yes --after ${Math.floor(Date.now() / 1_000) + 7_200}`, /ahead of the database's clock/],
      '--json': ['--yes --json', /^0\n\{\n/],
    }),
  },
  'plans list': {},
  'plans set': {
    base: () => 'free',
    effects: () => ({
      '--name': ['--name Gratis', /Gratis/],
      '--per-minute': ['--per-minute 61', / 61 /],
      '--per-day': ['--per-day 10001', / 10001 /],
      '--commercial-use': ['--commercial-use', /yes$/m],
      '--no-commercial-use': ['--commercial-use --no-commercial-use --json', /"commercial_use": false/],
    }),
  },
  'developers create': {
    base: () => '--project-name One',
    effects: () => ({
      '--project-name': ['--project-name Two --json', /"project_name": "Two"/],
      '--attribution-required': ['--attribution-required --json', /"attribution_required": true/],
    }),
  },
  'developers list': {
    effects: ({ project }) => ({ '--search': [`--search ${project}`, ONE_ROW], '--limit': ['--limit 1', ONE_ROW] }),
  },
  'developers rename': { base: ({ developer }) => `${developer} Cinema` },
  'developers set-plan': {
    base: ({ developer }) => `${developer} --plan free`,
    effects: () => ({ '--plan': ['--plan pro', /plan pro/] }),
  },
  'developers suspend': { base: ofDeveloper },
  'developers reinstate': { base: ofDeveloper },
  'developers quotas': { base: ofDeveloper },
  'developers sign-in-link': {
    base: ofDeveloper,
    effects: () => ({ '--demo': ['--demo', /either the id of a developer or --demo/] }),
  },
  'developers link': {
    base: ({ developer }) => `${developer} --issuer ${IDENTITY.issuer} --subject ben-${developer}`,
    effects: ({ developer }) => ({
      '--issuer': [`--issuer https://other.example --json`, /other\.example/],
      '--subject': [`--subject cleo-${developer} --json`, /cleo/],
    }),
  },
  'developers unlink': {
    base: ({ developer }) => `${developer} --issuer ${IDENTITY.issuer} --subject ${IDENTITY.subject}-${developer}`,
    effects: () => ({
      '--issuer': [`--issuer https://other.example`, /^1\n/],
      '--subject': ['--subject ben', /^1\n/],
    }),
  },
  'developers identities': { base: ofDeveloper },
  'developers sign-out': { base: ofDeveloper },
  'developers passkeys': { base: ofDeveloper },
  'developers remove-passkey': { base: ({ developer, passkey }) => `${developer} ${passkey}` },
  'keys create': {
    base: ({ developer }) => `--developer ${developer} --plan free`,
    effects: () => ({
      '--developer': ['--developer 999999', /^1\n.*no developer 999999/],
      '--plan': ['--plan pro', /on plan pro/],
      '--label': ['--label laptop --json', /"label": "laptop"/],
      '--expires': ['--expires 2d', /it expires at/],
      '--demo': ['--demo', /cannot be used with/],
    }),
  },
  'keys list': {
    effects: ({ developer, prefix }) => ({
      '--developer': [`--developer ${developer}`, ONE_ROW],
      '--search': [`--search ${prefix}`, ONE_ROW],
      '--limit': ['--limit 1', ONE_ROW],
    }),
  },
  'keys roll': {
    base: ({ prefix }) => `${prefix} --overlap now`,
    effects: () => ({ '--overlap': ['--overlap 1h', /accepted until/] }),
  },
  'keys revoke': { base: ofKey },
  'keys set-plan': {
    base: ({ prefix }) => `${prefix} --plan free`,
    effects: () => ({ '--plan': ['--plan pro', /^0\nMoved/] }),
  },
  'keys set-label': { base: ({ prefix }) => `${prefix} laptop` },
  'keys set-expiry': { base: ({ prefix }) => `${prefix} 2d` },
  events: {
    effects: ({ developer }) => ({
      '--developer': [`--developer ${developer}`, new RegExp(`^0\n[^\n]*\n(?:\\S+ +${developer} [^\n]*\n)+$`)],
      '--limit': ['--limit 1', ONE_ROW],
    }),
  },
  'notices test': {},
  stats: {},
  'stats verify': { effects: () => ({ '--repair': ['--repair', /Repaired movies/] }) },
  usage: {
    effects: ({ developer }) => ({
      '--by-key': ['--by-key', /^0\nprefix/],
      '--developer': [`--developer ${developer}`, ONE_ROW],
      '--hours': ['--hours 1 --json', /"hours": 1/],
      '--days': ['--days 3 --json', /"days": 3/],
      '--sort': ['--sort server-errors --json', /"sort": "server-errors"/],
      '--limit': ['--hours 1 --limit 1', ONE_ROW],
    }),
  },
  requests: {
    base: ({ developer }) => `--developer ${developer}`,
    effects: () => ({
      '--developer': ['--developer 1', NO_ROW],
      '--request-id': ['--request-id first', ONE_ROW],
      '--limit': ['--limit 1', ONE_ROW],
    }),
  },
  'operator sign-in-link': {},
};

/** Where the other options are tested, which need a server or run until they are stopped. */
const ELSEWHERE: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  serve: { 'commands/lifecycle.test.ts': ['--migrate', '--demo'] },
  mirror: {
    'client/mirror/mirror-world.ts': ['--from', '--copies', '--once'],
    'client/mirror/mirror.test.ts': ['--interval'],
    'client/mirror/database.test.ts': ['--into', '--schema'],
    'client/mirror/copies/served.test.ts': ['--public-key'],
    'client/mirror/proof.test.ts': ['--allow-removals', '--metrics-address'],
  },
  'mirror verify': {
    'client/mirror/mirror-world.ts': ['--from', '--copies'],
    'client/mirror/database.test.ts': ['--into'],
    'client/mirror/copies/damaged.test.ts': ['--public-key'],
    'client/mirror/proof.test.ts': ['--allow-removals'],
    'client/mirror/verify.test.ts': ['--json', '--schema', '--repair'],
  },
};

describe('the options of the commands', () => {
  const world = testWorld({ redis: true });
  let environment: Readonly<Record<string, string>>;
  let runs = 0;

  before(async () => {
    const receiver: Receiver = await startReceiver(world);
    const { url } = await world.startService();
    environment = { ...world.environment, ...receiver.settings, PORT: new URL(url).port };
  });

  async function prepare(): Promise<Names> {
    const project = `club-${(runs += 1)}-`;
    const developer = await world.newDeveloper(project);
    const { prefix } = await world.newKey({ planId: 'free', developerId: developer });
    const passkey = await addPasskey(world.db, { developerId: developer }, { ...somePublicKey(), name: 'Laptop' });
    await linkIdentity(world.db, developer, { ...IDENTITY, subject: `${IDENTITY.subject}-${developer}` });
    const [keyId = 0] = await world.db('api_keys').where({ prefix }).pluck<number[]>('id');
    const failure = {
      method: 'GET',
      path: '/api/v1/me',
      operation: 'getMe',
      durationMs: 1,
      developerId: developer,
      keyId,
    };
    const error = { status: 429, code: 'rate_limit_exceeded', detail: 'Wait.' } as const;
    const failed = ['first', 'second'].map((requestId, at) => ({
      ...failure,
      ...error,
      requestId,
      at: Date.now() + at,
    }));
    await writeFailures(world.db, failed);
    const now = new Date();
    const hour = { period: 'hour', start: new Date(now.getTime() - (now.getTime() % 3_600_000)) };
    const counts = { successful: 1, clientErrors: 0, rateLimited: 0, serverErrors: 0 };
    await world.db('developer_usage').insert({ developer_id: developer, ...hour, ...toColumns(counts) });
    await world.db('catalog_counts').update({ movies: 77 });
    const folder = await temporaryFolder();
    const file = join(folder, 'titles.csv');
    const rows = ['movie', 'film', 'film', 'film'].map((type, row) => `${runs}-${row},${type},Title`);
    const rejected = Array.from({ length: 5 }, () => ',movie,Title');
    await writeFile(file, ['svc_id,media_type,title', ...rows, ...rejected].join('\n'));
    return { developer, project, prefix, passkey, file, folder };
  }

  /** Runs a command. @returns the exit code and all output */
  async function run(...args: readonly (string | undefined)[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(args.join(' ').trim().split(/ +/), environment);
    return `${code}\n${stdout}${stderr}`;
  }

  it('every option changes what its command does', async () => {
    const faults: string[] = [];
    for (const { name, command } of await programCommands()) {
      const usage = USAGES[name];
      const without = usage && (await run(name, usage.base?.(await prepare())));
      for (const flag of command.options.map(({ long }) => long ?? '')) {
        const names = await prepare();
        const [added, shown] = { ...JSON_FLAG, ...usage?.effects?.(names) }[flag] ?? [];
        if (without === undefined || added === undefined || shown === undefined) {
          const [file] = Object.entries(ELSEWHERE[name] ?? {}).find(([, flags]) => flags.includes(flag)) ?? [];
          const text = file && (await readFile(new URL(`test/${file}`, ROOT), 'utf8'));
          if (!text?.includes(flag)) faults.push(`${name} ${flag} is not tested`);
          continue;
        }
        const changed = await run(name, usage?.base?.(names), added);
        if (shown.test(without)) faults.push(`${name} without ${flag}: ${without}`);
        if (!shown.test(changed)) faults.push(`${name} with ${flag}: ${changed}`);
      }
    }
    assert.deepEqual(faults, []);
  });
});
