import { readFile } from 'node:fs/promises';
import { Representation } from '../../http/response/representation.js';

/** The guides in their order in lists: files of this folder without `.md`, each with what it is about. */
const SUMMARIES = {
  'calling-the-api': 'Keys, limits, errors and generated clients, for developers whose back ends call the service.',
  'contract-tests': 'How to hold a deployment against its contract with Dredd or Schemathesis.',
  'developer-settings': 'Sign-in, keys, usage and events, for developers who manage their own keys.',
  'leaked-keys': 'How to recognise and revoke a key that was found, for people and for scanners.',
  mirroring: 'How to keep a copy of the catalogue that misses no change.',
  operating: 'Commands, settings, imports, metrics and production, for people who run the service.',
  'writing-in-sql': 'Columns, rules and roles for programs that write to the database.',
  performance: 'What a request costs, how the service grows, and how that was measured.',
} as const;

/** The pictures in them, which `make bench PARTS=growth` draws. */
const PICTURES = ['pictures/times.svg', 'pictures/throughput.svg'] as const;

/** A guide as it stands in the repository. */
export interface Guide {
  /** The last part of its path. */
  readonly name: string;
  readonly title: string;
  /** A sentence. */
  readonly summary: string;
  /** CommonMark, without the title. */
  readonly text: string;
}

/** The guides and their pictures, kept in memory. */
export interface GuideFiles {
  readonly guides: readonly Guide[];
  readonly pictures: ReadonlyMap<string, Representation>;
}

/** Reads the guides. @param packageRoot - the folder of this package's package.json */
export async function readGuides(packageRoot: string): Promise<GuideFiles> {
  const folder = `${packageRoot}/src/site/guides`;
  const guides = Object.entries(SUMMARIES).map(async ([name, summary]): Promise<Guide> => {
    const [heading = '', ...text] = (await readFile(`${folder}/${name}.md`, 'utf8')).split('\n');
    return { name, title: heading.replace(/^# /, ''), summary, text: text.join('\n') };
  });
  const pictures = PICTURES.map(async (name) => {
    const picture = new Representation(await readFile(`${folder}/${name}`), 'image/svg+xml');
    return [name, picture] as const;
  });
  return { guides: await Promise.all(guides), pictures: new Map(await Promise.all(pictures)) };
}
