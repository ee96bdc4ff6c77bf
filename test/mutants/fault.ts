import { readdir, readFile } from 'node:fs/promises';

/** A change to one place of a file. */
export interface Edit {
  /** Relative to the checkout. */
  readonly file: string;
  /** Occurs in the file exactly once. */
  readonly from: string;
  /** Compiles in place of `from`. */
  readonly to: string;
}

/** A deliberate fault in the service, and the suites that must fail because of it. */
export interface Fault {
  /** The broken behaviour in a few words, unique among all faults. */
  readonly name: string;
  /** The promise that the fault breaks, as a whole sentence. */
  readonly promise: string;
  /** Test files, relative to the checkout. One failing test in any of them catches the fault. */
  readonly suites: readonly string[];
  readonly edits: readonly Edit[];
}

const FOLDER = new URL('faults/', import.meta.url);

/** Reads every fault of the folder `faults`. @throws Error when one is malformed */
export async function readFaults(): Promise<Fault[]> {
  const files = (await readdir(FOLDER)).sort();
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, FOLDER), 'utf8')));
  return texts.flatMap(parseFaults);
}

/**
 * Parses faults, which are separated by empty lines. Lines that begin with `#` are comments. A fault is its name and promise,
 * and then for each edit the file, the text to find after `-`, and its replacement after `+`. The first file is followed by
 * the suites, which are named by their path in `test/`:
 *
 * ```
 * window-of-31-days: A since older than 30 days is refused.
 * src/catalog/since.ts: catalog/since api/changes/changes-window
 * -30n * 86_400n
 * +31n * 86_400n
 * ```
 */
function parseFaults(text: string): Fault[] {
  return text
    .replace(/^#.*\n/gm, '')
    .split(/\n\n+/)
    .map((block) => block.replace(/^\n+|\n$/g, ''))
    .filter((block) => block !== '')
    .map(parseFault);
}

function parseFault(block: string): Fault {
  const [head = '', ...lines] = block.split('\n');
  const [, name, promise] = /^([\w-]+): (\S.*\.)$/.exec(head) ?? [];
  const suites: string[] = [];
  const edits: { file: string; from: string[]; to: string[] }[] = [];
  for (const line of lines) {
    if (line.startsWith('-')) edits.at(-1)?.from.push(line.slice(1));
    else if (line.startsWith('+')) edits.at(-1)?.to.push(line.slice(1));
    else {
      const [file = '', names] = line.split(': ');
      if (names !== undefined) suites.push(...names.split(' ').map((suite) => `test/${suite}.test.ts`));
      edits.push({ file, from: [], to: [] });
    }
  }
  if (
    name === undefined ||
    promise === undefined ||
    suites.length === 0 ||
    edits.some(({ from }) => from.length === 0)
  ) {
    throw new Error(`This is not a fault:\n${block}`);
  }
  return {
    name,
    promise,
    suites,
    edits: edits.map(({ file, from, to }) => ({ file, from: from.join('\n'), to: to.join('\n') })),
  };
}

/**
 * Plants a fault.
 *
 * @param root - the folder of a checkout
 * @returns the files that the fault changes, with their content before and after
 * @throws Error when the fault no longer applies to the code
 */
export async function plant({ name, edits }: Fault, root: URL): Promise<Map<URL, { before: string; after: string }>> {
  const files = new Map<string, { before: string; after: string }>();
  for (const { file, from, to } of edits) {
    const before = files.get(file)?.before ?? (await readFile(new URL(file, root), 'utf8'));
    const text = files.get(file)?.after ?? before;
    const places = text.split(from).length - 1;
    if (places !== 1 || from === to) {
      throw new Error(`The fault "${name}" does not apply: its text occurs ${places} times in ${file}.\n${from}`);
    }
    // A function, because a replacement string would interpret dollar signs.
    files.set(file, { before, after: text.replace(from, () => to) });
  }
  return new Map([...files].map(([file, texts]) => [new URL(file, root), texts]));
}
