import assert from 'node:assert/strict';
import { SETTINGS } from '../../src/config/settings.js';

/** Every variable that sets something: the settings, and the files of secret ones. */
const VARIABLES = new Set(
  Object.values(SETTINGS).flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name])),
);

/** How long a server takes to stop after its drain, as the guide "Upgrade" promises, in seconds. */
const STOP_SECONDS = 10;

/** Asserts that a deployment sets only what the service reads, and no secret other than by a file. */
export function assertEnvironment(names: readonly string[]): void {
  assert.ok(names.length > 0);
  for (const name of names) assert.ok(VARIABLES.has(name), `${name} is not a setting`);
  const secrets = Object.values(SETTINGS).filter(({ isSecret }) => isSecret);
  for (const { name } of secrets) assert.ok(!names.includes(name), `${name} must come from a file`);
}

/** Asserts that a server has time to stop cleanly. @param drain - text of DRAIN_SECONDS; undefined for its default */
export function assertStopTime(seconds: number, drain: string | undefined): void {
  const drainSeconds = drain === undefined ? SETTINGS.drainSeconds.fallback : SETTINGS.drainSeconds.parse(drain);
  assert.ok(seconds >= drainSeconds + STOP_SECONDS, `${seconds} s to stop`);
}
