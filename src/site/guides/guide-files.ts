import { readFile } from 'node:fs/promises';

/** Where the guides are on the site. */
export const GUIDES_PATH = '/docs/guides';

/** A guide as the list of guides has it. */
interface ListedGuide {
  /** The path of its file in this folder, without `.md`; also the end of its address. */
  readonly name: string;
  readonly title: string;
  /** One sentence, for lists and search engines. */
  readonly description: string;
  readonly audience: Audience;
  /** Whether its readers call the service from outside: its commands then name the public URL. */
  readonly isForCallers?: true;
}

/** Whom a guide is for: developers call the service, operators run it. */
export type Audience = 'developers' | 'operators';

/** The guides in reading order, which the links to the previous and the next guide follow. */
export const GUIDES: readonly ListedGuide[] = [
  {
    name: 'calling-the-api',
    title: 'Calling the API',
    description: 'Keys, limits, caching and errors, for developers whose back ends call the service.',
    audience: 'developers',
    isForCallers: true,
  },
  {
    name: 'generate-an-sdk',
    title: 'Generate an SDK',
    description: 'Turn the contract into a typed client, in TypeScript and other languages.',
    audience: 'developers',
    isForCallers: true,
  },
  {
    name: 'mirroring',
    title: 'Mirroring the catalogue',
    description: 'Keep a copy of the catalogue that never misses a change.',
    audience: 'developers',
    isForCallers: true,
  },
  {
    name: 'contract-tests',
    title: 'Contract tests in your CI',
    description: 'Check a deployment against its contract with Dredd or Schemathesis.',
    audience: 'developers',
    isForCallers: true,
  },
  {
    name: 'developer-settings',
    title: 'The developer settings',
    description: 'Sign in, manage your keys, and read your usage and events.',
    audience: 'developers',
  },
  {
    name: 'leaked-keys',
    title: 'Leaked keys',
    description: 'Recognise and revoke a key that was found, by hand or from a secret scanner.',
    audience: 'developers',
  },
  {
    name: 'changes',
    title: 'Changes',
    description: 'What each version changes for callers, mirrors and operators, and what never changes.',
    audience: 'developers',
  },
  {
    name: 'operators/install',
    title: 'Install the service',
    description: 'Go from a checkout to a server on your own PostgreSQL, with a proxy and file limits.',
    audience: 'operators',
  },
  {
    name: 'operators/configure',
    title: 'Configure the service',
    description: 'Every setting, with PostgreSQL, its roles and poolers, and Redis.',
    audience: 'operators',
  },
  {
    name: 'operators/keys-and-developers',
    title: 'Manage developers and keys',
    description: 'Register developers; create, roll and revoke keys; change plans.',
    audience: 'operators',
  },
  {
    name: 'operators/sign-in',
    title: 'Let developers sign in',
    description: 'One-time links, OpenID Connect, and sessions.',
    audience: 'operators',
  },
  {
    name: 'operators/catalogue',
    title: 'Load and export the catalogue',
    description: 'Import files, export copies for mirrors, and check the counts.',
    audience: 'operators',
  },
  {
    name: 'operators/publish-copies',
    title: 'Publish copies',
    description: 'Signed copies of the catalogue, on a timer, from which mirrors start and check themselves.',
    audience: 'operators',
  },
  {
    name: 'operators/writing-in-sql',
    title: 'Writing in SQL',
    description: 'Tables, rules and roles for programs that write to the database.',
    audience: 'operators',
  },
  {
    name: 'operators/scale-out',
    title: 'Scale out',
    description: 'More cores, more machines, a balancer and a read replica.',
    audience: 'operators',
  },
  {
    name: 'operators/operator-pages',
    title: 'Operator pages',
    description: 'See the state of the service and its developers in your browser, on the internal address.',
    audience: 'operators',
  },
  {
    name: 'operators/monitor',
    title: 'Monitor the service',
    description: 'Probes, metrics with their alerts, and the log.',
    audience: 'operators',
  },
  {
    name: 'operators/notices',
    title: 'Receive notices',
    description: 'A signed webhook for expiring and leaked keys, used-up quotas, and lost components.',
    audience: 'operators',
  },
  {
    name: 'operators/runbook',
    title: 'When something is down',
    description: 'Symptoms, what to check, and what to do.',
    audience: 'operators',
  },
  {
    name: 'operators/failover',
    title: 'Fail over to another primary',
    description: 'Promote a standby without losing revocations.',
    audience: 'operators',
  },
  {
    name: 'operators/backup-and-restore',
    title: 'Back up and restore',
    description: 'Back up PostgreSQL, restore it, and restart the feed.',
    audience: 'operators',
  },
  {
    name: 'operators/upgrade',
    title: 'Upgrade',
    description: 'Replace servers without downtime, shut them down cleanly, and check a deployment.',
    audience: 'operators',
  },
  {
    name: 'performance',
    title: 'Performance and scaling',
    description: 'What a request costs, how the service grows, and how that was measured.',
    audience: 'operators',
  },
];

/** A guide with its text. */
export interface Guide extends ListedGuide {
  /** CommonMark, without the title. */
  readonly text: string;
}

const AUDIENCES: readonly { readonly audience: Audience; readonly label: string }[] = [
  { audience: 'developers', label: 'For developers' },
  { audience: 'operators', label: 'For operators' },
];

/** @returns the guides for each audience, in reading order */
export function byAudience(guides: readonly Guide[]): { audience: Audience; label: string; group: readonly Guide[] }[] {
  return AUDIENCES.map(({ audience, label }) => ({
    audience,
    label,
    group: guides.filter((guide) => guide.audience === audience),
  }));
}

/** Reads the guides. @param packageRoot - the folder of this package's package.json */
export async function readGuides(packageRoot: string): Promise<readonly Guide[]> {
  const guides = GUIDES.map(async (guide): Promise<Guide> => {
    const text = await readFile(`${packageRoot}/src/site/guides/${guide.name}.md`, 'utf8');
    return { ...guide, text: text.slice(text.indexOf('\n') + 1) };
  });
  return Promise.all(guides);
}
