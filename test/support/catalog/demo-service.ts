import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { prepareDemo } from '../../../src/commands/server/demo.js';
import { startService, type TestService, type TestServiceOptions } from '../service.js';

const PACKAGE_ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

/** The service with the demo catalogue, as `make run` starts it, and the key of its only developer. */
export interface DemoService {
  readonly service: TestService;
  readonly key: string;
}

/** Starts it. Stop the service in an `after` hook. */
export async function startDemoService(options: TestServiceOptions = {}): Promise<DemoService> {
  const service = await startService(options);
  await service.db('api_keys').delete();
  await service.db('developers').delete();
  const { key } = await prepareDemo(service.db, PACKAGE_ROOT);
  return { service, key: key ?? assert.fail('no demo key') };
}
