import { readFile } from 'node:fs/promises';

/** A deliberate fault in the service, and the suites that must notice it. */
export interface Fault {
  /** The promise that the fault breaks, as a whole sentence. No two faults have the same. */
  readonly promise: string;
  /** Relative to the checkout. */
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly from: string;
  /** Compiles in place of `from`. */
  readonly to: string;
  /** Test files, relative to the checkout. One failing test in any of them catches the fault. */
  readonly suites: readonly [string, ...string[]];
}

/**
 * Plants a fault.
 *
 * @param text - the content of the fault's file
 * @returns the content with the fault
 * @throws Error when the fault does not fit the text any more
 */
export function plant({ promise, file, from, to }: Fault, text: string): string {
  const places = text.split(from).length - 1;
  if (places !== 1 || from === to) {
    throw new Error(`The fault against "${promise}" does not apply: its text stands ${places} times in ${file}.`);
  }
  // A function, so that dollar signs are taken as they are.
  return text.replace(from, () => to);
}

/** @returns the content of a fault's file @param root - the folder of a checkout */
export function readTarget({ file }: Fault, root: URL): Promise<string> {
  return readFile(new URL(file, root), 'utf8');
}
