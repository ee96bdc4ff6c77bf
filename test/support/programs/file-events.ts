import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../program.js';
import { temporaryFolder } from '../temporary-folder.js';

const RECORDER = fileURLToPath(new URL('record-files.cjs', import.meta.url));

/**
 * Runs the built program to its end, which must be a good one, and records what it brings to the disk.
 *
 * @param stdout - the file that its standard output is appended to
 * @returns in order: `sync NAME` for a file or folder that is on the disk now, `NAME -> NAME` for a renamed one.
 *   Standard output is `1`; what follows the name of a temporary file's later file is left out.
 */
export async function recordFiles(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  stdout: string,
): Promise<string[]> {
  const record = join(await temporaryFolder(), 'record');
  const recorder = { NODE_OPTIONS: `--require ${JSON.stringify(RECORDER)}`, RECORD_FILES: record };
  const { code, stderr } = await runProgram(args, { ...environment, ...recorder }, '', { stdout });
  assert.equal(code, 0, stderr);
  const events = readFileSync(record, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as [call: string, ...names: (string | number)[]]);
  const renamed = events.flatMap(([call, from, to]) => (call === 'rename' ? [[String(from), String(to)]] : []));
  const nameOf = (file: string | number): string => {
    const later = renamed.find(([from]) => from === file)?.[1];
    return later === undefined ? basename(String(file)) : `${basename(later)} in the making`;
  };
  return events.map(([call, ...names]) =>
    call === 'sync' ? `sync ${names.map(nameOf).join()}` : names.map(nameOf).join(' -> '),
  );
}
