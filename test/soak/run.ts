import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../support/guides.js';
import { killPrograms } from '../support/program.js';
import { renderReport } from './report/report.js';
import { soak } from './soak.js';

// Runs the soak and writes its report and its history into .cache/soak. MINUTES or SECONDS is its length, RATE the calls a
// second, SEED the order of the faults. Exits with code 1 when a promise was not kept.

const FOLDER = fileURLToPath(new URL('.cache/soak', ROOT));

/** The length without MINUTES and SECONDS, and the usual time from one fault to the next, in seconds. */
const USUAL_SECONDS = 1_800;
const FAULT_SECONDS = 120;

/** A shorter run does as many faults as half an hour does. */
const FAULTS = USUAL_SECONDS / FAULT_SECONDS;

/** The longest time that the cause of a fault stays, in seconds, and its part of the time until the next fault. */
const LASTS_SECONDS = 12;
const LASTS_PART = 0.1;

const { MINUTES, SECONDS, RATE, SEED } = process.env;

const seconds = SECONDS ? positive('SECONDS', SECONDS) : MINUTES ? positive('MINUTES', MINUTES) * 60 : USUAL_SECONDS;
const faultSeconds = Math.min(FAULT_SECONDS, seconds / FAULTS);

// Also after Ctrl-C.
process.once('exit', killPrograms);
await mkdir(FOLDER, { recursive: true });
const result = await soak({
  seconds,
  faultSeconds,
  lastsSeconds: Math.min(LASTS_SECONDS, faultSeconds * LASTS_PART),
  rate: RATE ? positive('RATE', RATE) : undefined,
  seed: SEED ? positive('SEED', SEED) : Math.floor(Math.random() * 2 ** 31),
  folder: FOLDER,
  isBalanced: true,
  pace: 1,
  say: print,
});
for (const { promise, judged, violations } of result.verdicts) {
  print(`${violations.length === 0 ? 'kept    ' : 'BROKEN  '}${promise}`);
  print(`        ${judged}`);
  for (const violation of violations.slice(0, 10)) print(`        ${violation}`);
}
if (result.missing.length > 0) print(`Missing on this machine, and left out: ${result.missing.join(', ')}`);
const page = join(FOLDER, 'report.html');
await writeFile(page, await renderReport(result));
print(`${page}\n${result.history}`);
process.exitCode = result.verdicts.every(({ violations }) => violations.length === 0) ? 0 : 1;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** @throws Error when a setting is not a number above 0 */
function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`${name} must be a number above 0`);
  return value;
}
