import { readFile } from 'node:fs/promises';

/** A change to one place of a file. */
export interface Edit {
  /** Relative to the checkout. */
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly from: string;
  /** Compiles in place of `from`. */
  readonly to: string;
}

/** A deliberate fault in the service, and the suites that must notice it. */
export interface Fault {
  /** What no longer holds, in a few words. No two faults have the same. */
  readonly name: string;
  /** The promise that the fault breaks, as a whole sentence. */
  readonly promise: string;
  readonly edits: readonly [Edit, ...Edit[]];
  /** Test files, relative to the checkout. One failing test in any of them catches the fault. */
  readonly suites: readonly [string, ...string[]];
}

/**
 * Plants a fault.
 *
 * @param root - the folder of a checkout
 * @returns the files that the fault changes, with their content before and after
 * @throws Error when the fault does not fit the code any more
 */
export async function plant({ name, edits }: Fault, root: URL): Promise<Map<URL, { before: string; after: string }>> {
  const files = new Map<string, { before: string; after: string }>();
  for (const { file, from, to } of edits) {
    const before = files.get(file)?.before ?? (await readFile(new URL(file, root), 'utf8'));
    const text = files.get(file)?.after ?? before;
    const places = text.split(from).length - 1;
    if (places !== 1 || from === to) {
      throw new Error(`The fault "${name}" does not apply: its text stands ${places} times in ${file}.\n${from}`);
    }
    // A function, so that dollar signs are taken as they are.
    files.set(file, { before, after: text.replace(from, () => to) });
  }
  return new Map([...files].map(([file, texts]) => [new URL(file, root), texts]));
}
