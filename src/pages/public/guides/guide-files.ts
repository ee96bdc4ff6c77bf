import { readFile } from 'node:fs/promises';

/** A guide as the list of guides has it. */
interface ListedGuide {
  /** The path of its file in this folder, without `.md`; also the end of its address. */
  readonly name: string;
  /** One sentence, for lists and search engines. */
  readonly description: string;
  readonly audience: Audience;
}

/** Whom a guide is for: developers call the service, operators run it. */
type Audience = 'developers' | 'operators';

/** What each guide is about, by its audience and its name, in reading order. */
const DESCRIPTIONS: Readonly<Record<Audience, Readonly<Record<string, string>>>> = {
  developers: {
    'calling-the-api': 'Keys, limits, caching and errors, for developers whose back ends call the service.',
    'generate-an-sdk': 'Turn the contract into a typed client, in TypeScript and other languages.',
    mirroring: 'Keep a copy of the catalogue that never misses a change.',
    'contract-tests': 'Check a deployment against its contract with Dredd or Schemathesis.',
    'developer-settings': 'Sign in, manage your keys, and read your usage and events.',
    'leaked-keys': 'Recognise and revoke a key that was found, by hand or from a secret scanner.',
    changes: 'What each version changes for callers, mirrors and operators, and what never changes.',
  },
  operators: {
    'operators/install': 'Go from a checkout to a server on your own PostgreSQL, with a proxy and file limits.',
    'operators/configure': 'Every setting, with PostgreSQL, its roles and poolers, and Redis.',
    'operators/keys-and-developers': 'Register developers; create, roll and revoke keys; change plans.',
    'operators/sign-in': 'One-time links, OpenID Connect, and sessions.',
    'operators/catalogue': 'Import files, export copies for mirrors, and check the counts.',
    'operators/publish-copies':
      'Signed copies of the catalogue, on a timer, from which mirrors start and check themselves.',
    'operators/writing-in-sql': 'Tables, rules and roles for programs that write to the database.',
    'operators/scale-out': 'More cores, more machines, a balancer and a read replica.',
    'operators/operator-pages':
      'See the state of the service and its developers in your browser, on the internal address.',
    'operators/monitor': 'Probes, metrics with their alerts, and the log.',
    'operators/notices': 'A signed webhook for expiring and leaked keys, used-up quotas, and lost components.',
    'operators/runbook': 'Symptoms, what to check, and what to do.',
    'operators/failover': 'Promote a standby without losing revocations.',
    'operators/backup-and-restore': 'Back up PostgreSQL, restore it, and restart the feed.',
    'operators/upgrade': 'Replace servers without downtime, shut them down cleanly, and check a deployment.',
    performance: 'What a request costs, how the service grows, and how that was measured.',
  },
};

/** The guides in reading order, which the links to the previous and the next guide follow. */
export const GUIDES: readonly ListedGuide[] = (Object.keys(DESCRIPTIONS) as Audience[]).flatMap((audience) =>
  Object.entries(DESCRIPTIONS[audience]).map(([name, description]) => ({ name, description, audience })),
);

/** The guides whose readers call the service from outside: their commands name the public URL. */
export const FOR_CALLERS = ['calling-the-api', 'generate-an-sdk', 'mirroring', 'contract-tests'];

/** A guide with its text. */
export interface Guide extends ListedGuide {
  /** The first heading of its text. */
  readonly title: string;
  /** CommonMark, without the title. */
  readonly text: string;
}

/** @returns the guides for each audience, in reading order */
export function byAudience(guides: readonly Guide[]): { audience: Audience; label: string; group: readonly Guide[] }[] {
  return (Object.keys(DESCRIPTIONS) as Audience[]).map((audience) => ({
    audience,
    label: `For ${audience}`,
    group: guides.filter((guide) => guide.audience === audience),
  }));
}

/** Reads the guides. @param packageRoot - the folder of this package's package.json */
export async function readGuides(packageRoot: string): Promise<readonly Guide[]> {
  const guides = GUIDES.map(async (guide): Promise<Guide> => {
    const text = await readFile(`${packageRoot}/src/pages/public/guides/${guide.name}.md`, 'utf8');
    const end = text.indexOf('\n');
    return { ...guide, title: text.slice('# '.length, end), text: text.slice(end + 1) };
  });
  return Promise.all(guides);
}
